"""Server-sent events, read from bytes however they are cut.

`Events` takes the bytes of a stream in any pieces and gives back whole events alone: one
whose blank line has not come yet is never seen. Lines may end in LF, CR or CRLF, comments
and unknown fields are left out, and a character split between two pieces is put together
again. Nothing here knows what an event means; its data is the text as it was sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field

from reverie.light import dataclass

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
class Events:
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
