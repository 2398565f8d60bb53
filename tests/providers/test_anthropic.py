from __future__ import annotations

import json
from dataclasses import replace

import pytest

from reverie.errors import ProviderError, Unreachable
from reverie.providers import AnthropicModel, anthropic_model
from reverie.testing import ManualClock
from reverie.transcript import Usage
from reverie.wire import Delta, Reply
from reverie.world import RetryNotice
from tests.conftest import Scale
from tests.providers.wire import JSON, Answer, Wire, ask, patient, sse, talk, watched, wire

pytestmark = pytest.mark.spec("14")

STRANGE = (
    '{"zeta":1e3,"type":"mystery_result","alpha":[1.0,-0,{"b":2,"a":1E+2}],'
    '"text":"\\u00e9","big":12345678901234567890}'
)
START = (
    '{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant",'
    '"model":"claude-opus-5-5","content":[],"stop_reason":null,"stop_sequence":null,'
    '"diagnostics":{"cache_miss_reason":{"type":"tools_changed","cache_missed_input_tokens":9}},'
    '"usage":{"input_tokens":5,"cache_creation_input_tokens":30,"cache_read_input_tokens":200,'
    '"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20},'
    '"output_tokens":1}}}'
)
END = (
    '{"type":"message_delta","delta":{"stop_reason":"%s","stop_sequence":null},'
    '"usage":{"output_tokens":42,"input_tokens":null},"context_management":{"applied_edits":'
    '[{"type":"clear_tool_uses_20250919","cleared_tool_uses":1,"cleared_input_tokens":1e2}]}}'
)
STOP = '{"type":"message_stop"}'


def begin(at: int, block: str) -> str:
    return f'{{"type":"content_block_start","index":{at},"content_block":{block}}}'


def delta(at: int, text: str) -> str:
    return f'{{"type":"content_block_delta","index":{at},"delta":{text}}}'


def close(at: int) -> str:
    return f'{{"type":"content_block_stop","index":{at}}}'


RECORDED = (
    START,
    '{"type": "ping"}',
    begin(0, '{"type":"thinking","thinking":"","signature":""}'),
    delta(0, '{"type":"thinking_delta","thinking":"Let me \\u00e9"}'),
    delta(0, '{"type":"thinking_delta","thinking":" see 😀"}'),
    delta(0, '{"type":"signature_delta","signature":"c2ln"}'),
    close(0),
    begin(1, STRANGE),
    close(1),
    begin(2, '{"text":"","type":"text","confidence":1.50}'),
    delta(2, '{"type":"text_delta","text":"Gr\\ud83d"}'),
    delta(2, '{"type":"text_delta","text":"\\ude00ü\\n"}'),
    delta(2, '{"type":"citations_delta","citation":{"b":1.0,"a":"x"}}'),
    delta(2, '{"type":"citations_delta","citation":{"b":1e0}}'),
    delta(2, '{"type":"weather_delta","weather":"sun","scores":[1.0]}'),
    delta(2, '{"type":"weather_delta","weather":"ny","scores":[2e0],"level":1E1,"gone":null}'),
    close(2),
    begin(3, '{"type":"tool_use","id":"toolu_1","name":"Read","input":{},"caller":{"x":1.0}}'),
    delta(3, '{"type":"input_json_delta","partial_json":""}'),
    delta(3, '{"type":"input_json_delta","partial_json":"{\\"z\\": 1e3,"}'),
    delta(3, '{"type":"input_json_delta","partial_json":" \\"a\\":[1.0, \\"\\\\u00e9😀\\"]}"}'),
    close(3),
    END % "tool_use",
    STOP,
)
TEXT = (
    '{"text":"Gr\\ud83d\\ude00ü\\n","type":"text","confidence":1.50,'
    '"citations":[{"b":1.0,"a":"x"},{"b":1e0}],"weather":"sunny","scores":[1.0,2e0],"level":1E1,'
    '"gone":null}'
)
CALL = (
    '{"type":"tool_use","id":"toolu_1","name":"Read",'
    '"input":{"z": 1e3, "a":[1.0, "\\u00e9😀"]},"caller":{"x":1.0}}'
)
BLOCKS = [
    '{"type":"thinking","thinking":"Let me \\u00e9 see 😀","signature":"c2ln"}',
    STRANGE,
    TEXT,
    CALL,
]
WHOLE = (
    '{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5-5",'
    f'"content":[{",".join(BLOCKS)}],'
    '"stop_reason":"tool_use","usage":{"input_tokens":5,"cache_creation_input_tokens":30,'
    '"cache_read_input_tokens":200,"cache_creation":{"ephemeral_1h_input_tokens":20},'
    '"output_tokens":42},"context_management":{"applied_edits":[{"cleared_input_tokens":1e2}]},'
    '"diagnostics":null}'
)
DONE = Answer(sse(*RECORDED))
SHORT = Answer(
    sse(START, begin(0, '{"type":"text","text":"ok"}'), close(0), END % "end_turn", STOP)
)


