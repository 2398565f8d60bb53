"""A memory folder, read once: each topic's text, its passages and their terms.

A passage (a sentence, list item, table row, heading, code, a value) knows its line and where it
stands, so that it can be shown or replaced. White space, a `>` before a quotation and the marks
of a list are no part of it. Every character that is a letter or a digit is in exactly one
passage; the cut is one pass, and nothing is changed.

`written` is the time a file was last changed, 0 where nobody knows; a line may have one of its
own; a daily log's is the day that it is of. Statements
are the passages that claim something: sentences, items and values, without headings, lead-ins
that end in a colon, code, tables and lines that only point elsewhere.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from reverie.light import dataclass
from reverie.rules.rule import APPLIES
from reverie.text.markdown import BlockKind, blocks
from reverie.text.tokens import Terms, split_terms
from reverie.topics import frontmatter
from reverie.topics.claims import Claim
from reverie.topics.entry import LOGS, decode_text, is_index, is_topic, stem, type_of
from reverie.topics.manifest import IndexLimits
from reverie.topics.trust import Trust

PassageKind: TypeAlias = Literal["sentence", "item", "heading", "row", "code", "value"]

_END = re.compile(r"[.!?](?:[\"')\]*_`”’]{0,4})[ \t\n]+(?=[\"'(\[*_`“‘]{0,4}[^\W_a-z])|[。！？]")
_SHORT = re.compile(r"(?:\b(?:e\.g|i\.e|vs|etc|cf|approx|Dr|Mr|Ms|No|Fig|[A-Z])|\.\.)\.\Z")
_ANY = re.compile(r"[^\W_]")


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of text: `start` and `end` are its place in the whole, `block` what it lies in."""

    kind: PassageKind
    line: int
    start: int
    end: int
    text: str
    block: int = 0
    under: str = ""  # the heading above it; of a value, its key


def passages(text: str) -> tuple[Passage, ...]:
    """Every passage of a file's text, frontmatter first, in their order."""
    data = text.encode("utf-8", "surrogatepass")
    front = frontmatter.parse_frontmatter(data)
    cut = _BodyCut(text)
    for one in front.fields if front.present else ():
        start = len(data[: one.start].decode("utf-8", "surrogatepass"))
        if _ANY.search(one.value):
            end = start + len(data[one.start : one.end].decode("utf-8", "surrogatepass"))
            cut.block += 1
            key = one.names[0] if one.names[0] == APPLIES else one.names[-1]
            cut.found.append(
                Passage("value", cut.line(start), start, end, one.value, cut.block, key)
            )
    body = len(data[: front.body].decode("utf-8", "surrogatepass")) if front.present else 0
    cut.body(body)
    return tuple(cut.found)


_KINDS: dict[BlockKind, PassageKind] = {
    "paragraph": "sentence",
    "item": "item",
    "heading": "heading",
    "row": "row",
    "code": "code",
}


class _BodyCut:
    """The blocks of a body, cut into sentences."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found: list[Passage] = []
        self.block = 0
        self.under = ""
        self._starts = [0, *(m.end() for m in re.finditer(r"\n", text))]

    def line(self, at: int) -> int:
        return bisect_right(self._starts, at)

    def body(self, first: int) -> None:
        for one in blocks(self.text[first:]):
            self.block += 1
            start, end, kind = first + one.start, first + one.end, _KINDS[one.kind]
            whole = kind in ("heading", "row", "code")
            for low, high in ((start, end),) if whole else _sentences(self.text, start, end):
                self._put(kind, low, high)
            if kind == "heading":
                self.under = self.text[start:end].strip()

    def _put(self, kind: PassageKind, start: int, end: int) -> None:
        text = self.text[start:end]
        inner = text.strip()
        if not _ANY.search(inner):
            return
        low = start + len(text) - len(text.lstrip())
        self.found.append(
            Passage(kind, self.line(low), low, low + len(inner), inner, self.block, self.under)
        )


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    at = start
    for found in _END.finditer(text, start, end):
        stop = found.end()
        if not _SHORT.search(text[max(at, found.start() - 8) : found.start() + 1]):
            yield at, stop
            at = stop
    if at < end:
        yield at, end


_POINTS = re.compile(r"\W{0,4}(?:see\s+|read\s+)?\W{0,4}\[[^\]]*\]\([^)]*\)", re.IGNORECASE)
_LOG = re.compile(r"(?:\A|/)(\d{4})-(\d\d)-(\d\d)\.md\Z")
_SAID = frozenset({"sentence", "item", "value"})


@dataclass(frozen=True, slots=True)
class ParsedTopic:
    """One topic file or daily log."""

    key: str
    text: str
    written: float
    passages: tuple[Passage, ...]
    terms: tuple[Terms, ...]
    subject: frozenset[str]  # the terms of its name, or of its first heading
    body: str
    type: str
    times: tuple[float, ...] = ()  # of its lines, where they are not all of one time

    def when(self, line: int) -> float:
        """When a line was written; 0 where nobody knows."""
        return self.times[line - 1] if 0 < line <= len(self.times) else self.written

    @property
    def all(self) -> frozenset[str]:
        """Every term of its text, those of its type and name left to their passages."""
        none: frozenset[str] = frozenset()
        pairs = zip(self.passages, self.terms, strict=True)
        return none.union(
            *(own.all for one, own in pairs if one.kind != "value" or one.under in HEAD_WORDS)
        )


HEAD_WORDS = frozenset({"name", "description"})
"""What of a head says something about its matter; the rest is about the file."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A passage that claims something."""

    memory: ParsedTopic
    passage: Passage
    terms: Terms

    @property
    def written(self) -> float:
        return self.memory.when(self.passage.line)


