"""The ledger of recall, read back: what each turn considered, chose and injected, and what of it
was cited later.

A memory counts as cited where the assistant, in words or in a tool call after the injection,
names its file or its name, or repeats something telling from it that nobody had said before: a
name as code has it, or a few words in a row. That is evidence of use, no proof; what was only
taken to heart is not seen. Worked out from the transcript, never recorded. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import unescape
from typing import Any

from reverie.session.recall.excerpts import KIND
from reverie.session.recall.selection import spoken_text
from reverie.text.safety import NAME as FRAME
from reverie.topics.entry import TopicFile as Memory
from reverie.topics.entry import stem
from reverie.transcript.blocks import text_of
from reverie.transcript.mentions import names
from reverie.transcript.records import (
    AssistantMessage,
    Attached,
    Candidate,
    Entry,
    Recalled,
    UserMessage,
)

IN_A_ROW = 5
"""Words in a row that nobody repeats by chance."""
IN_A_ROW_DENSE = 10
"""The same for characters of a script without spaces."""
_NOTE = re.compile(
    rf'<{FRAME} id="([0-9a-f]+)" source="([^"\n]*)"[^>\n]*>\n(.*?)\n</{FRAME} id="\1">', re.DOTALL
)
_UNIT = re.compile("[\u3040-\u30ff\u3400-\u9fff]|[^\\W_]+")
_SPACED = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Citation:
    """Where an injected memory shows again: the message, and what showed."""

    message: str
    what: str


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One memory in one turn's ledger."""

    candidate: Candidate
    cited: Citation | None = None


@dataclass(frozen=True, slots=True)
class LedgerTurn:
    """The ledger of one turn."""

    message: str
    at: float
    said: str
    record: Recalled
    rows: tuple[LedgerRow, ...] = ()

    def value(self) -> dict[str, Any]:
        """For `--json`."""
        rows = [
            {
                "file": row.candidate.file,
                "score": row.candidate.score,
                "outcome": row.candidate.outcome,
                "why": row.candidate.why,
                "bytes": row.candidate.size,
                "cited": row.cited is not None,
                "cited_in": row.cited.message if row.cited else "",
                "cited_by": row.cited.what if row.cited else "",
            }
            for row in self.rows
        ]
        return {
            "message": self.message,
            "at": self.at,
            "said": self.said,
            "selector": self.record.selector,
            "considered": self.record.considered,
            "why": self.record.why,
            "candidates": rows,
        }


@dataclass
class _PendingCitation:
    """An injected memory whose citation is still looked for."""

    file: str
    sought: tuple[str, ...]  # as the memory is called, folded
    telling: frozenset[str]
    rows: frozenset[str]
    cited: Citation | None = None


@dataclass
class _CitationMatcher:
    """What of the injected memories was said by somebody, so far."""

    called: frozenset[str]
    telling: frozenset[str]
    said: set[str] = field(default_factory=set[str])

    def note(self, text: str) -> None:
        if self.called:
            folded = _normalize_text(text)
            self.said.update(name for name in self.called if name in folded)
            self.said.update(self.telling.intersection(names(text)))
            self.said.update(row for row in in_a_row(text) if row in self.telling)


def ledgers(entries: Iterable[Entry]) -> tuple[LedgerTurn, ...]:
    """The ledger of each turn of a transcript, oldest first."""
    entries = tuple(entries)
    heard, spoken = _CitationMatcher(*_sought(entries)), dict[str, tuple[float, str]]()
    turns: list[tuple[str, float, str, Recalled, list[_PendingCitation]]] = []
    waiting: list[_PendingCitation] = []
    texts: dict[str, str] = {}
    for entry in entries:
        match entry.record:
            case UserMessage() as record:
                spoken[entry.id] = (entry.at, spoken_text(record))
                heard.note("\n".join(text_of(b.value) for b in record.blocks))
            case Attached(kind=kind) as record if kind == KIND:
                texts = dict(injected_memories(record))
            case Recalled() as record:
                at, words = spoken.get(record.message, (entry.at, ""))
                opened = list(_pending_citations(record, texts, heard))
                turns.append((record.message, at, words, record, opened))
                waiting, texts = [*waiting, *opened], {}
            case AssistantMessage() as record:
                waiting = _cite(waiting, entry.id, record)
                heard.note("\n".join(text_of(b.value) for b in record.blocks))
            case _:
                continue
    return tuple(
        LedgerTurn(message, at, words, record, _rows(record, opened))
        for message, at, words, record, opened in turns
    )


