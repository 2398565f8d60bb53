from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.wire import LARGEST, BadStream, EventParser, ServerEvent

pytestmark = pytest.mark.spec("14")

TEXT = (
    b"\xef\xbb\xbf: a comment\r\n"
    b'event: one\r\ndata: {"a": "\xc3\xa9\xf0\x9f\x98\x80"}\r\n\r\n'
    b"data: first\ndata:second\n\n"
    b":ping\n\n"
    b"id: 7\nretry: 10\nevent: empty\n\n"
    b"event: last\rdata: x: y\r\r"
)
EVENTS = [
    ServerEvent("one", '{"a": "é😀"}'),
    ServerEvent("", "first\nsecond"),
    ServerEvent("last", "x: y"),
]


def read(*chunks: bytes, largest: int = LARGEST) -> list[ServerEvent]:
    events = EventParser(largest)
    return [event for chunk in chunks for event in events.feed(chunk)]


def test_events_are_the_same_however_the_bytes_are_cut() -> None:
    assert read(TEXT) == EVENTS
    assert read(*(TEXT[i : i + 1] for i in range(len(TEXT)))) == EVENTS
    for at in range(len(TEXT)):
        assert read(TEXT[:at], TEXT[at:]) == EVENTS


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    assert read(b"\xef\xbb\xbfdata: 1\n\n") == [ServerEvent("", "1")]


def test_an_event_without_its_blank_line_is_never_seen() -> None:
    body = b"event: a\ndata: 1\n\nevent: b\ndata: 2\n\n"
    whole = body.index(b"event: b")
    for at in range(len(body)):
        assert len(read(body[:at])) == (0 if at < whole else 1)
    assert len(read(body)) == 2


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n")), max_size=5),
       st.sampled_from(["\n", "\r", "\r\n"]), st.lists(st.integers(0, 80), max_size=6))  # fmt: skip
def test_any_data_comes_through(lines: list[str], end: str, cuts: list[int]) -> None:
    body = "".join(f"data: {line}{end}" for line in lines).encode() + end.encode()
    places = [0, *sorted(c for c in cuts if c < len(body)), len(body)]
    pieces = [body[a:b] for a, b in pairwise(places)]
    assert read(*pieces) == ([ServerEvent("", "\n".join(lines))] if lines else [])


def test_what_is_no_text_or_has_no_end_is_refused() -> None:
    with pytest.raises(BadStream, match="UTF-8"):
        read(b"data: \xff\xfe\n\n")
    with pytest.raises(BadStream, match="larger"):
        read(*[b"x" * 50] * 3, largest=100)
    with pytest.raises(BadStream, match="larger"):
        read(*[b"data: " + b"x" * 40 + b"\n"] * 3, largest=100)
