from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from reverie.errors import ProviderError, Unreachable
from reverie.providers import OpenAIModel, WireFormat, openai_model
from reverie.transcript import Usage, block
from reverie.wire import Delta, Reply
from reverie.world import RetryNotice
from tests.conftest import Scale
from tests.providers.wire import (
    HEAD,
    JSON,
    Answer,
    Talk,
    Wire,
    ask,
    patient,
    sse,
    talk,
    wire,
)

pytestmark = pytest.mark.spec("14")
FORMATS: list[WireFormat] = ["chat", "responses"]
GPT = replace(HEAD, model="gpt-5")


def model(
    server: Wire, style: WireFormat, *, limit: int = 0, streaming: bool = True, name: str = "gpt-5"
) -> OpenAIModel:
    return openai_model(
        name,
        retries=patient(limit),
        key="sk-secret",
        base_url=server.url + "/v1",
        wire=style,
        streaming=streaming,
    )


async def got(
    answer: Answer, style: WireFormat, *, streaming: bool = True, conversation: Talk | None = None
) -> Reply:
    async with wire(answer) as server:
        made = model(server, style, streaming=streaming)
        _, reply = await ask(made, (conversation or talk(GPT)).request())
        await made.aclose()
    assert reply is not None
    return reply


def body(request_of: Talk, style: WireFormat, **more: Any) -> dict[str, Any]:
    made = openai_model(
        "gpt-5", retries=patient(), base_url="http://local.test/v1", wire=style, **more
    )
    return json.loads(made.body(request_of.request()))


# --- chat completions


def chunk(delta: str, finish: str = "null") -> str:
    return (
        '{"id":"chatcmpl-1","object":"chat.completion.chunk","model":"gpt-5-x","choices":'
        f'[{{"index":0,"delta":{delta},"finish_reason":{finish}}}]}}'
    )


CHAT_USAGE = (
    '"usage":{"prompt_tokens":1000,"completion_tokens":50,"total_tokens":1050,'
    '"prompt_tokens_details":{"cached_tokens":800,"cache_write_tokens":150}}'
)
CHAT = (
    chunk('{"role":"assistant","content":"","reasoning_content":"Hm \\u00e9"}'),
    chunk('{"reasoning_content":"m"}'),
    chunk('{"content":"I re"}'),
    chunk('{"content":"ad 😀."}'),
    chunk(
        '{"tool_calls":[{"index":0,"id":"call_aaaaaaaaaaaaaaaa","type":"function",'
        '"function":{"name":"Read","arguments":""},"extra_content":{"sig":1.0}}]}'
    ),
    chunk('{"tool_calls":[{"index":0,"function":{"arguments":"{\\"z\\": 1e3,"}}]}'),
    chunk('{"tool_calls":[{"index":0,"function":{"arguments":"\\n \\"a\\":1.0}"}}]}'),
    chunk(
        '{"tool_calls":[{"index":1,"id":"call_bbbbbbbbbbbbbbbb","type":"function",'
        '"function":{"name":"Read","arguments":"{}"}}]}'
    ),
    chunk("{}", '"tool_calls"'),
    f'{{"id":"chatcmpl-1","model":"gpt-5-x","choices":[],{CHAT_USAGE}}}',
    "[DONE]",
)
MESSAGE = (
    '{"role":"assistant","content":"I read 😀.","reasoning_content":"Hm \\u00e9m","tool_calls":['
    '{"id":"call_aaaaaaaaaaaaaaaa","type":"function","extra_content":{"sig":1.0},'
    '"function":{"name":"Read","arguments":"{\\"z\\": 1e3,\\n \\"a\\":1.0}"}},'
    '{"id":"call_bbbbbbbbbbbbbbbb","type":"function","function":{"name":"Read","arguments":"{}"}}]}'
)
CHAT_WHOLE = (
    '{"id":"chatcmpl-1","model":"gpt-5-x","choices":[{"index":0,"finish_reason":"tool_calls",'
    f'"message":{MESSAGE}}}],{CHAT_USAGE}}}'
)

# --- responses

