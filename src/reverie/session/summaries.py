"""Transcripts read from their files, and sessions in a line.

A session in a line, and a file that keeps those lines so that a list need not read them all.

The lines are derived. Each names the size and the times of the transcript it was made from, and
counts only while these are the same; one that is missing, damaged or of another version is made
again from the transcript. A file that cannot be written costs time and nothing else.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any, cast

import reverie
from reverie.errors import InvalidMessage, NotFound, StoreError
from reverie.light import dataclass, pattern
from reverie.store.files import Folder
from reverie.store.home import SessionFile
from reverie.store.journal import BadLine, Line
from reverie.text.format import cut
from reverie.transcript.codec import decode, is_later
from reverie.transcript.fold import fold_entries
from reverie.transcript.records import AssistantMessage, Entry, Unknown, UserMessage
from reverie.transcript.view import EMPTY, View

FILE = ".reverie-sessions"
TITLE = 80
TITLES = 2  # how titles are made; kept ones of another way are made anew
MAX_LOOKED = 20_000
_COMMAND = pattern(r"<command-name>\s*([^<]*?)\s*</command-name>")
_ARGS = pattern(r"<command-args>([^<]*)</command-args>")
_TOLD = pattern(
    r"<(local-command-[a-z]+|system-reminder|command-[a-z]+|bash-std(?:out|err)|ide_[a-z_]+)>"
    r"[\s\S]*?(?:</\1>|$)"
)


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A session in a line."""

    id: str
    title: str
    at: float
    size: int
    messages: int
    turns: int
    tokens: int
    faults: int


def summary_of(file: SessionFile, found: Transcript) -> SessionSummary:
    said = [e for e in found.entries if isinstance(e.record, (UserMessage, AssistantMessage))]
    return SessionSummary(
        file.id,
        title_of(found.entries),
        said[-1].at if said else file.mtime,
        file.size,
        len(said),
        found.view.turns,
        found.view.tokens,
        len(found.faults),
    )


def title_of(entries: Sequence[Entry]) -> str:
    """The first words the user said, without the markup of a client."""
    for entry in entries:
        record = entry.record
        if isinstance(record, UserMessage) and record.origin == "user":
            text = without_markup(" ".join(b.get("text") for b in record.blocks))
            if text:
                return cut(text, TITLE)
    return "(nothing said)"


def without_markup(text: str) -> str:
    """What a person typed, on one line: a command with its arguments, and nothing that a client
    put around it or said for them."""
    text = text[:MAX_LOOKED]
    command = _COMMAND.search(text)
    if command is not None:
        args = _ARGS.search(text)
        text = f"{command[1]} {args[1] if args else ''}"
    return " ".join(_TOLD.sub(" ", text).split())


class SessionListing:
    """The kept lines of one project's sessions."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._kept = _read(folder)
        self._changed = False

    def summary(self, file: SessionFile, read: Callable[[str], Transcript]) -> SessionSummary:
        """One session in a line; its transcript is read where no kept line is of today."""
        kept = self._kept.get(file.id)
        if kept is not None and kept[0] == file.stamp:
            return kept[1]
        found = summary_of(file, read(file.id))
        self._kept[file.id] = file.stamp, found
        self._changed = True
        return found

    def keep(self, sessions: Iterable[str]) -> None:
        """Write the lines of these sessions, where any is new."""
        if not self._changed:
            return
        lines = [json.dumps({"version": reverie.__version__, "titles": TITLES})]
        for session in sessions:
            if session in self._kept:
                stamp, summary = self._kept[session]
                lines.append(json.dumps({"stamp": stamp, **asdict(summary)}))
        with contextlib.suppress(StoreError):
            self._folder.write(FILE, "\n".join(lines).encode() + b"\n", durable=False)
            self._changed = False


def _read(folder: Folder) -> dict[str, tuple[str, SessionSummary]]:
    try:
        first, *lines = folder.read(FILE).decode().splitlines()
        if json.loads(first) != {"version": reverie.__version__, "titles": TITLES}:
            return {}
        return dict(map(_line, lines))
    except (NotFound, StoreError, ValueError, TypeError, KeyError, RecursionError):
        return {}


def _line(text: str) -> tuple[str, tuple[str, SessionSummary]]:
    value = cast("dict[str, Any]", json.loads(text))
    stamp, ident, title = (value.pop(name) for name in ("stamp", "id", "title"))
    if not all(isinstance(n, int | float) for n in value.values()) or not isinstance(title, str):
        raise TypeError("a line that no list could show")
    return str(ident), (str(stamp), SessionSummary(str(ident), title, **value))


# --- A transcript as its file has it: the entries, what they fold to, and what is wrong with it.
#
# Nothing disappears without a word: a line that cannot be read, a record of a later version or of
# no known kind, an id that was used before and a parent that is not there are each told. No file
# makes it raise anything but our own errors, and nothing is written.


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
    faults += _entry_faults(entries, numbers, later)
    return Transcript(session, tuple(entries), tuple(faults), fold_entries(entries), tuple(later))


def _entry_faults(entries: Sequence[Entry], numbers: Sequence[int], later: list[str]) -> list[str]:
    """What is unusual about entries that could be read; `later` gets those of a later version."""
    faults: list[str] = []
    newer: list[int] = []
    unknown: list[int] = []
    again: list[int] = []
    orphans: list[int] = []
    nameless: list[int] = []
    known: set[str] = set()
    for entry, number in zip(entries, numbers, strict=True):
        record = entry.record
        if entry.id in known:
            again.append(number)
        elif entry.parent and entry.on_chain and entry.parent not in known:
            orphans.append(number)
        known.add(entry.id)
        if isinstance(record, AssistantMessage) and any(
            block.type == "tool_use" and not block.call for block in record.blocks
        ):
            nameless.append(number)
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
        (nameless, "a tool call without an id: no result can answer it"),
    )
    return faults + [f"{_lines(found)}: {what}" for found, what in kinds if found]


def _lines(numbers: Sequence[int]) -> str:
    named = ", ".join(str(n) for n in numbers[:NAMED])
    more = len(numbers) - NAMED
    return f"line{'s' * (len(numbers) > 1)} {named}" + (f" and {more:,} more" if more > 0 else "")
