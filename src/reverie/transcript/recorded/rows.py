"""Rows of a foreign session file, and what reading them gives."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from reverie.errors import InvalidMessage
from reverie.light import dataclass
from reverie.transcript.blocks import Block, Json, Object, block_from, elements, members, parse
from reverie.transcript.records import Entry

LATEST = 253_402_300_799  # the last second of the year 9999


@dataclass(frozen=True, slots=True)
class RecordedRow:
    """One line of the file."""

    number: int
    text: str
    value: Object

    def string(self, key: str) -> str:
        found = self.value.get(key)
        return found if isinstance(found, str) else ""

    def object(self, key: str) -> Object:
        found = self.value.get(key)
        return found if isinstance(found, dict) else {}

    def raw(self, *path: str) -> str:
        """The text of a nested member, as it stands in the file."""
        text = self.text
        for key in path:
            text = members(text)[key][0]
        return text

    def blocks(self) -> tuple[Block, ...]:
        """The content of the row's message."""
        content = self.object("message").get("content")
        if isinstance(content, str):
            return (block_from(*_text_block(content, self.raw("message", "content"))),)
        if not isinstance(content, list):
            return ()
        parts = elements(self.raw("message", "content"))
        return tuple(block_from(raw, value) for raw, value in parts if isinstance(value, dict))


def _text_block(text: str, raw: str) -> tuple[str, Json]:
    return f'{{"type":"text","text":{raw}}}', {"type": "text", "text": text}


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded session as entries, and what became of each row."""

    program: str
    session: str
    cwd: str
    entries: tuple[Entry, ...]
    places: dict[int, str]  # row number -> the entry it went into
    left_out: dict[int, str]  # row number -> why it has none
    faults: tuple[str, ...]


def rows_of(lines: Iterable[str]) -> tuple[list[RecordedRow], list[str]]:
    """The rows that can be read; the others are named, never fatal."""
    rows: list[RecordedRow] = []
    faults: list[str] = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text:
            continue
        try:
            value = parse(text, f"row {number}")
        except InvalidMessage as error:
            faults.append(str(error))
            continue
        if isinstance(value, dict):
            rows.append(RecordedRow(number, text, value))
        else:
            faults.append(f"row {number} is not an object")
    return rows, faults


def when(value: Json) -> float:
    """A time as seconds since the epoch; 0 where there is none that could be written again."""
    try:
        if isinstance(value, str):
            at = datetime.fromisoformat(value).timestamp()
        else:
            at = float(value) / 1000 if isinstance(value, (int, float)) else 0.0
    except (ValueError, OverflowError):
        return 0.0
    return at if 0 <= at <= LATEST else 0.0
