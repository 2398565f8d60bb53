"""A memory folder, read once: each topic's text, its passages and their terms.

`written` is the time a file was last changed; a daily log's is the day that it is of. Statements
are the passages that claim something: sentences, items and values, without headings, lead-ins
that end in a colon, code, tables and lines that only point elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from reverie.memory.format import frontmatter
from reverie.memory.format.entry import LOGS, is_index, is_topic, shown, stem, type_of
from reverie.memory.hygiene.passages import Passage, passages
from reverie.text.terms import Terms, terms

_POINTS = re.compile(r"\W{0,4}(?:see\s+|read\s+)?\W{0,4}\[[^\]]*\]\([^)]*\)", re.IGNORECASE)
_LOG = re.compile(r"(?:\A|/)(\d{4})-(\d\d)-(\d\d)\.md\Z")
_SAID = frozenset({"sentence", "item", "value"})


@dataclass(frozen=True, slots=True)
class Memory:
    """One topic file or daily log."""

    key: str
    text: str
    written: float
    passages: tuple[Passage, ...]
    terms: tuple[Terms, ...]
    subject: frozenset[str]  # the terms of its name, or of its first heading
    body: str
    type: str

    @property
    def all(self) -> frozenset[str]:
        """Every term of its text, those of its type and name left to their passages."""
        none: frozenset[str] = frozenset()
        pairs = zip(self.passages, self.terms, strict=True)
        return none.union(*(own.all for one, own in pairs if one.under not in _NO_SUBJECT))


_NO_SUBJECT = frozenset({"type", "metadata", "originSessionId"})


@dataclass(frozen=True, slots=True)
class Statement:
    """A passage that claims something."""

    memory: Memory
    passage: Passage
    terms: Terms


def read(files: Mapping[str, bytes], times: Mapping[str, float]) -> dict[str, Memory]:
    """The topics of a folder by their keys, sorted."""
    return {
        key: one(key, shown(data), times.get(key, 0.0))
        for key, data in sorted(files.items())
        if is_topic(key)
    }


def logs(files: Mapping[str, bytes]) -> dict[str, Memory]:
    """The daily logs, the oldest first, each written on the day it is named after."""
    found: dict[str, Memory] = {}
    for key, data in sorted(files.items()):
        day = _LOG.search(key)
        if day is None or not key.casefold().startswith(f"{LOGS}/") or is_index(key):
            continue
        try:
            at = datetime(int(day[1]), int(day[2]), int(day[3]), 12, tzinfo=UTC).timestamp()
        except ValueError:
            continue
        found[key] = one(key, shown(data), at)
    return found


def one(key: str, text: str, written: float) -> Memory:
    cut = passages(text)
    own = tuple(terms(piece.text) for piece in cut)
    data = text.encode("utf-8", "replace")
    front = frontmatter.parse(data)
    body = shown(data[front.body :]).lstrip("\r\n")
    titles = (piece.text for piece in cut if piece.kind == "heading")
    title = front.get("name") or next(titles, "") or stem(key)
    subject = terms(title, titled=True).all
    return Memory(key, text, written, cut, own, subject, body, type_of(front))


def statements(memory: Memory) -> list[Statement]:
    """What a memory claims, piece by piece."""
    found: list[Statement] = []
    for piece, own in zip(memory.passages, memory.terms, strict=True):
        named = piece.kind == "value" and piece.under == "name"
        if piece.kind not in _SAID or piece.under in _NO_SUBJECT or named:
            continue
        if piece.text.rstrip("*_` ").endswith((":", "：")) or _POINTS.match(piece.text):
            continue
        found.append(Statement(memory, piece, own))
    return found
