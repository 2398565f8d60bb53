"""What fuzzing has found, one test each. None of these may come back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reverie.errors import ImportFailed, InvalidMessage
from reverie.interception import event, joined_stream
from reverie.memory import read_export, time_of
from reverie.secrets import scan
from reverie.text import Unreadable
from reverie.text import read as jsonc_read
from reverie.transcript import decode, encode, read
from reverie.wire import BadStream, format_of
from tests.fuzz.fuzzing import replay

pytestmark = [pytest.mark.spec("1.fuzz")]
HUGE = 10**400


@pytest.mark.parametrize("given", [HUGE, -HUGE, float("inf"), float("nan"), "0001-01-01T00:00:00"])
def test_a_time_that_no_clock_shows_is_none_in_an_import(given: Any) -> None:
    assert time_of(given) == 0.0


def test_a_line_of_brackets_is_no_list_of_memories(tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    path.write_text('{"a":' + "[" * 100_000)
    with pytest.raises(ImportFailed):
        list(read_export("mem0", path))


@pytest.mark.parametrize("at", [-HUGE, HUGE, "0001-01-01T00:00:00", "9999-12-31T23:59:59-14:00"])
def test_a_recorded_row_of_an_impossible_time_is_read_and_written(at: Any) -> None:
    row = {
        "type": "user",
        "uuid": "u1",
        "parentUuid": None,
        "sessionId": "s",
        "timestamp": at,
        "message": {"role": "user", "content": "Hello"},
    }
    found = read([json.dumps(row)])
    assert [decode(encode(entry)).at for entry in found.entries] == [0.0] * len(found.entries)
    assert found.entries


def test_a_type_that_is_a_list_tells_no_format() -> None:
    assert format_of([{"type": ["message"], "role": "user"}]) == ("chat", False)
    replay("body-responses", b'{"model":"m","input":[{"type":["message"],"role":0}]}')


def test_a_signature_that_no_text_can_hold_is_refused() -> None:
    replay("letter", b'{"sender":"ann","to":"bob","text":"x","number":1,"mac":"\xed\xa0\x80"}')
    replay("letter", b'{"sender":"ann","to":"bob","text":"x","number":1,"mac":"\\ud800"}')


@pytest.mark.parametrize(
    ("form", "sent"),
    [
        ("chat", {"choices": 5}),
        ("chat", {"choices": [{"delta": {"tool_calls": [7]}}]}),
        ("chat", {"choices": [{"delta": {"tool_calls": [{"index": [], "function": {}}]}}]}),
        ("messages", {"type": "content_block_start", "index": [], "content_block": {}}),
        ("responses", {"type": "response.x", "output_index": {}}),
    ],
)
def test_an_event_that_makes_no_sense_is_a_bad_stream(form: Any, sent: Any) -> None:
    with pytest.raises(BadStream):
        joined_stream(form, frozenset({"mine"})).feed(event("", sent))


def test_an_error_of_the_provider_passes_to_the_callers_own_client() -> None:
    sent = event("error", {"type": "error", "error": {"type": "overloaded_error", "message": "x"}})
    stream = joined_stream("messages", frozenset({"mine"}))
    assert stream.feed(sent) == sent
    assert stream.ended() is None


def test_half_a_character_in_an_events_name_is_no_crash() -> None:
    assert (
        joined_stream("messages", frozenset())
        .feed(event("ping", {"type": "\ud800"}))
        .startswith(b"event: ?\n")
    )


def test_a_message_that_cannot_be_read_stays_a_designed_error() -> None:
    with pytest.raises(InvalidMessage):
        decode("[" * 100_000)


def test_a_number_that_begins_with_a_nought_is_no_setting() -> None:
    for text in ('{"a":{"b":01,{', '{"a": -02}', '{"a": 1e}'):
        with pytest.raises(Unreadable):
            jsonc_read(text)


def test_a_letter_that_looks_like_another_within_an_encoding_is_no_failed_scan() -> None:
    assert scan("abc5555555555555555555555555555555555555\\555555555555555w0rd\n") == ()