def model(server: Wire, *, limit: int = 0, streaming: bool = True) -> AnthropicModel:
    return anthropic_model(
        "claude-opus-5-5",
        retries=patient(limit),
        key="sk-secret",
        base_url=server.url,
        streaming=streaming,
    )


async def got(answer: Answer, *, streaming: bool = True) -> Reply:
    async with wire(answer) as server:
        made = model(server, streaming=streaming)
        _, reply = await ask(made, talk().request())
        await made.aclose()
    assert reply is not None
    return reply


# --- out and back


@pytest.mark.parametrize("streaming", [True, False])
async def test_what_came_is_sent_back_byte_for_byte(streaming: bool) -> None:
    first = DONE if streaming else Answer(WHOLE.encode(), kind=JSON)
    conversation = talk()
    async with wire(first, SHORT) as server:
        made = model(server, streaming=streaming)
        _, reply = await ask(made, conversation.request())
        assert reply is not None
        assert [b.raw for b in reply.blocks] == BLOCKS
        conversation.answer(reply).result("toolu_1", "done")
        second = conversation.request()
        if not streaming:
            server.answers[:] = [Answer(WHOLE.encode(), kind=JSON)]
        await ask(made, second)
        await made.aclose()
    sent = server.asked[1].body.decode()
    for raw in BLOCKS:
        assert raw in sent
    assert ",".join(BLOCKS) in sent
    assert sent.startswith(second.body()[:-1])  # our bytes, and behind them what is no part of it
    assert server.asked[0].headers["content-type"] == "application/json"


async def test_both_ways_give_the_same_reply() -> None:
    streamed = await got(DONE)
    whole = await got(Answer(WHOLE.encode(), kind=JSON), streaming=False)
    assert streamed.blocks == whole.blocks
    assert streamed.usage == whole.usage == Usage(5, 200, 30, 42, 20)
    assert streamed.stop_reason == whole.stop_reason == "tool_use"
    assert streamed.message_id == whole.message_id == "msg_1"
    assert streamed.provider == "anthropic"
    assert streamed.tool_calls[0].raw == '{"z": 1e3, "a":[1.0, "\\u00e9😀"]}'
    assert json.loads(streamed.applied_edits)[0]["type"] == "clear_tool_uses_20250919"
    assert whole.applied_edits == '[{"cleared_input_tokens":1e2}]'
    assert json.loads(streamed.diagnostics)["cache_miss_reason"]["type"] == "tools_changed"
    assert whole.diagnostics == "null"


async def test_a_server_that_does_not_stream_is_understood() -> None:
    reply = await got(Answer(WHOLE.encode(), kind=JSON + "; charset=utf-8"))
    assert [b.raw for b in reply.blocks] == BLOCKS


@pytest.mark.parametrize(
    "answer",
    [
        Answer(sse(*RECORDED, end="\r\n")),
        Answer(sse(*RECORDED, end="\r")),
        Answer(sse(*RECORDED), pieces=1),
        Answer(sse(*RECORDED), pieces=7),
        Answer(sse(*RECORDED).replace(b"\n\n", b"\n\n: comment\n\n")),
        Answer(sse(*RECORDED), measured=True),
        Answer(sse(*RECORDED) + b"data: garbage after the end \xff\n\n"),
        Answer(sse(*RECORDED), headers=(("x-other", "1"),), kind=""),
    ],
    ids=["crlf", "cr", "single bytes", "sevens", "comments", "measured", "tail", "no type"],
)
async def test_the_same_stream_in_other_clothes(answer: Answer) -> None:
    assert [b.raw for b in (await got(answer)).blocks] == BLOCKS


