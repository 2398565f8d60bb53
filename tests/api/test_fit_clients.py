"""The official clients in a loop of the caller's own, with `fit` before each request.

The simulated provider refuses what the real ones refuse (orphans, thinking bound to what
was cut), so an answer is the proof that a list was valid.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anthropic
import openai
import pytest

import reverie
from reverie.simulator import call, serving, thinking_block
from reverie.transcript import Json, Object, dump
from tests.simulator.talk import engine

pytestmark = [pytest.mark.spec("18.fit"), pytest.mark.integration]
ROUNDS = 40
CLIENT: Any = {"api_key": "k", "max_retries": 0}
SCHEMA: Any = {"type": "object", "properties": {"n": {"type": "integer"}}}


class Worker:
    """Runs a tool round after round, then reads the first result back, then is done."""

    def __init__(self, *, thinks: bool = False) -> None:
        self.asked = 0
        self.bodies: list[str] = []
        self.thinks = thinks

    def __call__(self, body: Object) -> Any:
        self.asked += 1
        self.bodies.append(dump(body))
        before: list[Any] = [thinking_block("which one next?")] if self.thinks else []
        if self.asked <= ROUNDS:
            return [*before, call("run", dump({"n": self.asked}), f"toolu_number_{self.asked:03d}")]
        if self.asked == ROUNDS + 1:
            found = re.search(r"> run 1 (r:\w{6})", self.bodies[-1])
            assert found is not None
            given: dict[str, Json] = {"reference": found[1], "query": "needle"}
            return [call("read_back", given, "toolu_that_reads_back")]
        assert "needle in line 77" in self.bodies[-1]
        return "Done."


def run(n: int) -> str:
    rows = [f"line {row} of src/module_{n}/part.py" for row in range(140)]
    rows[77] = f"needle in line 77 of result {n}" if n == 1 else rows[77]
    return "\n".join(rows)


@contextmanager
def serve(worker: Worker) -> Iterator[tuple[str, Any]]:
    sim = engine(worker)
    with serving(sim) as url:
        yield url, sim


def test_chat_completions() -> None:
    kit, worker = reverie.tools(), Worker()
    mine: Any = {"type": "function", "function": {"name": "run", "parameters": SCHEMA}}
    messages: list[Any] = [{"role": "user", "content": "go"}]
    with serve(worker) as (url, sim), openai.OpenAI(base_url=url + "/v1", **CLIENT) as client:
        tools = [mine, *kit.openai()]
        while True:
            sent = reverie.fit(messages, model="gpt-5.6", tools=tools)
            made = client.chat.completions.create(model="gpt-5.6", messages=sent, tools=tools)
            reply = made.choices[0].message
            messages.append(reply)
            if not reply.tool_calls:
                break
            for asked in reply.tool_calls:
                result = {"role": "tool", "tool_call_id": asked.id, "content": run(_number(asked))}
                messages.append(sent.handle(asked) or result)
    assert reply.content == "Done."
    assert sent.saved > 0
    assert {e.status for e in sim.log} == {200}
    assert any(m is reply for m in messages)


def _number(asked: Any) -> int:
    found = re.search(r"\d+", asked.function.arguments)
    return int(found[0]) if found else 0


@pytest.mark.parametrize("thinks", [False, True])
def test_messages(thinks: bool) -> None:
    kit, worker = reverie.tools(), Worker(thinks=thinks)
    mine: Any = {"name": "run", "description": "runs", "input_schema": SCHEMA}
    model = "claude-opus-4-8"
    messages: list[Any] = [{"role": "user", "content": "go"}]
    fitter = reverie.Fitter(model=model, tools=[mine, *kit.anthropic()])
    more: Any = {"thinking": {"type": "adaptive"}} if thinks else {}
    with serve(worker) as (url, sim), anthropic.Anthropic(base_url=url, **CLIENT) as client:
        while True:
            sent: Any = fitter.fit(messages)
            reply = client.messages.create(
                model=model,
                max_tokens=1000,
                messages=sent,
                tools=[mine, *kit.anthropic()],
                **more,
            )
            messages.append({"role": "assistant", "content": reply.content})
            if reply.stop_reason != "tool_use":
                break
            results: list[Any] = []
            for asked in reply.content:
                if asked.type == "tool_use":
                    given: Any = asked.input
                    result = {"type": "tool_result", "tool_use_id": asked.id}
                    mine_text = run(given["n"]) if "n" in given else ""
                    results.append(fitter.handle(asked) or {**result, "content": mine_text})
            messages.append({"role": "user", "content": results})
    assert messages[-1]["content"][-1].text == "Done."
    assert sent.saved > 0
    assert {e.status for e in sim.log} == {200}
    read = sum(e.charge.read for e in sim.log)
    assert read > sum(e.charge.total for e in sim.log) / 2  # the prompt cache holds


def test_responses() -> None:
    kit, worker = reverie.tools(), Worker()
    mine: Any = {"type": "function", "name": "run", "parameters": SCHEMA, "strict": False}
    items: list[Any] = [{"role": "user", "content": "go"}]
    fitter = reverie.Fitter(model="gpt-5.6", tools=[mine, *kit.responses()])
    with serve(worker) as (url, sim), openai.OpenAI(base_url=url + "/v1", **CLIENT) as client:
        while True:
            sent: Any = fitter.fit(items)
            reply = client.responses.create(
                model="gpt-5.6", input=sent, tools=[mine, *kit.responses()], store=False
            )
            items += reply.output
            calls = [item for item in reply.output if item.type == "function_call"]
            if not calls:
                break
            for asked in calls:
                found = re.search(r"\d+", asked.arguments)
                text = run(int(found[0])) if found else ""
                result = {"type": "function_call_output", "call_id": asked.call_id, "output": text}
                items.append(fitter.handle(asked) or result)
    assert reply.output_text == "Done."
    assert sent.saved > 0
    assert {e.status for e in sim.log} == {200}


def test_objects_of_the_sdks_are_read_and_left_alone() -> None:
    from anthropic.types import TextBlock, ToolUseBlock
    from openai.types.chat import ChatCompletionMessage
    from openai.types.responses import ResponseFunctionToolCall

    said = ChatCompletionMessage(role="assistant", content="hello")
    first: Any = reverie.fit([{"role": "user", "content": "x"}, said], model="gpt-5")
    assert first[1] is said
    use = ToolUseBlock(type="tool_use", id="t1", name="run", input={"n": 1})
    blocks: list[Any] = [TextBlock(type="text", text="look", citations=None), use]
    turn: Any = {"role": "assistant", "content": blocks}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "one"}
    listed: list[Any] = [
        {"role": "user", "content": "x"},
        turn,
        {"role": "user", "content": [result]},
    ]
    second = reverie.fit(listed, model="claude-opus-4-8", marks=False)
    assert second[1] is turn
    item = ResponseFunctionToolCall(type="function_call", call_id="c", name="run", arguments="{}")
    third: Any = reverie.fit([{"role": "user", "content": "x"}, item], model="gpt-5")
    assert third[1] is item
    assert third[2]["type"] == "function_call_output"


class Older:
    """An object of an SDK before pydantic 2."""

    def dict(self) -> dict[str, Any]:
        return {"role": "assistant", "content": "old"}


def test_objects_of_an_older_sdk_are_read() -> None:
    old = Older()
    sent: Any = reverie.fit([{"role": "user", "content": "x"}, old], model="gpt-5")
    assert sent[1] is old
    assert sent.before > 1