REASONING = '{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAA","n":1e3}'
SAID = (
    '{"id":"msg_1","type":"message","status":"completed","role":"assistant","phase":"commentary",'
    '"content":[{"type":"output_text","annotations":[],"text":"I read \\u00e9."}]}'
)
CALL_A = (
    '{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_aaaaaaaaaaaaaaaa",'
    '"name":"Read","arguments":"{\\"z\\": 1e3,\\n \\"a\\":1.0}"}'
)
CALL_B = (
    '{"id":"fc_2","type":"function_call","status":"completed","call_id":"call_bbbbbbbbbbbbbbbb",'
    '"name":"Read","arguments":"{}"}'
)
STRANGER = '{"type":"brand_new_call","score":1.50}'
ITEMS = [REASONING, SAID, CALL_A, STRANGER, CALL_B]
RESPONSE = (
    '{"id":"resp_1","object":"response","status":"completed","model":"gpt-5-x",'
    f'"output":[{",".join(ITEMS)}],'
    '"prompt_cache_diagnostics":{"cache_hit":{}},'
    '"usage":{"input_tokens":1000,"input_tokens_details":{"cached_tokens":800,'
    '"cache_write_tokens":150},"output_tokens":50,"total_tokens":1050}}'
)


def response_events(response: str = RESPONSE) -> list[str]:
    done = [
        f'{{"type":"response.output_item.done","output_index":{n},"item":{item}}}'
        for n, item in enumerate(ITEMS)
    ]
    return [
        '{"type":"response.created","response":{"id":"resp_1","status":"in_progress"}}',
        '{"type":"response.reasoning_summary_text.delta","delta":"Hm"}',
        '{"type":"response.output_text.delta","output_index":1,"delta":"I read é."}',
        '{"type":"response.function_call_arguments.delta","delta":"{"}',
        *done,
        '{"type":"response.brand_new.thing"}',
        f'{{"type":"response.completed","response":{response}}}',
    ]


STREAMED = {"chat": sse(*CHAT), "responses": sse(*response_events())}
WHOLE = {"chat": CHAT_WHOLE, "responses": RESPONSE}
SENT_BACK = {"chat": MESSAGE, "responses": ",".join(ITEMS)}
OK = {
    "chat": sse(chunk('{"content":"ok"}', '"stop"'), "[DONE]"),
    "responses": sse(
        '{"type":"response.completed","response":{"id":"r","status":"completed","output":'
        '[{"type":"message","content":[{"type":"output_text","text":"ok"}]}]}}'
    ),
}


def answer_of(style: WireFormat, streaming: bool) -> Answer:
    if streaming:
        return Answer(STREAMED[style])
    return Answer(WHOLE[style].encode(), kind=JSON)


@pytest.mark.parametrize("style", FORMATS)
@pytest.mark.parametrize("streaming", [True, False])
async def test_an_answer_in_our_form(style: WireFormat, streaming: bool) -> None:
    reply = await got(answer_of(style, streaming), style, streaming=streaming)
    assert [b.type for b in reply.blocks] == ["text", "tool_use", "tool_use", "openai_items"]
    assert reply.usage == Usage(50, 800, 150, 50)
    assert reply.stop_reason == "tool_use"
    assert reply.model == "gpt-5-x"
    assert reply.provider == f"openai-{style}"
    assert reply.tool_calls[0].raw == '{"z": 1e3,  "a":1.0}'
    assert [c.id for c in reply.tool_calls] == ["call_aaaaaaaaaaaaaaaa", "call_bbbbbbbbbbbbbbbb"]
    assert reply.diagnostics == ("null" if style == "chat" else '{"cache_hit":{}}')


@pytest.mark.parametrize("style", FORMATS)
async def test_deltas_are_shown_on_the_way(style: WireFormat) -> None:
    async with wire(Answer(STREAMED[style])) as server:
        made = model(server, style)
        events, _ = await ask(made, talk(GPT).request())
        await made.aclose()
    kinds = {e.kind for e in events if isinstance(e, Delta)}
    assert kinds == {"text", "thinking", "tool"}