async def test_deltas_are_shown_on_the_way() -> None:
    async with wire(DONE) as server:
        made = model(server)
        events, _ = await ask(made, talk().request())
        await made.aclose()
    shown = [e for e in events if isinstance(e, Delta)]
    assert "".join(e.text for e in shown if e.kind == "thinking") == "Let me é see 😀"
    assert "".join(e.text for e in shown if e.kind == "tool").startswith('{"z": 1e3')
    assert isinstance(events[-1], Reply)


# --- streams that break


SMALL = (
    '{"type":"message_start","message":{"id":"m","usage":{"input_tokens":1}}}',
    begin(0, '{"type":"tool_use","id":"t1","name":"Read","input":{}}'),
    delta(0, '{"type":"input_json_delta","partial_json":"{\\"a\\":"}'),
    delta(0, '{"type":"input_json_delta","partial_json":"\\"é😀\\"}"}'),
    close(0),
    '{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":4}}',
    STOP,
)


async def test_a_stream_cut_at_any_byte_yields_nothing(scale: Scale) -> None:
    recorded = Answer(sse(*scale.pick(SMALL, RECORDED)))
    body = recorded.body
    last = body.rindex(b"\n")  # the blank line that ends the last event
    async with wire(recorded) as server:
        made = model(server)
        request = talk().request()
        for cut in range(len(body) + 1):
            server.answers[:] = [replace(recorded, cut=cut, measured=cut % 2 == 0)]
            if cut > last:
                assert (await ask(made, request))[1] is not None
                continue
            events, problem = await watched(made, request)
            assert not any(isinstance(event, Reply) for event in events), cut
            assert isinstance(problem, Unreachable)
        await made.aclose()
    assert len(server.asked) == len(body) + 1


