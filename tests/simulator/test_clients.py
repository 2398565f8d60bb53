"""The official clients, unmodified, against a server on a local port."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anthropic
import openai
import pytest

from reverie.simulator import (
    CATALOGUE,
    Engine,
    Models,
    ModelSpec,
    call,
    error,
    script,
    serving,
    thinking_block,
)

from .talk import MODEL, engine, result, text, user, words

pytestmark = [pytest.mark.spec("14"), pytest.mark.integration]

TOOL: Any = {"name": "Read", "description": "a file", "input_schema": {"type": "object"}}
SMALL = ModelSpec("claude-small", window=1000)
GPT = "gpt-5.6"
CLIENT: Any = {"api_key": "k", "max_retries": 0}


@contextmanager
def claude(sim: Engine, **other: Any) -> Iterator[anthropic.Anthropic]:
    with serving(sim) as url, anthropic.Anthropic(base_url=url, **CLIENT | other) as client:
        yield client


@contextmanager
def gpt(sim: Engine) -> Iterator[openai.OpenAI]:
    with serving(sim) as url, openai.OpenAI(base_url=url + "/v1", **CLIENT) as client:
        yield client


def asked(*messages: Any, **other: Any) -> Any:
    return {"model": MODEL, "max_tokens": 1000, "messages": list(messages), **other}


# --- anthropic


def test_anthropic_whole_with_a_tool_round_and_thinking() -> None:
    sim = engine(script([thinking_block("hm"), text("look"), call("Read", '{"n":1.5}')], "done"))
    with claude(sim) as client:
        messages: list[Any] = [user("go")]
        thinking: Any = {"type": "adaptive"}
        first = client.messages.create(**asked(*messages, tools=[TOOL], thinking=thinking))
        assert [b.type for b in first.content] == ["thinking", "text", "tool_use"]
        assert first.stop_reason == "tool_use"
        calling = first.content[2]
        assert isinstance(calling, anthropic.types.ToolUseBlock)
        assert calling.input == {"n": 1.5}
        messages += [first.to_param(), user(result(calling.id, "found"))]
        second = client.messages.create(**asked(*messages, tools=[TOOL], thinking=thinking))
        assert second.content[0].type == "text"
        assert second.stop_reason == "end_turn"
        assert second.usage.output_tokens == 1
        assert second._request_id
    assert [e.status for e in sim.log] == [200, 200]


def test_anthropic_streams_the_same_message() -> None:
    answer = [thinking_block("hm " * 30), text("wörds " * 30), call("Read", '{"a":[1,{"b":"é"}]}')]
    with claude(engine(script(answer, answer))) as client:
        whole = client.messages.create(**asked(user("go")))
        kinds: list[str] = []
        with client.messages.stream(**asked(user("go"))) as stream:
            kinds += [event.type for event in stream]
            streamed = stream.get_final_message()
    assert _said(streamed) == _said(whole)
    assert streamed.usage.output_tokens == whole.usage.output_tokens
    for kind in ("message_start", "content_block_start", "text", "thinking", "signature",
                 "input_json", "content_block_stop", "message_delta", "message_stop"):  # fmt: skip
        assert kind in kinds


def _said(message: Any) -> list[Any]:
    out = []
    for block in message.content:
        one = block.model_dump()
        one.pop("id", None)
        out.append({k: v for k, v in one.items() if v is not None})
    return out


async def test_anthropic_async_client_in_both_modes() -> None:
    sim = engine(script("one", "two"))
    with serving(sim) as url:
        async with anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0) as client:
            first = await client.messages.create(**asked(user("go")))
            assert first.content[0].type == "text"
            async with client.messages.stream(**asked(user("go"))) as stream:
                assert "".join([t async for t in stream.text_stream]) == "two"


def test_anthropic_cache_usage_counts_and_models() -> None:
    with claude(engine()) as client:
        marked = user(text(words(1), "1h"))
        first = client.messages.create(**asked(marked))
        assert first.usage.cache_creation is not None
        assert first.usage.cache_creation.ephemeral_1h_input_tokens == 600
        assert client.messages.create(**asked(marked)).usage.cache_read_input_tokens == 600
        counted = client.messages.count_tokens(model=MODEL, messages=[marked])
        assert counted.input_tokens == 600
        listed = {m.id: m for m in client.models.list()}
        assert listed[MODEL].max_input_tokens == 1_000_000
        one = client.models.retrieve("claude-haiku-4-5")
        assert (one.max_input_tokens, one.max_tokens, one.lifecycle) == (200_000, 64_000, "active")
        assert one.capabilities is not None
        assert one.capabilities.context_management.supported
        beta = client.beta.models.retrieve(MODEL).capabilities
        assert beta is not None
        assert beta.compaction is not None
        assert beta.compaction.summarize.supported


def test_anthropic_betas_management_diagnosis_and_binding() -> None:
    edits: Any = {"edits": [{"type": "clear_tool_uses_20250919"}]}
    bind: Any = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    sim = engine(script([thinking_block("hm"), text("x")]))
    with claude(sim) as client:
        first = client.beta.messages.create(
            **asked(user("go"), thinking=bind, diagnostics={"previous_message_id": None}),
            betas=["thinking-binding-controls-2026-08-01"],
        )
        assert first.input_transformations == []
        assert first.diagnostics is None
        history = [user("went"), first.to_param(), user("on")]
        second = client.beta.messages.create(
            **asked(*history, thinking=bind, context_management=edits),
            diagnostics={"previous_message_id": first.id},
            betas=["thinking-binding-controls-2026-08-01", "context-management-2025-06-27"],
        )
        assert second.context_management is not None
        assert second.context_management.applied_edits == []
        assert second.diagnostics is not None
        reason = second.diagnostics.cache_miss_reason
        assert reason is not None
        assert reason.type == "messages_changed"
        assert second.input_transformations is not None
        assert second.input_transformations[0].type == "thinking_dropped"
        assert second.input_transformations[0].path == "messages.1.content.0"
        counted = client.beta.messages.count_tokens(
            model=MODEL,
            messages=[user("x" * 40)],
            context_management=edits,
            betas=["context-management-2025-06-27"],
        )
        assert counted.context_management is not None
        assert counted.context_management.original_input_tokens == counted.input_tokens == 10


@pytest.mark.parametrize("streaming", [False, True])
def test_anthropic_compaction_on_demand(streaming: bool) -> None:
    wanted: Any = {"type": "summarize", "instructions": "short"}
    betas = ["compact-2026-09-04"]
    with claude(engine(script("summed up", "on we go"))) as client:
        given = asked(user("a long talk"), compaction=wanted)
        if streaming:
            with client.beta.messages.stream(**given, betas=betas) as stream:
                done: Any = stream.get_final_message()
        else:
            done = client.beta.messages.create(**given, betas=betas)
        assert done.stop_reason == "compaction"
        (block,) = done.content
        assert (block.type, block.content) == ("compaction", "summed up")
        back = asked(done.to_param(), user("on"))
        after = client.beta.messages.create(**back, betas=betas)
        assert after.content[0].type == "text"
        wrong = asked(user("x"), done.to_param(), user("on"))
        with pytest.raises(anthropic.BadRequestError) as caught:
            client.beta.messages.create(**wrong, betas=betas)
        assert caught.value.error_code == "compaction_block_misplaced"


def test_anthropic_errors_are_typed_by_the_sdk() -> None:
    plan = [error(429, retry_after=7), error(529), error(500), error(413)]
    sim = engine(faults=plan, models=Models([*CATALOGUE, SMALL]))
    with claude(sim) as client:
        with pytest.raises(anthropic.RateLimitError) as limited:
            client.messages.create(**asked(user("x")))
        assert limited.value.response.headers["retry-after"] == "7"
        assert limited.value.type == "rate_limit_error"
        for kind in (anthropic.OverloadedError, anthropic.InternalServerError,
                     anthropic.ContentTooLargeError):  # fmt: skip
            with pytest.raises(kind):
                client.messages.create(**asked(user("x")))
        with pytest.raises(anthropic.BadRequestError) as long:
            client.messages.create(**{**asked(user(words(1, 2000))), "model": SMALL.id})
        assert long.value.api_message == "prompt is too long: 2000 tokens > 1000 maximum"
        with pytest.raises(anthropic.NotFoundError):
            client.messages.create(**{**asked(user("x")), "model": "claude-0"})
        with pytest.raises(anthropic.NotFoundError):
            client.models.retrieve("claude-0")
        with pytest.raises(anthropic.BadRequestError, match="at least one message"):
            client.messages.create(**asked())
    locked = engine(keys=["other"])
    with claude(locked) as client, pytest.raises(anthropic.AuthenticationError):
        client.messages.create(**asked(user("x")))


def test_anthropic_client_retries_what_passes() -> None:
    sim = engine(script("there"), faults=[error(529, retry_after=0.001)] * 2)
    with claude(sim, max_retries=3) as client:
        done = client.messages.create(**asked(user("x")))
    assert done.content[0].type == "text"
    assert [e.status for e in sim.log] == [529, 529, 200]


# --- openai

FUNCTION: Any = {
    "type": "function",
    "function": {"name": "Read", "description": "a file", "parameters": {"type": "object"}},
}


@pytest.mark.parametrize("streaming", [False, True])
def test_chat_completions_with_a_tool_round(streaming: bool) -> None:
    sim = engine(script([thinking_block("hm"), text("look"), call("Read", '{"n":1.50}')], "done"))
    with gpt(sim) as client:
        messages: list[Any] = [
            {"role": "system", "content": words(0, 2000)},
            {"role": "user", "content": "go"},
        ]
        told, calls, usage = _chatted(client, messages, streaming)
        assert told == "look"
        assert [(c["name"], c["arguments"]) for c in calls] == [("Read", '{"n":1.50}')]
        assert usage.completion_tokens_details.reasoning_tokens == 1
        messages += [
            {"role": "assistant", "content": told, "tool_calls": [
                {"id": c["id"], "type": "function",
                 "function": {"name": c["name"], "arguments": c["arguments"]}} for c in calls]},
            {"role": "tool", "tool_call_id": calls[0]["id"], "content": "found"},
        ]  # fmt: skip
        told, calls, usage = _chatted(client, messages, streaming)
        assert (told, calls) == ("done", [])
        assert usage.prompt_tokens_details.cached_tokens == 2048 - 128
        assert usage.prompt_tokens > 2000
        assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert list(sim.bills) == ["talk"]


def _chatted(client: openai.OpenAI, messages: Any, streaming: bool) -> tuple[str, Any, Any]:
    given: Any = {
        "model": GPT, "messages": messages, "tools": [FUNCTION], "prompt_cache_key": "talk",
    }  # fmt: skip
    if not streaming:
        done = client.chat.completions.create(**given)
        message = done.choices[0].message
        calls = [
            {"id": c.id, **c.function.model_dump()}
            for c in message.tool_calls or []
            if c.type == "function"
        ]
        assert done.choices[0].finish_reason == ("tool_calls" if calls else "stop")
        return message.content or "", calls, done.usage
    told, parts, usage = "", {}, None
    options: Any = {"include_usage": True}
    for chunk in client.chat.completions.create(**given, stream=True, stream_options=options):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            told += choice.delta.content or ""
            for piece in choice.delta.tool_calls or []:
                one = parts.setdefault(piece.index, {"id": "", "name": "", "arguments": ""})
                one["id"] += piece.id or ""
                if piece.function:
                    one["name"] += piece.function.name or ""
                    one["arguments"] += piece.function.arguments or ""
    return told, list(parts.values()), usage


@pytest.mark.parametrize("streaming", [False, True])
def test_responses_with_reasoning_and_a_tool_round(streaming: bool) -> None:
    sim = engine(
        script([thinking_block("hm"), text("look"), call("Read", '{"n":1.50}')], "done", "more")
    )
    tool: Any = {
        "type": "function",
        "name": "Read",
        "parameters": {"type": "object"},
        "strict": None,
    }
    with gpt(sim) as client:
        given: Any = {
            "model": GPT, "tools": [tool], "instructions": words(0, 2000), "store": False,
            "include": ["reasoning.encrypted_content"], "prompt_cache_key": "talk",
        }  # fmt: skip
        items: list[Any] = [{"role": "user", "content": "go"}]
        first = _responded(client, streaming, **given, input=items)
        assert [o.type for o in first.output] == ["reasoning", "message", "function_call"]
        assert first.output_text == "look"
        calling = first.output[2]
        assert calling.arguments == '{"n":1.50}'
        items += [o.model_dump(exclude_none=True) for o in first.output]
        found: Any = {"type": "function_call_output", "call_id": calling.call_id, "output": "found"}
        second = _responded(client, streaming, **given, input=[*items, found])
        assert second.output_text == "done"
        assert second.status == "completed"
        assert second.usage.input_tokens_details.cached_tokens == 2048 - 128
        broken: Any = {**items[1], "encrypted_content": "AAAA"}
        with pytest.raises(openai.BadRequestError, match="could not be verified"):
            client.responses.create(**given, input=[items[0], broken, *items[2:], found])
        other = {**given, "model": "gpt-5"}
        with pytest.raises(openai.BadRequestError, match="could not be verified"):
            client.responses.create(**other, input=[*items, found])


def _responded(client: openai.OpenAI, streaming: bool, **given: Any) -> Any:
    if not streaming:
        return client.responses.create(**given)
    with client.responses.stream(**given) as stream:
        kinds = [event.type for event in stream]
        assert kinds[0] == "response.created"
        assert kinds[-1] == "response.completed"
        return stream.get_final_response()


def test_a_stored_response_is_continued_by_its_id() -> None:
    sim = engine(script([thinking_block("hm"), text("one")], "two"))
    with gpt(sim) as client:
        first = client.responses.create(model=GPT, input="go")
        counted = client.responses.input_tokens.count(model=GPT, input="x" * 40)
        assert counted.input_tokens == 10
        second = client.responses.create(model=GPT, input="on", previous_response_id=first.id)
        assert second.output_text == "two"
        with pytest.raises(openai.BadRequestError, match="not found"):
            client.responses.create(model=GPT, input="on", previous_response_id="resp_0")
    assert sim.log[2].charge.total > sim.log[0].charge.total


def test_keys_route_automatic_caching() -> None:
    with gpt(engine()) as client:
        reads = []
        for key in ("a", "a", "b", "a"):
            given: Any = [{"role": "user", "content": words(1, 4000)}]
            done = client.chat.completions.create(model=GPT, messages=given, prompt_cache_key=key)
            assert done.usage is not None
            assert done.usage.prompt_tokens_details is not None
            reads.append(done.usage.prompt_tokens_details.cached_tokens)
    assert reads == [0, 3968, 0, 3968]


def test_openai_errors_are_typed_by_the_sdk() -> None:
    sim = engine(
        faults=[error(429, retry_after=1), error(500)],
        models=Models([*CATALOGUE, ModelSpec("gpt-small", "openai", 1000)]),
    )
    with gpt(sim) as client:
        hello: Any = [{"role": "user", "content": "x"}]
        with pytest.raises(openai.RateLimitError):
            client.chat.completions.create(model=GPT, messages=hello)
        with pytest.raises(openai.InternalServerError):
            client.responses.create(model=GPT, input="x")
        for send in (
            lambda text: client.chat.completions.create(
                model="gpt-small", messages=[{"role": "user", "content": text}]
            ),
            lambda text: client.responses.create(model="gpt-small", input=text),
        ):
            with pytest.raises(openai.BadRequestError, match="maximum context length is 1000") as e:
                send(words(1, 2000))
            assert e.value.code == "context_length_exceeded"
        with pytest.raises(openai.NotFoundError):
            client.chat.completions.create(model="gpt-0", messages=hello)
        orphan: Any = [*hello, {"role": "tool", "tool_call_id": "a", "content": "x"}]
        with pytest.raises(openai.BadRequestError, match="tool_use_id"):
            client.chat.completions.create(model=GPT, messages=orphan)
        robot: Any = [{"role": "robot", "content": "x"}]
        with pytest.raises(openai.BadRequestError, match="roles"):
            client.chat.completions.create(model=GPT, messages=robot)
        assert GPT in {m.id for m in client.models.list()}
        assert client.models.retrieve(GPT).id == GPT
    with gpt(engine(keys=["other"])) as client, pytest.raises(openai.AuthenticationError):
        client.chat.completions.create(model=GPT, messages=hello)
