"""What a memory's verbs give back: frozen values of plain types that read well.

`str` of what was found is its text. Times are seconds since the epoch; what is not known is "".
Nothing here opens, reads or decides.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any

from reverie.light import dataclass

if TYPE_CHECKING:
    from reverie.store.lists import ReviewItem
    from reverie.store.memory_store import MemoryStore
    from reverie.topics.entry import TopicFile
    from reverie.topics.versions import Origin, Version


@dataclass(frozen=True, slots=True)
class Found:
    """A memory, or something said in a past session. `score` compares within one search; `clear`
    says whether it is clearly about the query; `signals` are the parts of the score."""

    text: str
    file: str
    name: str = ""
    type: str = ""
    score: float = 0.0
    why: str = ""
    age: str = ""
    saved: float = 0.0
    trust: str = ""
    scope: str = ""
    clear: bool = False
    signals: tuple[tuple[str, float], ...] = ()

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer in the words of memories and past sessions, each sentence with where it stands.
    Not `known`: nothing there answers the question, and there are no sources."""

    text: str
    known: bool
    sources: tuple[Found, ...] = ()

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Saved:
    """What became of a text: `saved`, `unchanged` (it is there already), `queued` (a person has
    to look at it first) or `removed`. `change` is what `undo` takes."""

    outcome: str
    file: str
    text: str
    change: str = ""
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.outcome}: {self.file}{f' ({self.reason})' if self.reason else ''}"


@dataclass(frozen=True, slots=True)
class ChangeOrigin:
    """Where a change came from: what was done, by whom, in which session, from which messages,
    by which tool, and how far that is trusted."""

    action: str
    agent: str = ""
    session: str = ""
    messages: tuple[str, ...] = ()
    tool: str = ""
    trust: str = ""
    note: str = ""

    def __str__(self) -> str:
        session = f"session {self.session}" if self.session else ""
        parts = (self.action, self.agent, session, ", ".join(self.messages), self.tool, self.trust)
        return " · ".join(part for part in (*parts, self.note) if part)


@dataclass(frozen=True, slots=True)
class Change:
    """One version of one memory: `text` as it was from then on, "" where it was removed."""

    id: str
    file: str
    at: float
    text: str
    origin: ChangeOrigin


@dataclass(frozen=True, slots=True)
class Undone:
    """What taking back did: the files that changed, those left alone with the reason, and the
    change that this is itself."""

    files: tuple[str, ...]
    left: tuple[tuple[str, str], ...] = ()
    change: str = ""


@dataclass(frozen=True, slots=True)
class Forgotten:  # the public value; the error of that name is told to scripts by its name
    """What was rewritten, and what still holds the words with the reason. `proven`: everything
    was searched again afterwards, and nothing holds them."""

    files: tuple[str, ...]
    remaining: tuple[tuple[str, str], ...] = ()
    searched: int = 0
    proven: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Pending:
    """A memory that waits for a person's look, and why. `id` is what `accept` and `reject` take."""

    id: str
    file: str
    text: str
    at: float
    origin: ChangeOrigin
    why: str = ""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with a memory, and the words that show it."""

    kind: str
    file: str
    line: int
    evidence: str
    fixable: bool = False

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.kind.replace('_', ' ')}: {self.evidence}"


@dataclass(frozen=True, slots=True)
class Checked:
    """The faults found, a score out of 100, the files that were fixed, and the change `undo`
    takes; `failed` says why nothing could be fixed."""

    score: int
    faults: tuple[Fault, ...] = ()
    fixed: tuple[str, ...] = ()
    change: str = ""
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Dreamt:
    """What tidying came to: `status` (completed, waiting, failed, killed), the files that it
    changed or would change, and why it stopped where it did."""

    status: str
    files: tuple[str, ...] = ()
    summary: str = ""
    reason: str = ""
    id: str = ""


# --- The memories of a project in a list: rows, words searched for, values for JSON.


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


def list_memories(memories: MemoryStore) -> list[MemoryRow]:
    """Every memory, the newest first."""
    return [_row(memories, memories.folder.read(one.key)) for one in memories.folder.scan()]


def _row(memories: MemoryStore, one: TopicFile) -> MemoryRow:
    trust = memories.trust(one.key).label
    return MemoryRow(one.key, one.type, one.name, one.description, one.modified, one.size, trust)


def search_memories(memories: MemoryStore, words: list[str]) -> list[MemoryMatch]:
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
