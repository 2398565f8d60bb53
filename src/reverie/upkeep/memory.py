"""The memories of a project in a list: rows, words searched for, values for JSON."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Any

from reverie.memory.format.entry import TopicFile
from reverie.memory.versions import Origin, Version
from reverie.store.lists import ReviewItem
from reverie.store.memories import Memories


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """A memory in a list."""

    file: str
    type: str
    name: str
    description: str
    modified: float
    bytes: int
    trust: str


@dataclass(frozen=True, slots=True)
class MemoryMatch:
    """A memory that holds the words searched for, and the lines with them by their numbers."""

    file: str
    name: str
    count: int
    lines: tuple[tuple[int, str], ...]


def list_memories(memories: Memories) -> list[MemoryRow]:
    """Every memory, the newest first."""
    return [_row(memories, memories.folder.read(one.key)) for one in memories.folder.scan()]


def _row(memories: Memories, one: TopicFile) -> MemoryRow:
    trust = memories.trust(one.key).label
    return MemoryRow(one.key, one.type, one.name, one.description, one.modified, one.size, trust)


def search_memories(memories: Memories, words: list[str]) -> list[MemoryMatch]:
    """The memories that hold all the words in any order and case, those with the most first."""
    found: list[MemoryMatch] = []
    for key in memories.folder.keys():  # noqa: SIM118 - a folder, no dict
        one = memories.folder.read(key)
        text = fold_case(f"{one.name}\n{one.text}")
        if words and all(word in text for word in words):
            found.append(_match(one, words))
    return sorted(found, key=lambda match: (-match.count, match.file))


def fold_case(text: str) -> str:
    """The text as a search compares it."""
    return unicodedata.normalize("NFKC", text).casefold()


def _match(one: TopicFile, words: list[str]) -> MemoryMatch:
    lines = enumerate(one.text.splitlines(), 1)
    with_words = [(n, text) for n, text in lines if any(word in fold_case(text) for word in words)]
    count = len(re.findall("|".join(map(re.escape, words)), fold_case(one.text)))
    return MemoryMatch(one.key, one.name, count, tuple(with_words))


def version_value(version: Version) -> dict[str, Any]:
    """A version for JSON."""
    return {
        "id": version.id,
        "key": version.key,
        "at": version.at,
        "before": version.before,
        "after": version.after,
        "group": version.group,
        "undoes": list(version.undoes),
        "origin": version.origin.value(),
    }


def review_value(item: ReviewItem) -> dict[str, Any]:
    """What waits for review, for JSON."""
    return {
        "id": item.id,
        "file": item.key,
        "at": item.at,
        "text": item.text,
        "trust": item.origin.trust.label,
        "from": describe_origin(item.origin),
        "evidence": [{"rule": e.rule, "line": e.line, "words": e.words} for e in item.evidence],
    }


def describe_origin(origin: Origin) -> str:
    """Where a change came from, in a few words."""
    parts = [origin.agent, origin.tool if origin.tool != "cli" else "", origin.session[:8]]
    return " · ".join(part for part in parts if part) or origin.kind