@pytest.mark.parametrize("style", FORMATS)
@pytest.mark.parametrize("streaming", [True, False])
async def test_its_own_items_go_back_verbatim(style: WireFormat, streaming: bool) -> None:
    conversation = talk(GPT)
    async with wire(answer_of(style, streaming)) as server:
        made = model(server, style, streaming=streaming)
        _, reply = await ask(made, conversation.request())
        assert reply is not None
        conversation.answer(reply)
        conversation.result("call_aaaaaaaaaaaaaaaa", "A").result("call_bbbbbbbbbbbbbbbb", "B")
        await ask(made, conversation.request())
        await made.aclose()
    assert SENT_BACK[style] in server.asked[1].body.decode()
    first, second = (json.loads(a.body) for a in server.asked)
    assert first["prompt_cache_key"] == second["prompt_cache_key"]


@pytest.mark.parametrize("style", FORMATS)
async def test_only_the_same_model_gets_them(style: WireFormat) -> None:
    reply = await got(Answer(STREAMED[style]), style)
    for head in (replace(GPT, model="gpt-5-mini"), GPT):
        conversation = talk(head).answer(reply).result("call_aaaaaaaaaaaaaaaa", "A")
        text = json.dumps(body(conversation, style))
        same = head is GPT
        assert ("gAAA" in text or "reasoning_content" in text) is same
        assert "I read" in text
        other: WireFormat = "chat" if style == "responses" else "responses"
        assert "gAAA" not in json.dumps(body(conversation, other))


@pytest.mark.parametrize("style", FORMATS)
async def test_items_whose_blocks_were_changed_are_not_sent(style: WireFormat) -> None:
    reply = await got(Answer(STREAMED[style]), style)
    changed = (block('{"type":"text","text":"[cut]"}'), *reply.blocks[1:])
    conversation = talk(GPT).add(replace(reply.record(), blocks=changed))
    text = json.dumps(body(conversation, style))
    assert "[cut]" in text
    assert "I read" not in text


async def test_a_plain_chat_message_needs_no_copy() -> None:
    text = CHAT_WHOLE.replace('"reasoning_content":"Hm \\u00e9m",', '"refusal":null,')
    text = text.replace('"extra_content":{"sig":1.0},', "").replace("\\n", "")
    reply = await got(Answer(text.encode(), kind=JSON), "chat", streaming=False)
    assert [b.type for b in reply.blocks] == ["text", "tool_use", "tool_use"]


# --- broken answers


@pytest.mark.parametrize("style", FORMATS)
async def test_a_stream_cut_at_any_byte_has_no_partial_call(
    style: WireFormat, scale: Scale
) -> None:
    text = STREAMED[style]
    ends = text.index(b'"finish_reason":"tool_calls"') if style == "chat" else len(text) - 1
    whole = text.index(b"\n\n", ends) + 1 if style == "chat" else ends
    step = scale.pick(5, 1)
    async with wire(Answer(text)) as server:
        made = model(server, style)
        request = talk(GPT).request()
        for cut in sorted({*range(0, len(text), step), *range(whole - 30, whole + 3)}):
            server.answers[:] = [Answer(text, cut=min(cut, len(text)))]
            try:
                _, reply = await ask(made, request)
            except Unreachable:
                assert cut <= whole, cut
            else:
                assert cut > whole
                assert reply is not None
                assert len(reply.tool_calls) == 2
        await made.aclose()


@pytest.mark.parametrize("style", FORMATS)
async def test_a_cut_stream_is_tried_again(style: WireFormat) -> None:
    text = STREAMED[style]
    async with wire(Answer(text, cut=200, measured=True), Answer(text)) as server:
        made = model(server, style, limit=1)
        events, reply = await ask(made, talk(GPT).request())
        await made.aclose()
    assert reply is not None
    assert sum(isinstance(e, RetryNotice) for e in events) == 1


@pytest.mark.parametrize(
    ("style", "events", "said"),
    [
        ("chat", ('{"error":{"message":"dead","type":"server_error"}}',), "dead"),
        ("chat", ("{oops",), "cannot be read"),
        ("chat", ("3",), "cannot be read"),
        ("chat", ("[DONE]",), "does not say why"),
        ("responses", ('{"type":"error","code":"server_error","message":"dead"}',), "dead"),
        (
            "responses",
            ('{"type":"response.failed","response":{"error":{"code":"x","message":"dead"}}}',),
            "dead",
        ),
        ("responses", ('{"type":"response.completed","response":{}}',), "no output"),
        ("responses", ("[]",), "cannot be read"),
    ],
)
async def test_a_stream_that_fails(style: WireFormat, events: tuple[str, ...], said: str) -> None:
    async with wire(Answer(sse(*events))) as server:
        made = model(server, style, limit=1)
        with pytest.raises(ProviderError, match=said):
            await ask(made, talk(GPT).request())
        await made.aclose()
    assert len(server.asked) == 2