async def test_a_cut_stream_is_tried_again_whole() -> None:
    conversation, clock = talk(), ManualClock()
    half = replace(DONE, cut=len(DONE.body) // 2)
    async with wire(half, half, DONE) as server:
        made = replace(model(server), retries=patient(5, clock))
        events, reply = await ask(made, conversation.request())
        await made.aclose()
    assert reply is not None
    assert [b.raw for b in reply.blocks] == BLOCKS
    assert clock.slept == [0.25, 0.5]
    assert [e.attempt for e in events if isinstance(e, RetryNotice)] == [1, 2]
    assert len({asked.body for asked in server.asked}) == 1


@pytest.mark.parametrize("limit", [0, 2, 5])
async def test_a_stream_that_always_breaks_ends(limit: int) -> None:
    clock = ManualClock()
    async with wire(replace(DONE, cut=700)) as server:
        made = replace(model(server), retries=patient(limit, clock))
        with pytest.raises(Unreachable):
            await ask(made, talk().request())
        await made.aclose()
    assert len(server.asked) == limit + 1
    assert len(clock.slept) == limit


@pytest.mark.parametrize(
    ("events", "said"),
    [
        (RECORDED[:-1], "broke off"),
        ((*RECORDED[:-3], *RECORDED[-2:]), "never closed"),
        ((START, "{not json", STOP), "cannot be read"),
        ((START, "[]", STOP), "cannot be read"),
        ((START, delta(7, '{"type":"text_delta","text":"x"}'), STOP), "no open block"),
        ((START, begin(0, '"text"'), STOP), "cannot be read"),
        ((STOP,), "cannot be read"),
        ((START, '{"type":"content_block_start","content_block":{}}', STOP), "no index"),
    ],
)
async def test_a_stream_that_makes_no_sense(events: tuple[str, ...], said: str) -> None:
    async with wire(Answer(sse(*events))) as server:
        made = model(server, limit=1)
        with pytest.raises(ProviderError, match=said):
            await ask(made, talk().request())
        await made.aclose()
    assert len(server.asked) == 2


async def test_an_error_in_the_stream_is_tried_again() -> None:
    broken = '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
    async with wire(Answer(sse(*RECORDED[:12], broken)), DONE) as server:
        made = model(server, limit=1)
        events, reply = await ask(made, talk().request())
        await made.aclose()
    assert reply is not None
    assert any(isinstance(e, RetryNotice) and "Overloaded" in e.reason for e in events)


@pytest.mark.parametrize(
    ("start", "deltas", "whole"),
    [
        (
            '{"type":"compaction","content":null,"encrypted_content":null}',
            (
                '{"type":"compaction_delta","content":"sum\\u00e9"}',
                '{"type":"compaction_delta","content":"mary","encrypted_content":"x=="}',
                '{"type":"compaction_delta","content":null,"encrypted_content":null}',
            ),
            '{"type":"compaction","content":"sum\\u00e9mary","encrypted_content":"x=="}',
        ),
        (
            '{"type":"new","list":[],"number":1.0}',
            ('{"type":"n","list":[ 1.0 ]}', '{"type":"n","list":[],"number":2e0,"more":{"a":1}}'),
            '{"type":"new","list":[1.0],"number":2e0,"more":{"a":1}}',
        ),
    ],
)
async def test_deltas_join_the_members_they_name(
    start: str, deltas: tuple[str, ...], whole: str
) -> None:
    events = (START, begin(0, start), *(delta(0, d) for d in deltas), close(0), END % "x", STOP)
    assert [b.raw for b in (await got(Answer(sse(*events)))).blocks] == [whole]


# --- calls that are not whole


def calling(pieces: list[str], stop: str) -> Answer:
    deltas = [delta(0, json.dumps({"type": "input_json_delta", "partial_json": p})) for p in pieces]
    opened = begin(0, '{"type":"tool_use","id":"toolu_1","name":"Write","input":{}}')
    return Answer(sse(START, opened, *deltas, close(0), END % stop, STOP))


@pytest.mark.parametrize("pieces", [[], ['{"path": "a", "te']])
@pytest.mark.parametrize("stop", ["max_tokens", "model_context_window_exceeded", "refusal"])
async def test_a_call_cut_by_the_limit_is_no_call(pieces: list[str], stop: str) -> None:
    reply = await got(calling(pieces, stop))
    assert reply.tool_calls == ()
    assert reply.stop_reason == stop
    assert "Write was cut off" in reply.text
    assert "".join(pieces) in reply.text


async def test_a_whole_answer_cut_in_its_call_has_no_call() -> None:
    text = WHOLE.replace('"stop_reason":"tool_use"', '"stop_reason":"max_tokens"')
    reply = await got(Answer(text.encode(), kind=JSON), streaming=False)
    assert reply.tool_calls == ()
    assert '{"z": 1e3' in reply.text


@pytest.mark.parametrize(
    ("pieces", "seen"),
    [
        ([], "{}"),
        (["", " "], "{}"),
        (['{"a":1.0}'], '{"a":1.0}'),
        (['{"a":', "1.0"], '{"INVALID_JSON":"{\\"a\\":1.0"}'),
        (["[1]"], '{"INVALID_JSON":"[1]"}'),
    ],
)
async def test_the_input_of_a_finished_call(pieces: list[str], seen: str) -> None:
    assert (await got(calling(pieces, "tool_use"))).tool_calls[0].raw == seen


async def test_text_without_words_is_left_out() -> None:
    blank = Answer(
        sse(
            START,
            begin(0, '{"type":"text","text":""}'),
            delta(0, '{"type":"text_delta","text":"\\n\\n"}'),
            close(0),
            begin(1, '{"type":"tool_use","id":"t","name":"Read","input":{}}'),
            close(1),
            END % "tool_use",
            STOP,
        )
    )
    assert [b.type for b in (await got(blank)).blocks] == ["tool_use"]


async def test_usage_of_several_rounds_is_that_of_the_last_message() -> None:
    text = WHOLE.replace(
        '"output_tokens":42}',
        '"output_tokens":42,"iterations":[{"type":"message","input_tokens":1,"output_tokens":2},'
        '{"type":"message","input_tokens":3,"output_tokens":4,"cache_read_input_tokens":5},'
        '{"type":"compaction","input_tokens":900,"output_tokens":90}]}',
    )
    assert (await got(Answer(text.encode(), kind=JSON))).usage == Usage(3, 5, 0, 4)