def _sought(entries: Sequence[Entry]) -> tuple[frozenset[str], frozenset[str]]:
    """What injected memories are called, and all in them that would tell if it were repeated."""
    called: set[str] = set()
    telling: set[str] = set()
    for entry in entries:
        if isinstance(entry.record, Attached) and entry.record.kind == KIND:
            for file, text in injected_memories(entry.record):
                called.update(_distinct_names(_memory(file, text)))
                telling.update(names(text), in_a_row(text))
    return frozenset(called), frozenset(telling)


def _memory(file: str, text: str) -> Memory:
    return Memory(file, text.encode("utf-8", "replace"))


def _distinct_names(memory: Memory) -> frozenset[str]:
    """The names of a memory that are no plain word: its file, and a name of several words."""
    key = memory.key
    found = [key, key.rpartition("/")[2]]
    found += [name for name in (stem(key), memory.name) if re.search(r"\w[\s_-]+\w", name)]
    return frozenset(_normalize_text(name) for name in found if len(name) > 4)


def _rows(record: Recalled, opened: Sequence[_PendingCitation]) -> tuple[LedgerRow, ...]:
    cited = {one.file: one.cited for one in opened}
    return tuple(
        LedgerRow(one, cited.get(one.file) if one.outcome == "injected" else None)
        for one in record.candidates
    )


def injected_memories(record: Attached) -> Iterator[tuple[str, str]]:
    """The memories in an attachment of recall: file and text."""
    for match in _NOTE.finditer("\n".join(b.get("text") for b in record.blocks)):
        yield unescape(match[2]), match[3]


def _pending_citations(
    record: Recalled, texts: dict[str, str], heard: _CitationMatcher
) -> Iterator[_PendingCitation]:
    for one in record.candidates:
        if one.outcome != "injected":
            continue
        memory = _memory(one.file, texts.get(one.file, ""))
        sought = tuple(sorted(_distinct_names(memory) - heard.said))
        telling = frozenset(names(memory.body)) - heard.said
        rows = frozenset(in_a_row(memory.body)) - heard.said
        yield _PendingCitation(one.file, sought, telling, rows)


def _cite(
    waiting: Sequence[_PendingCitation], message: str, record: AssistantMessage
) -> list[_PendingCitation]:
    """Note what a message cites; what is left waits for the next."""
    shown = [b for b in record.blocks if b.type in ("text", "tool_use")]
    text = "\n".join(text_of(b.value) for b in shown)
    folded, telling, rows = _normalize_text(text), set(names(text)), set(in_a_row(text))
    for one in waiting:
        name = next((n for n in one.sought if n in folded), "")
        what = name or min(one.telling & telling, default="") or min(one.rows & rows, default="")
        if what:
            one.cited = Citation(message, what)
    return [one for one in waiting if one.cited is None]


def in_a_row(text: str) -> Iterator[str]:
    """Each stretch of a few words in a row, folded."""
    units = [unit.casefold() for unit in _UNIT.findall(text)]
    dense = sum(len(unit) == 1 and unit >= "\u3040" for unit in units) * 2 > len(units)
    count = IN_A_ROW_DENSE if dense else IN_A_ROW
    for n in range(len(units) - count + 1):
        yield " ".join(units[n : n + count])


def _normalize_text(text: str) -> str:
    return _SPACED.sub(" ", text).casefold()
