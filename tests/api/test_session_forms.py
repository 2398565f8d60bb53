"""Requests that can be sent as they are, and answers in every form that clients give them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reverie import Reply, Session, tool_result
from reverie.errors import InvalidMessage, Overloaded
from reverie.transcript import Trail
from reverie.wire import NO_HEAD, UNSTREAMED, Request
from tests.api.talks import FORMS, MODEL, TOOLS, WORDS, Provider, send, talking

# ruff: noqa: SIM117 - a client first, then what is made of it
pytestmark = [pytest.mark.spec("18.forms"), pytest.mark.anyio]
MESSAGE: dict[str, Any] = {
    "type": "message",
    "role": "assistant",
    "content": [
        {"type": "text", "text": "Look."},
        {"type": "tool_use", "id": "toolu_1", "name": "run", "input": {"n": 1}},
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 5, "output_tokens": 2},
}
CALL = {"id": "call_1", "type": "function", "function": {"name": "run", "arguments": '{"n":1}'}}
COMPLETION: dict[str, Any] = {
    "object": "chat.completion",
    "model": "gpt-5.6",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {"role": "assistant", "content": "Look.", "tool_calls": [CALL]},
        }
    ],
    "usage": {"prompt_tokens": 5, "completion_tokens": 2},
}
OUTPUT = {"type": "message", "role": "assistant"}
RESPONSE: dict[str, Any] = {
    "object": "response",
    "status": "completed",
    "output": [
        {**OUTPUT, "content": [{"type": "output_text", "text": "Look."}]},
        {"type": "function_call", "call_id": "call_1", "name": "run", "arguments": '{"n":1}'},
    ],
    "usage": {"input_tokens": 5, "output_tokens": 2},
}
WHOLE: dict[str, dict[str, Any]] = {
    "messages": MESSAGE,
    "chat": COMPLETION,
    "responses": RESPONSE,
}


class Older:
    """An object of an SDK before pydantic 2."""

    def __init__(self, value: dict[str, Any]) -> None:
        self._value = value

    def dict(self) -> dict[str, Any]:
        return self._value


@pytest.mark.parametrize("form", FORMS)
def test_an_answer_is_read_as_dict_text_and_older_object(form: str) -> None:
    value = WHOLE[form]
    for given in (value, json.dumps(value), Older(value)):
        reply = Reply.of(given)
        (call,) = reply.tool_calls
        assert (reply.text, call.name, call.arguments) == ("Look.", "run", {"n": 1})
        assert json.loads(call.raw) == {"n": 1}
        assert call.id in ("toolu_1", "call_1")
        assert reply.usage is not None
        assert (reply.usage.input, reply.usage.output) == (5, 2)
        assert reply.stop_reason == "tool_use"
        assert Reply.of(reply) is reply


def test_a_message_taken_out_of_its_completion_is_an_answer() -> None:
    reply = Reply.of(COMPLETION["choices"][0]["message"])
    assert (reply.text, reply.tool_calls[0].id, reply.stop_reason) == (
        "Look.",
        "call_1",
        "tool_use",
    )
    assert Reply.of({"role": "assistant", "content": "Hi."}).text == "Hi."


@pytest.mark.parametrize(
    "given",
    [
        7,
        {},
        [],
        {"role": "user", "content": "x"},
        {"choices": []},
        {"object": "response", "status": "completed"},
        "[]",
        [{"type": "message_start", "message": MESSAGE}],
    ],
)
def test_what_is_no_whole_answer_is_refused(given: object) -> None:
    with pytest.raises(InvalidMessage):
        Reply.of(given)


def test_an_error_inside_a_stream_is_the_providers() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "later"}}
    with pytest.raises(Overloaded):
        Reply.of([{"type": "message_start", "message": {**MESSAGE, "content": []}}, error])


def test_arguments_that_are_no_object_are_said_to_be_none() -> None:
    bad = {**CALL, "function": {"name": "run", "arguments": '{"n": '}}
    reply = Reply.of({"role": "assistant", "content": None, "tool_calls": [bad]})
    assert reply.tool_calls[0].arguments == {"INVALID_JSON": '{"n": '}


def test_a_result_is_a_text_blocks_or_json() -> None:
    call = Reply.of(MESSAGE).tool_calls[0]
    assert call.result("x") == tool_result("toolu_1", "x")
    picture = [{"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}}]
    assert call.result(picture).blocks[0].value["content"] == picture
    assert call.result({"a": [1]}).blocks[0].value["content"] == '{"a":[1]}'
    assert call.result([1, 2]).blocks[0].value["content"] == "[1,2]"
    assert call.result("no", is_error=True).blocks[0].value["is_error"] is True
    with pytest.raises(InvalidMessage, match="JSON"):
        call.result(object())


@pytest.mark.parametrize("form", FORMS)
async def test_the_helpers_of_the_sdks_for_streams_are_observed(
    form: str, home: Path, tmp_path: Path
) -> None:
    """Once they have ended, and while they run."""
    for early in (False, True):
        provider = Provider(answers=["Done."])
        async with talking(provider, form) as (client, sim):
            async with Session.open(tmp_path, model=MODEL[form]) as s:
                await s.add(WORDS)
                request: Any = await s.prepare()
                if form == "messages":
                    opening = client.messages.stream(**request.anthropic())
                elif form == "chat":
                    opening = client.chat.completions.stream(**request.openai())
                else:
                    opening = client.responses.stream(**request.responses())
                async with opening as stream:
                    if not early:
                        async for _ in stream:
                            pass
                    reply = await s.observe(stream)
                assert reply.text == "Done."
        assert {e.status for e in sim.log} == {200}


@pytest.mark.parametrize("form", FORMS)
async def test_results_may_come_in_the_form_of_the_api(
    form: str, home: Path, tmp_path: Path
) -> None:
    provider = Provider()
    async with talking(provider, form) as (client, sim):
        async with Session.open(tmp_path, model=MODEL[form], tools=TOOLS[form]) as s:
            await s.add({"role": "user", "content": WORDS})
            raw = await send(client, form, await s.prepare())
            await s.observe(raw)
            if form == "messages":
                block = {"type": "tool_result", "tool_use_id": raw.content[0].id, "content": "ran"}
                await s.add({"role": "user", "content": [block]})
            elif form == "chat":
                (asked,) = raw.choices[0].message.tool_calls
                await s.add({"role": "tool", "tool_call_id": asked.id, "content": "ran"})
            else:
                asked = raw.output[-1]
                done = {"type": "function_call_output", "call_id": asked.call_id, "output": "ran"}
                await s.add(done)
            reply = await s.observe(await send(client, form, await s.prepare()))
            assert reply.text == "Done."
    assert {e.status for e in sim.log} == {200}


async def test_calls_whose_names_a_server_uses_again_are_told_apart(
    home: Path, tmp_path: Path
) -> None:
    """A local server calls every call `call_1`; its results come back under that name."""
    async with Session.open(tmp_path, model="llama-4", tools=TOOLS["chat"]) as s:
        await s.add(WORDS)
        named: list[str] = []
        for n in range(3):
            await s.prepare()
            named += [call.id for call in (await s.observe(COMPLETION)).tool_calls]
            await s.add({"role": "tool", "tool_call_id": "call_1", "content": f"ran {n}"})
        sent = (await s.prepare()).openai()
    assert len(set(named)) == 3
    results = [m for m in sent["messages"] if m["role"] == "tool"]
    assert [m["content"] for m in results] == ["ran 0", "ran 1", "ran 2"]
    assert {m["tool_call_id"] for m in results} == {"call_1"}


async def test_max_tokens_are_always_there_and_can_be_sent_without_a_stream(
    home: Path, tmp_path: Path
) -> None:
    async with Session.open(tmp_path, model="claude-opus-5-5") as s:
        await s.add("hello")
        request = await s.prepare()
    assert request.anthropic()["max_tokens"] == UNSTREAMED
    assert request.value() == request.anthropic()
    assert request.responses()["max_output_tokens"] == 32_000
    plain = Request.of(Request(NO_HEAD, Trail(()), ()))
    assert "max_completion_tokens" not in plain.openai()  # its server knows better
    async with Session.open(
        tmp_path,
        model="claude-opus-4-0",
        options={"temperature": 0.5, "output_config": {"effort": "low"}, "betas": ["x-1"]},
    ) as s:
        await s.add("hello")
        sent = (await s.prepare()).anthropic()
    assert sent["max_tokens"] == 8_192
    assert (sent["temperature"], sent["extra_body"]) == (
        0.5,
        {"output_config": {"effort": "low"}},
    )
    assert sent["extra_headers"] == {"anthropic-beta": "x-1"}


@pytest.mark.parametrize("form", FORMS)
async def test_long_answers_are_asked_for_as_a_stream(
    form: str, home: Path, tmp_path: Path
) -> None:
    async with (
        talking(Provider(answers=["Done."]), form) as (client, sim),
        Session.open(
            tmp_path, model=MODEL[form], client=client, options={"max_tokens": 60_000}
        ) as s,
    ):
        await s.add("hello")
        assert (await s.ask()).text == "Done."
    assert {e.status for e in sim.log} == {200}


async def test_tools_of_any_api_are_offered_in_any_other(home: Path, tmp_path: Path) -> None:
    described = {form: TOOLS[form][0] for form in FORMS}
    strict = {"type": "function", "name": "safe", "parameters": {"type": "object"}, "strict": True}
    for form in FORMS:
        tools = [described[form], strict, {"type": "web_search"}]
        async with Session.open(tmp_path, model="gpt-5.6", tools=tools) as s:
            await s.add("hello")
            request = await s.prepare()
        run = request.openai()["tools"][0]["function"]
        assert run["name"] == "run"
        assert run["parameters"] == described["chat"]["function"]["parameters"]
        assert request.openai()["tools"][1]["function"]["strict"] is True
        assert request.responses()["tools"][1]["strict"] is True
        assert request.responses()["tools"][2] == {"type": "web_search"}
        assert request.anthropic()["tools"][0]["input_schema"] == run["parameters"]