async def test_a_call_cut_by_the_limit_is_no_call() -> None:
    cut = CHAT_WHOLE.replace('"tool_calls","message"', '"length","message"')
    cut = cut.replace('"arguments":"{}"', '"arguments":"{\\"a"')
    reply = await got(Answer(cut.encode(), kind=JSON), "chat", streaming=False)
    assert [b.type for b in reply.blocks] == ["text", "tool_use", "text"]
    assert reply.stop_reason == "max_tokens"
    items = [SAID, CALL_B.replace('"{}"', '"{"')]
    response = RESPONSE.replace(",".join(ITEMS), ",".join(items)).replace(
        '"status":"completed","model"',
        '"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"model"',
    )
    reply = await got(Answer(response.encode(), kind=JSON), "responses", streaming=False)
    assert [b.type for b in reply.blocks] == ["text", "text"]
    assert reply.stop_reason == "max_tokens"


async def test_items_come_from_the_events_where_the_end_has_none() -> None:
    events = response_events(RESPONSE.replace(",".join(ITEMS), ""))
    reply = await got(Answer(sse(*events)), "responses")
    assert len(reply.tool_calls) == 2


# --- names of calls


def called(*ids: str) -> Answer:
    calls = ",".join(
        f'{{"id":{json.dumps(i)},"type":"function","function":{{"name":"Read","arguments":"{{}}"}}}}'
        for i in ids
    )
    return Answer(
        f'{{"id":"c","choices":[{{"index":0,"finish_reason":"stop","message":{{"role":"assistant",'
        f'"content":null,"tool_calls":[{calls}]}}}}]}}'.encode(),
        kind=JSON,
    )


@pytest.mark.parametrize("name", ["call_0", "functions.Read:0", "a" * 20])
async def test_a_name_used_again_is_made_unique_and_mapped_back(name: str) -> None:
    conversation = talk(GPT)
    seen: list[str] = []
    async with wire(called(name)) as server:
        made = model(server, "chat")
        for _ in range(4):
            _, reply = await ask(made, conversation.request())
            assert reply is not None
            assert reply.stop_reason == "tool_use"
            seen.append(reply.tool_calls[0].id)
            conversation.answer(reply).result(seen[-1], "done")
        await ask(made, conversation.request())
        await made.aclose()
    assert len(set(seen)) == 4
    assert all(
        len(i) <= 64 and set(i) <= set("abcdefghijklmnopqrstuvwxyzRF0123456789_-") for i in seen
    )
    messages = json.loads(server.asked[-1].body)["messages"]
    assert [m["tool_calls"][0]["id"] for m in messages if m["role"] == "assistant"] == [name] * 4
    assert [m["tool_call_id"] for m in messages if m["role"] == "tool"] == [name] * 4
    bodies = [a.body.decode().removesuffix("]}") for a in server.asked]
    assert all(b.startswith(a) for a, b in pairwise(bodies))


@pytest.mark.parametrize("names", [("", ""), ("x", "x"), ("", "call_1")])
async def test_names_that_say_nothing_are_replaced(names: tuple[str, ...]) -> None:
    conversation = talk(GPT)
    async with wire(called(*names)) as server:
        made = model(server, "chat")
        _, reply = await ask(made, conversation.request())
        assert reply is not None
        ids = [c.id for c in reply.tool_calls]
        conversation.answer(reply).result(ids[1], "2").result(ids[0], "1")
        await ask(made, conversation.request())
        await made.aclose()
    assert len(set(ids)) == 2
    messages = json.loads(server.asked[-1].body)["messages"]
    assert [c["id"] for m in messages for c in m.get("tool_calls", ())] == ids
    assert {m["tool_call_id"] for m in messages if m["role"] == "tool"} == set(ids)
