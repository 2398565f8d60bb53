"""The one Markdown reader, quoted spans included.

The one reader of Markdown: which lines are headings, items, tables, code, and what is prose.

CommonMark with tables, read by markdown-it-py. A block knows where its words stand in the text,
without the marks of lists, quotations and headings before them. Every line that has a letter or a
digit is in exactly one block: what the parser keeps to itself, as the definitions of links, is a
paragraph here. Nothing is changed, and no link is followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from reverie.light import dataclass

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

BlockKind: TypeAlias = Literal["paragraph", "item", "heading", "row", "code"]

MAX_NESTING = 60
"""Lists and quotations within one another; what lies deeper is one paragraph."""
_LINE_END = re.compile(r"\r\n?|\n")
_FENCE = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}|~{3,})")
_ANY = re.compile(r"[^\W_]")
_TASK = re.compile(r"\[[ xX]\][ \t]+")
_MARKS = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|\Z)[ \t>]*)*")
_TICKS = re.compile(r"`+")


@dataclass(frozen=True, slots=True)
class MarkdownBlock:
    """A piece of a text: `start` and `end` are its words' place, `line` counts from 1, `last` is
    its last line with closing marks, `level` is that of a heading, `group` what it is one of:
    a table, a piece of code."""

    kind: BlockKind
    start: int
    end: int
    line: int
    last: int
    level: int = 0
    group: int = 0


@lru_cache(maxsize=4)
def blocks(text: str) -> tuple[MarkdownBlock, ...]:
    """Every block of a text, in order; code and tables line by line."""
    reader = _BlockReader(text)
    for at, token in enumerate(tokens := _parser().parse(text)):
        if token.map is not None:
            reader.take(token, tokens[at + 1] if at + 1 < len(tokens) else None)
    return tuple(reader.done())


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING}).enable("table")
    parser.core.ruler.disable(["inline", "text_join"], ignoreInvalid=True)
    return parser


class _BlockReader:
    """From the parser's tokens to places in the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found: list[MarkdownBlock] = []
        self.starts = [0, *(m.end() for m in _LINE_END.finditer(text))]
        self.taken = [False] * (len(self.starts) + 1)
        self.group = 0
        self.kind: BlockKind = "paragraph"
        self.level = 0

    def take(self, token: Token, inner: Token | None) -> None:
        first, last = token.map or [0, 0]
        match token.type:
            case "heading_open":
                self.level = int(token.tag[1:])
                self._put("heading", first, last, inner)
            case "paragraph_open":
                self._put(self.kind, first, last, inner)
                self.kind = "paragraph"
            case "list_item_open":
                self.kind = "item"
            case "tr_open":
                self._row("row", first)
            case "table_open" | "fence" | "code_block":
                self.kind = "paragraph"
                self.group += 1
                if token.type != "table_open":
                    self._code(first, last, token)
                else:
                    self.taken[first:last] = [True] * (last - first)
            case _:
                return

    def _put(self, kind: BlockKind, first: int, last: int, inner: Token | None) -> None:
        words = (inner.content if inner is not None else "").strip()
        begins = words.partition("\n")[0].rstrip()
        low, high = self._span(first)
        row = self.text[low:high].rstrip().rstrip("#" if kind == "heading" else "").rstrip()
        start = low + max(0, row.rfind(begins) if begins else 0)
        count = words.count("\n") + 1
        end = self._span(first + count - 1)[1]
        if kind == "heading":
            end = min(end, start + len(begins)) if count == 1 else end
        self.taken[first:last] = [True] * (last - first)
        if task := _TASK.match(self.text, start) if kind == "item" else None:
            start = task.end()
        self._add(kind, start, end, first, last, self.level if kind == "heading" else 0)

    def _code(self, first: int, last: int, token: Token) -> None:
        for number in range(first, min(last, len(self.starts))):
            fence = token.type == "fence" and number in (first, last - 1)
            mark = _FENCE.match(self.text[slice(*self._span(number))]) if fence else None
            self._row("code", number, mark.end() if mark else 0)

    def _row(self, kind: BlockKind, number: int, after: int = 0) -> None:
        low, high = self._span(number)
        self.taken[number] = True
        self._add(kind, low + after, high, number, number + 1)

    def _span(self, number: int) -> tuple[int, int]:
        if number >= len(self.starts):
            return len(self.text), len(self.text)
        low = self.starts[number]
        high = self.starts[number + 1] if number + 1 < len(self.starts) else len(self.text)
        return low, low + len(self.text[low:high].rstrip("\r\n"))

    def _add(
        self, kind: BlockKind, start: int, end: int, first: int, last: int, level: int = 0
    ) -> None:
        inner = self.text[start:end]
        if not _ANY.search(inner):
            return
        start += len(inner) - len(inner.lstrip())
        end = start + len(inner.strip())
        group = self.group if kind in ("row", "code") else 0
        self.found.append(MarkdownBlock(kind, start, end, first + 1, last, level, group))

    def done(self) -> Sequence[MarkdownBlock]:
        """The blocks in order, with what the parser gave no token for."""
        for number in range(len(self.starts)):
            if not self.taken[number]:
                low, high = self._span(number)
                row = self.text[low:high]
                mark = _MARKS.match(row)
                listed = bool(row.strip(" \t>")[:1] in "-*+" and mark and mark.end())
                kind: BlockKind = "item" if listed else "paragraph"
                self._add(kind, low + (mark.end() if mark else 0), high, number, number + 1)
        return sorted(self.found, key=lambda one: one.start)


