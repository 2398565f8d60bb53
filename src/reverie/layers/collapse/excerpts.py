"""Excerpts: what is kept of a text for which there is no room.

An answer keeps its first and its last sentence, the beginning of each list item and each heading
with what is under it. A cut is at the end of a clause or a word, never where a purpose begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

ITEM = 72  # characters of a list item in a cut answer
ITEM_SHARE = 25  # characters of the limit for each item that is kept even where it passes it
COUNTED, LISTED, PROSE, CODE = range(4)  # what of a cut answer is kept first
_COUNTED = re.compile(r"\*{0,2}\(?(?:\d{1,2}|[A-Za-z])[.):]\*{0,2}[ \t]")  # as people choose by
_ITEM = re.compile(r"[-*+•][ \t]|\*\*|\|")
_HEADING = re.compile(r"#{1,6}[ \t].*|\*\*[^*]+\*\*:?|[^|`]{1,80}:\**")
_SENTENCE = re.compile(r"(?<=[.!?])[ \t]+|(?<=[。！？])")
_CLAUSE = re.compile(r"(?<!\d)[,;.!?)。，；][*_`\"']*(?=\s)|(?=\s\()")
_PURPOSE = re.compile(r"\s[-–—→]\s|:\**\s")
_SPACE = re.compile(r"\s+")
_BREAK = re.compile(r"\W+")  # where words are not parted by spaces
_MARKS = re.compile(r"<(?=/?(?:user|assistant)\b)", re.IGNORECASE)


def excerpt(text: str, limit: int) -> str:
    """About as much of a text as a limit says: its first and last sentence, the beginning of each
    list item, a heading with what comes first under it, then what else there is room for."""
    if len(text) <= limit:
        return text
    rows = list(_rows(text, limit))
    ends = {0, max([n for n, (kind, _) in enumerate(rows) if kind != CODE], default=0)}
    free = len(ends) + limit // ITEM_SHARE
    kept: set[int] = set()
    for n in sorted(range(len(rows)), key=lambda n: (n not in ends, rows[n][0], n)):
        limit -= len(rows[n][1])
        if limit >= 0 or n in ends or (rows[n][0] <= LISTED and len(kept) < free):
            kept.add(n)
    out, before = "", 0
    for n in sorted(kept):
        gap = " …" if n > before + 1 and not out.endswith("…") else ""
        sign = "\n" if min(rows[n][0], rows[before][0]) <= LISTED else " "
        out, before = f"{out}{gap}{sign}{rows[n][1]}", n
    return out.strip()


def _rows(text: str, limit: int) -> Iterator[tuple[int, str]]:
    """The list items, sentences and lines of code of a text, each with its kind and cut. A
    heading goes with the row under it."""
    heading, code = "", False
    for row in map(str.strip, text.split("\n")):
        if row.startswith("```"):
            code = not code
        elif not code and _HEADING.fullmatch(row):
            heading = heading if len(heading) < ITEM else ""
            heading += clause(row.strip("#*:. \t"), ITEM) + ": "
        elif row.strip("|-:=* \t"):
            kind = LISTED if _ITEM.match(row) else PROSE
            kind = CODE if code else COUNTED if _COUNTED.match(row) else kind
            for part in filter(None, _SENTENCE.split(row) if kind == PROSE else [row]):
                shown = shorten(part, limit) if kind == PROSE else clause(part, ITEM)
                yield (COUNTED if heading else kind), heading + shown
                heading = ""
    if heading:
        yield PROSE, heading


def shorten(text: str, limit: int) -> str:
    """The beginning and the end of a text, cut between words: an open question is at its end."""
    if len(text) <= limit:
        return text
    foot = text[-(limit * 2 // 5) :]
    begins = _SPACE.search(foot, 0, len(foot) // 2) or _BREAK.search(foot, 0, len(foot) // 2)
    return f"{clause(text, limit * 3 // 5)} {foot[begins.end() if begins else 0 :]}"


def clause(text: str, limit: int) -> str:
    """The beginning of a text up to the end of a clause, or else of a word; where what something
    is for begins near the limit, a few words more."""
    if (found := _PURPOSE.search(text, max(limit - ITEM // 3, 0), limit + 2)) is not None:
        limit = found.end() + ITEM // 2
    if len(text) <= limit:
        return text
    ends = [m.end() for m in _CLAUSE.finditer(text, limit * 2 // 3, limit + 1)]
    ends = ends or [m.start() for m in _SPACE.finditer(text, limit // 2, limit + 1)] or [limit]
    return text[: ends[-1]].rstrip(" ,;:") + " …"


def one_line(text: str, width: int) -> str:
    """The beginning of a text on one line, and a mark where there is more. It cannot look like
    somebody's words."""
    line = " ".join(text[: width * 2].split())
    if len(line) > width or len(text) > width * 2:
        line = line[: max(line.rfind(" ", width * 2 // 3, width), 0) or width] + "…"
    return told_apart(line)


def told_apart(text: str) -> str:
    """A text that holds no mark of ours."""
    return _MARKS.sub("&lt;", text) if "<" in text else text
