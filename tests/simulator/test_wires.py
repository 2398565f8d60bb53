"""What the wire formats do with any body, and what they send, without a socket."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.simulator import (
    Engine,
    HttpPayload,
    Script,
    befallen,
    call,
    chat,
    cut,
    messages,
    responses,
    script,
    stream_events,
    thinking_block,
)
from reverie.transcript import block

from .talk import KEY, body, engine, text, user

pytestmark = pytest.mark.spec("14")

names = ["role", "content", "type", "text", "tool_calls", "function", "arguments", "id", "name",
         "call_id", "output", "summary", "encrypted_content", "image_url"]  # fmt: skip
words = ["user", "assistant", "system", "developer", "tool", "message", "function_call",
         "reasoning", "function_call_output", "input_text", "image_url", "{}", "x"]  # fmt: skip
values: Any = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(words) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(names), inner, max_size=5)
    ),
    max_leaves=15,
)


@given(st.lists(values, max_size=4), st.dictionaries(st.sampled_from(["tools", "model"]), values))
def test_any_body_of_openai_is_answered_or_refused_in_its_shape(items, other) -> None:
    async def both() -> list[HttpPayload]:
        sim = engine()
        asked = [
            (chat, {"model": "gpt-5", "messages": items, **other}),
            (responses, {"model": "gpt-5", "input": items, **other}),
        ]
        return [
            await send(sim, json.dumps({**given_body, "stream": streaming}).encode(), KEY)
            for send, given_body in asked
            for streaming in (False, True)
        ]

    for sending in anyio.run(both):
        assert sending.status == 200 or 400 <= sending.status < 500
        if sending.status != 200:
            assert json.loads(b"".join(sending.pieces))["error"]["message"]


def events(sending: HttpPayload) -> list[dict[str, Any]]:
    text = b"".join(sending.pieces).decode()
    rows = [part.partition("data: ") for part in text.split("\n\n") if part]
    found = [json.loads(data) for _, _, data in rows]
    assert [head for head, _, _ in rows] == [f"event: {e['type']}\n" for e in found]
    return found


async def sent(sim: Engine, **other: Any) -> HttpPayload:
    asked = {**body(user("x"), **other), "stream": True}
    return await messages(sim, json.dumps(asked).encode(), KEY)


STRANGE = '{"type":"mystery","zeta":1e3,"alpha":[1.0,-0,{"b":2,"a":1E+2}]}'
INPUT = '{"n":1.50,"b":{"z":1,"a":"\\u00e9"},"e":1e3}'


async def test_events_bring_the_blocks_byte_for_byte() -> None:
    answer = [thinking_block("hm"), text("wörds"), block(STRANGE), call("Read", INPUT, "toolu_1")]
    sending = await sent(engine(script(answer)))
    raw = b"".join(sending.pieces).decode()
    assert '"content_block":' + STRANGE in raw
    found = events(sending)
    kinds = [e["type"] for e in found]
    assert kinds[0] == "message_start"
    assert kinds[-2:] == ["message_delta", "message_stop"]
    assert "ping" in kinds
    assert found[0]["message"]["content"] == []
    assert found[0]["message"]["stop_reason"] is None
    deltas = [e["delta"] for e in found if e["type"] == "content_block_delta"]
    typed = "".join(d["partial_json"] for d in deltas if d["type"] == "input_json_delta")
    assert typed == INPUT
    assert [d["type"] for d in deltas if "signature" in d] == ["signature_delta"]
    starts = [e["content_block"] for e in found if e["type"] == "content_block_start"]
    assert starts[3] == {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}}
    assert found[-2]["delta"]["stop_reason"] == "tool_use"
    assert found[-2]["usage"]["output_tokens"] > 1


async def test_both_modes_say_the_same() -> None:
    answer = [text("words"), call("Read", INPUT)]
    one = engine(script(answer))
    whole = await messages(one, json.dumps(body(user("x"))).encode(), KEY)
    message = json.loads(whole.pieces[0])
    found = events(await sent(engine(script(answer))))
    start = found[0]["message"]
    assert {**start, "content": 0, "stop_reason": 0, "usage": 0} == {
        **message, "content": 0, "stop_reason": 0, "usage": 0,
    }  # fmt: skip
    assert found[-2]["usage"] == message["usage"]
    assert f'"input":{INPUT}' in whole.pieces[0].decode()


async def test_half_a_character_goes_in_and_out() -> None:
    half = "a\ud83db"
    sim = engine(script(*[[text(half), call("Read", json.dumps({"h": half}))]] * 6))
    talk = [{"role": "user", "content": half}]
    sends: list[Any] = [
        (messages, {**body(*talk), "metadata": {"user_id": half}}),
        (chat, {"model": "gpt-5", "messages": talk, "prompt_cache_key": half}),
        (responses, {"model": "gpt-5", "input": half, "user": half}),
    ]
    for send, asked in sends:
        for streaming in (False, True):
            given_text = json.dumps({**asked, "stream": streaming}).encode()
            sending = await send(sim, given_text, KEY)
            assert sending.status == 200
            assert b"ud83d" in b"".join(sending.pieces)


@given(st.lists(st.text(max_size=9), max_size=6), st.integers(0, 60))
def test_a_cut_keeps_exactly_so_many_bytes(pieces, after) -> None:
    sending = stream_events(pieces, {})
    whole = b"".join(sending.pieces)
    short = befallen(sending, cut(after))
    assert b"".join(short.pieces) == whole[:after]
    assert short.cut


def test_a_script_without_entries_says_its_last_word() -> None:
    assert Script(())({}) == "The script has no more answers."