# Without code


def without_code(text: str) -> str:
    """The text with all code blanked out: lines of code by spaces, what stands between backticks
    by backticks. Every other character keeps its place."""
    rows = _rows(text) if _may_have_code(text) else []
    for one in blocks(text) if rows else ():
        if one.kind == "code" and one.line <= len(rows):
            rows[one.line - 1] = re.sub(r"[^\r\n]", " ", rows[one.line - 1])
    seen = "".join(rows) or text
    return _without_ticks(seen) if "`" in seen else seen


def _rows(text: str) -> list[str]:
    ends = [m.end() for m in _LINE_END.finditer(text)]
    return [text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True)]


def _may_have_code(text: str) -> bool:
    return "```" in text or "~~~" in text or "\t" in text or "    " in text


def _without_ticks(text: str) -> str:
    out: list[str] = []
    at = 0
    for start, end in _code_spans(text):
        out += [text[at:start], re.sub(r"[^\n]", "`", text[start:end])]
        at = end
    return "".join([*out, text[at:]])


def _code_spans(text: str) -> Iterator[tuple[int, int]]:
    """Code between backticks: a run of them, closed by a run as long in the same paragraph."""
    runs = [m.span() for m in _TICKS.finditer(text)]
    blanks = [m.start() for m in re.finditer(r"\n[ \t]*\n", text)]
    following: dict[int, int] = {}
    partner = [-1] * len(runs)
    for n in range(len(runs) - 1, -1, -1):
        length = runs[n][1] - runs[n][0]
        partner[n] = following.get(length, -1)
        following[length] = n
    n = gap = 0
    while n < len(runs):
        shut = partner[n]
        while gap < len(blanks) and blanks[gap] < runs[n][1]:
            gap += 1
        broken = shut >= 0 and gap < len(blanks) and blanks[gap] < runs[shut][0]
        if shut < 0 or broken or text[runs[n][0] - 1 : runs[n][0]] == "\\":
            n += 1
            continue
        yield runs[n][0], runs[shut][1]
        n = shut + 1


# Sections


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it up to the next one; the first has no heading. `start`
    is where its heading's line begins, `body` where what is below begins."""

    title: str
    level: int
    start: int
    body: int
    end: int


def sections(text: str, first: int = 0) -> tuple[Section, ...]:
    """A text cut at its headings; all of it from `first` on is in one of them."""
    rest = text[first:]
    heads = [one for one in blocks(rest) if one.kind == "heading"]
    starts = [0, *(m.end() for m in _LINE_END.finditer(rest)), len(rest)]
    found = [("", 0, 0, 0)]
    for one in heads:
        at = starts[one.line - 1]
        body = starts[min(one.last, len(starts) - 1)]
        found.append((rest[one.start : one.end], one.level, at, body))
    ends = [one[2] for one in found[1:]] + [len(rest)]
    return tuple(
        Section(title, level, first + start, first + body, first + end)
        for (title, level, start, body), end in zip(found, ends, strict=True)
    )


# --- Where a text quotes: in any of the usual quotes, or in backticks.
#
# The scan is linear. An apostrophe opens nothing, and a quote that is never closed is none.


QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "「": "」", "『": "』"}


def spans(text: str) -> list[tuple[int, int]]:
    """Where quoted text stands, quotes included."""
    found: list[tuple[int, int]] = []
    hopeless: set[str] = set()
    at = 0
    while at < len(text):
        mark = text[at]
        close = QUOTES.get(mark)
        opens = close is not None and mark not in hopeless
        if opens and mark in "'\"" and at and text[at - 1].isalnum():
            opens = text[at - 1] > "\u2e80"  # an apostrophe, but for scripts without spaces
        if not opens or close is None:
            at += 1
            continue
        end = text.find(close, at + 1)
        if end < 0:
            hopeless.add(mark)
            at += 1
        else:
            found.append((at, end + 1))
            at = end + 1
    return found
