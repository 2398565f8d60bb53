"""A memory's text cut into passages: sentences, list items, table rows, headings, code, values.

A passage knows its line and where it stands, so that it can be shown or replaced. White space,
a `>` before a quotation and the marks of a list are no part of it. Every character that is a
letter or a digit is in exactly one passage; the cut is one pass, and nothing is changed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from reverie.memory.format import frontmatter

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
