"""A memory folder, read once: each topic's text, its passages and their terms.

A passage (a sentence, list item, table row, heading, code, a value) knows its line and where it
stands, so that it can be shown or replaced. White space, a `>` before a quotation and the marks
of a list are no part of it. Every character that is a letter or a digit is in exactly one
passage; the cut is one pass, and nothing is changed.

`written` is the time a file was last changed; a daily log's is the day that it is of. Statements
are the passages that claim something: sentences, items and values, without headings, lead-ins
that end in a colon, code, tables and lines that only point elsewhere.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from reverie.light import dataclass
from reverie.memory.format import frontmatter
from reverie.memory.format.entry import LOGS, is_index, is_topic, shown, stem, type_of
from reverie.text.terms import Terms, terms

PassageKind: TypeAlias = Literal["sentence", "item", "heading", "row", "code", "value"]

_FENCE = re.compile(r"[ \t>]*(?:[-*+][ \t]+)?(`{3,}|~{3,})")
_HEADING = re.compile(r"[ ]{0,3}#{1,6}(?:[ \t]+|$)")
_ITEM = re.compile(r"[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_QUOTE = re.compile(r"[ \t]*(?:>[ \t]*)+")
_RULE = re.compile(r"[\s|:=_*+.-]*\Z")
_SETEXT = re.compile(r"[ ]{0,3}(?:=+|-+)[ \t]*\Z")
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
    under: str = ""  # the heading above it


def passages(text: str) -> tuple[Passage, ...]:
    """Every passage of a file's text, frontmatter first, in their order."""
    data = text.encode("utf-8", "surrogatepass")
    front = frontmatter.parse(data)
    cut = _BodyCut(text)
    for one in front.fields if front.present else ():
        start = len(data[: one.start].decode("utf-8", "surrogatepass"))
        if _ANY.search(one.value):
            end = start + len(data[one.start : one.end].decode("utf-8", "surrogatepass"))
            cut.block += 1
            cut.found.append(
                Passage("value", cut.line(start), start, end, one.value, cut.block, one.names[-1])
            )
    body = len(data[: front.body].decode("utf-8", "surrogatepass")) if front.present else 0
    cut.body(body)
    return tuple(cut.found)


class _BodyCut:
    """One pass over the lines of a body."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found: list[Passage] = []
        self.block = 0
        self.under = ""
        self._starts = [0, *(m.end() for m in re.finditer(r"\n", text))]
        self._open: tuple[PassageKind, int, int] | None = (
            None  # kind, start, end of what is gathered
        )

    def line(self, at: int) -> int:
        return bisect_right(self._starts, at)

    def body(self, start: int) -> None:
        fence = ""
        for at, end in self._rows(start):
            row = self.text[at:end]
            mark = _FENCE.match(row)
            if fence:
                closes = mark is not None and mark[1].startswith(fence)
                fence = "" if closes else fence
                if not closes:
                    self._add("code", at, end)
            elif mark is not None:
                self._flush()
                fence = mark[1]
                self._add("code", at + mark.end(), end)
            else:
                self._take(row, at, end)
        self._flush()

    def _rows(self, start: int) -> Iterator[tuple[int, int]]:
        at = start
        while at < len(self.text):
            end = self.text.find("\n", at)
            end = len(self.text) if end < 0 else end
            yield at, end
            at = end + 1

    def _take(self, row: str, at: int, end: int) -> None:
        bare = _QUOTE.sub("", row, count=1) if row.lstrip()[:1] == ">" else row
        shift = len(row) - len(bare)
        if not bare.strip() or (_RULE.match(bare) and not _SETEXT.match(bare)):
            self._flush()
        elif heading := _HEADING.match(bare):
            self._flush()
            self._add("heading", at + shift + heading.end(), end)
            self.under = bare[heading.end() :].strip(" \t#")
        elif bare.lstrip()[:1] == "|":
            self._flush()
            self._add("row", at, end)
        elif item := _ITEM.match(row):
            self._flush()
            self._open = ("item", at + item.end(), end)
        elif self._open is None:
            if not _RULE.match(bare):
                self._open = ("sentence", at + shift, end)
        else:
            self._open = (self._open[0], self._open[1], end)

    def _flush(self) -> None:
        if self._open is not None:
            kind, start, end = self._open
            self._open = None
            self.block += 1
            for low, high in _sentences(self.text, start, end):
                self._put(kind, low, high)

    def _add(self, kind: PassageKind, start: int, end: int) -> None:
        self.block += 1
        self._put(kind, start, end)

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
class ReadMemory:
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

    memory: ReadMemory
    passage: Passage
    terms: Terms


def read(files: Mapping[str, bytes], times: Mapping[str, float]) -> dict[str, ReadMemory]:
    """The topics of a folder by their keys, sorted."""
    return {
        key: one(key, shown(data), times.get(key, 0.0))
        for key, data in sorted(files.items())
        if is_topic(key)
    }


def logs(files: Mapping[str, bytes]) -> dict[str, ReadMemory]:
    """The daily logs, the oldest first, each written on the day it is named after."""
    found: dict[str, ReadMemory] = {}
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


def one(key: str, text: str, written: float) -> ReadMemory:
    cut = passages(text)
    own = tuple(terms(piece.text) for piece in cut)
    data = text.encode("utf-8", "replace")
    front = frontmatter.parse(data)
    body = shown(data[front.body :]).lstrip("\r\n")
    titles = (piece.text for piece in cut if piece.kind == "heading")
    title = front.get("name") or next(titles, "") or stem(key)
    subject = terms(title, titled=True).all
    return ReadMemory(key, text, written, cut, own, subject, body, type_of(front))


def statements(memory: ReadMemory) -> list[Statement]:
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
