"""A transcript as its file has it: the entries, what they fold to, and what is wrong with it.

Nothing disappears without a word: a line that cannot be read, a record of a later version or of
no known kind, an id that was used before and a parent that is not there are each told. No file
makes it raise anything but our own errors, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from reverie.errors import InvalidMessage
from reverie.light import dataclass
from reverie.store.journal import BadLine, Line
from reverie.transcript.codec import decode, is_later
from reverie.transcript.fold import fold
from reverie.transcript.records import Entry, Unknown
from reverie.transcript.view import EMPTY, View

NAMED = 5  # line numbers that one sentence names


@dataclass(frozen=True, slots=True)
class Transcript:
    """What a session's file holds, and what of it could not be read."""

    id: str
    entries: tuple[Entry, ...] = ()
    faults: tuple[str, ...] = ()
    view: View = EMPTY
    later: tuple[str, ...] = ()  # ids of records that a later version wrote


def transcript_of(
    session: str, lines: Iterable[Line | BadLine], load: Callable[[str], str | None]
) -> Transcript:
    """The transcript that some lines are; `load` gives the text of a blob, or None."""
    entries: list[Entry] = []
    faults: list[str] = []
    numbers: list[int] = []
    for line in lines:
        if isinstance(line, BadLine):
            faults.append(f"line {line.number} is skipped: {line.reason}")
            continue
        try:
            entry = decode(line.text, load)
        except InvalidMessage as error:
            faults.append(f"line {line.number} is skipped: {error}")
            continue
        entries.append(entry)
        numbers.append(line.number)
    later: list[str] = []
    faults += _told(entries, numbers, later)
    return Transcript(session, tuple(entries), tuple(faults), fold(entries), tuple(later))


def _told(entries: Sequence[Entry], numbers: Sequence[int], later: list[str]) -> list[str]:
    """What is unusual about entries that could be read; `later` gets those of a later version."""
    faults: list[str] = []
    newer: list[int] = []
    unknown: list[int] = []
    again: list[int] = []
    orphans: list[int] = []
    known: set[str] = set()
    for entry, number in zip(entries, numbers, strict=True):
        record = entry.record
        if entry.id in known:
            again.append(number)
        elif entry.parent and entry.on_chain and entry.parent not in known:
            orphans.append(number)
        known.add(entry.id)
        if not isinstance(record, Unknown):
            continue
        if record.fault:
            faults.append(f"line {number}: {record.fault}")
        elif is_later(record):
            newer.append(number)
            later.append(entry.id)
        else:
            unknown.append(number)
    kinds = (
        (newer, "written by a later version of Reverie, and not shown"),
        (unknown, "a record of no known kind, and not shown"),
        (again, "an id that was used before: the first record of that id counts"),
        (orphans, "the record before it is not there: it follows what stands before it"),
    )
    return faults + [f"{_lines(found)}: {what}" for found, what in kinds if found]


def _lines(numbers: Sequence[int]) -> str:
    named = ", ".join(str(n) for n in numbers[:NAMED])
    more = len(numbers) - NAMED
    return f"line{'s' * (len(numbers) > 1)} {named}" + (f" and {more:,} more" if more > 0 else "")
