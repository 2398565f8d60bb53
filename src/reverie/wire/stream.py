"""Server-sent events, JSON in pieces, unfinished tool calls.

Server-sent events, read from bytes however they are cut.

`EventParser` takes the bytes of a stream in any pieces and gives back whole events alone: one
whose blank line has not come yet is never seen. Lines may end in LF, CR or CRLF, comments
and unknown fields are left out, and a character split between two pieces is put together
again. Nothing here knows what an event means; its data is the text as it was sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from reverie.errors import InvalidMessage
from reverie.light import dataclass
from reverie.transcript.blocks import Block, dump, join_members, members, parse, text_block

LARGEST = 64 * 1024 * 1024  # bytes of one event; more is not an answer but a fault
_END = re.compile(rb"[\r\n]")
_BOM = b"\xef\xbb\xbf"


class BadStream(ValueError):
    """Bytes that no event stream could hold."""


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event: its name, or the empty string, and its data."""

    name: str
    data: str


@dataclass(slots=True)
class EventParser:
    """A parser to feed with bytes. `feed` gives the events that are now complete."""

    largest: int = LARGEST
    _rest: bytearray = field(default_factory=bytearray)
    _scanned: int = 0  # bytes of `_rest` known to hold no line end
    _after_cr: bool = False
    _begun: bool = False
    _name: str = ""
    _data: list[str] = field(default_factory=list[str])
    _size: int = 0

    def feed(self, chunk: bytes) -> Iterator[ServerEvent]:
        self._rest += chunk
        for line in self._lines():
            event = self._line(line)
            if event is not None:
                yield event
        if len(self._rest) + self._size > self.largest:
            raise BadStream("one event is larger than any answer could be")

    def _lines(self) -> Iterator[bytes]:
        while True:
            if self._after_cr and self._rest:  # the LF of a CRLF that was cut in two
                self._after_cr = False
                if self._rest[0] == 0x0A:
                    del self._rest[0]
            end = self._line_end()
            if end < 0:
                self._scanned = len(self._rest)
                return
            self._after_cr = self._rest[end] == 0x0D
            line = bytes(self._rest[:end])
            del self._rest[: end + 1]
            self._scanned = 0
            yield line

    def _line_end(self) -> int:
        found = _END.search(self._rest, self._scanned)
        return found.start() if found else -1

    def _line(self, line: bytes) -> ServerEvent | None:
        if not self._begun:
            self._begun = True
            line = line.removeprefix(_BOM)
        if not line:
            return self._dispatch()
        key, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if key == b"data":
            self._size += len(value) + 1
            self._data.append(_text(value))
        elif key == b"event":
            self._name = _text(value)
        return None

    def _dispatch(self) -> ServerEvent | None:
        name, data = self._name, self._data
        self._name, self._data, self._size = "", [], 0
        return ServerEvent(name, "\n".join(data)) if data else None


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise BadStream("a line is not valid UTF-8") from error


# --- Tool calls that a model wrote badly, or did not finish writing.
#
# A call whose input is cut off by the output limit is never a call: it becomes a line of text that
# says so and keeps what there was. A finished call whose input is not a JSON object stays a call,
# with its text under `INVALID_JSON`, so that the tool refuses it and the model reads why. Nothing
# here repairs JSON.


_CUT_CALL = re.compile(r"\[A call of (\S{1,200}) was cut off by the output limit: ")
CUT = frozenset({"max_tokens", "model_context_window_exceeded", "refusal"})


def is_object(text: str) -> bool:
    try:
        return isinstance(parse(text), dict)
    except InvalidMessage:
        return False


def input_text(written: str) -> str:
    """The input of a finished call as the text of a JSON object."""
    if not written.strip():
        return "{}"
    return written if is_object(written) else '{"INVALID_JSON":' + dump(written) + "}"


def was_cut(written: str, stop_reason: str) -> bool:
    """Whether a call's input ends where the answer was cut off."""
    return stop_reason in CUT and not is_object(written)


def cut_call(name: str, written: str) -> Block:
    return text_block(f"[A call of {name} was cut off by the output limit: {written}]")


def cut_name(blocks: Sequence[Block]) -> str:
    """The tool whose call was cut off at the end of an answer; empty where none was."""
    said = [b for b in blocks if b.type == "text"]
    found = _CUT_CALL.match(said[-1].text) if said else None
    return found[1] if found else ""


# --- JSON objects that arrive in pieces, put together without reading them.
#
# A `PartialObject` starts from an object's text and takes deltas. Each member of a delta joins the
# member of the same name: a string is appended, an array extended, anything else replaces what was
# there; null changes nothing that is there. That rule also holds for deltas nobody knows yet.
# Texts are joined as they were written: escapes, key order and number literals stay, and what is
# put together is byte for byte what an answer in one piece would have held.


@dataclass(slots=True)
class PartialObject:
    """An object so far: each member's text, in the order of their first appearance."""

    parts: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    @classmethod
    def of(cls, raw: str) -> PartialObject:
        return cls({key: [text] for key, (text, _) in members(raw).items()})

    def take(self, raw: str, leave: Iterable[str] = ()) -> None:
        """One delta: every member but those to leave out."""
        for key, (text, _) in members(raw).items():
            if key not in leave:
                self.add(key, text)

    def add(self, key: str, text: str) -> None:
        """One member of a delta, as its JSON text."""
        old = self.parts.get(key)
        if old is None or old == ["null"]:
            self.parts[key] = [text]
        elif text[:1] in ('"', "[") and old[0][:1] == text[:1]:
            old.append(text)
        elif text != "null":
            self.parts[key] = [text]

    def member(self, key: str) -> str:
        """One member's text, whole; empty where there is none."""
        return _whole(self.parts[key]) if key in self.parts else ""

    def text(self) -> str:
        return join_members({key: _whole(texts) for key, texts in self.parts.items()})


def _whole(texts: list[str]) -> str:
    if len(texts) == 1:
        return texts[0]
    opening = texts[0][0]
    if opening == '"':
        return '"' + "".join(text[1:-1] for text in texts) + '"'
    inner = (text[1:-1].strip() for text in texts)
    return "[" + ",".join(text for text in inner if text) + "]"