def read(
    files: Mapping[str, bytes],
    times: Mapping[str, float],
    lines: Mapping[str, tuple[float, ...]] | None = None,
) -> dict[str, ParsedTopic]:
    """The topics of a folder by their keys, sorted."""
    of_lines = lines or {}
    return {
        key: replace(one(key, decode_text(data), times.get(key, 0.0)), times=of_lines.get(key, ()))
        for key, data in sorted(files.items())
        if is_topic(key)
    }


def logs(files: Mapping[str, bytes]) -> dict[str, ParsedTopic]:
    """The daily logs, the oldest first, each written on the day it is named after."""
    found: dict[str, ParsedTopic] = {}
    for key, data in sorted(files.items()):
        day = _LOG.search(key)
        if day is None or not key.casefold().startswith(f"{LOGS}/") or is_index(key):
            continue
        try:
            at = datetime(int(day[1]), int(day[2]), int(day[3]), 12, tzinfo=UTC).timestamp()
        except ValueError:
            continue
        found[key] = one(key, decode_text(data), at)
    return found


def one(key: str, text: str, written: float) -> ParsedTopic:
    cut = passages(text)
    own = tuple(split_terms(piece.text) for piece in cut)
    data = text.encode("utf-8", "replace")
    front = frontmatter.parse_frontmatter(data)
    body = decode_text(data[front.body :]).lstrip("\r\n")
    titles = (piece.text for piece in cut if piece.kind == "heading")
    title = front.get("name") or next(titles, "") or stem(key)
    subject = split_terms(title, titled=True).all
    return ParsedTopic(key, text, written, cut, own, subject, body, type_of(front))


def statements(memory: ParsedTopic) -> list[Statement]:
    """What a memory claims, piece by piece."""
    found: list[Statement] = []
    for piece, own in zip(memory.passages, memory.terms, strict=True):
        named = piece.kind == "value" and piece.under == "name"
        of_the_file = piece.kind == "value" and piece.under not in HEAD_WORDS
        if piece.kind not in _SAID or of_the_file or named:
            continue
        if piece.text.rstrip("*_` ").endswith((":", "：")) or _POINTS.match(piece.text):
            continue
        found.append(Statement(memory, piece, own))
    return found


# A folder as a check or a repair sees it

Present: TypeAlias = Callable[[Claim], bool]
"""Whether the repository has what a memory names; in doubt, yes."""
TrustIn: TypeAlias = Callable[[str], Trust]


def by_agent(_: str) -> Trust:
    return Trust.AGENT


@dataclass(frozen=True, slots=True)
class CheckInput:
    """A folder as it is looked at. `files` are all its files, indexes and logs among them."""

    files: Mapping[str, bytes]
    times: Mapping[str, float] = field(default_factory=dict[str, float])
    now: float = 0.0
    limits: IndexLimits = field(default_factory=IndexLimits)
    present: Present | None = None
    trust: TrustIn = by_agent
    unread: frozenset[str] = frozenset()  # files that are there and whose text is not known
    lines: Mapping[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]])
    unlooked: tuple[str, ...] = ()  # what there was no time to look for in the repository
