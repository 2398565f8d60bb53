"""Near-duplicates made one: the older file stays and takes in what only the other says.

A passage of the other that the older file already has, word for word or in other words with all
its numbers, names and identifiers, is not repeated. Everything else is put behind what is there,
in the order and the words it had, code and tables whole. Nothing is reworded. A name or description
that was cut is left out where what it was cut from is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from reverie.memory.facts import SAME_MATTER, Fact, FolderFacts, repeats
from reverie.memory.format.entry import TopicFile
from reverie.memory.format.titles import is_cut, uncut
from reverie.memory.hygiene.passages import Passage, PassageKind, passages
from reverie.text.terms import plain

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")


def clusters(pairs: Sequence[tuple[str, str]], times: Mapping[str, float]) -> list[list[str]]:
    """Files that are duplicates of one another, in groups, the oldest of each first."""
    group: dict[str, set[str]] = {}
    for a, b in pairs:
        joined = group.get(a, {a}) | group.get(b, {b})
        for key in joined:
            group[key] = joined
    seen: set[frozenset[str]] = {frozenset(one) for one in group.values()}
    rows = [sorted(one, key=lambda key: (times.get(key, 0.0), key)) for one in seen]
    return sorted(rows)


def merged(key: str, text: str, other: str) -> str:
    """The text of a file with what only the other one says behind it."""
    known = FolderFacts({key: text.encode("utf-8", "replace")})
    entry = TopicFile(key, other.encode("utf-8", "replace"))
    said = list(_only_in(entry.body, key, known))
    whole = FolderFacts({key: "\n\n".join([text, *said]).encode("utf-8", "replace")})
    parts = [*_head(entry, key, whole), *said]
    if not parts:
        return text
    end = "\r\n" if "\r\n" in text else "\n"
    added = "\n\n".join(parts).replace("\r\n", "\n").replace("\n", end)
    return f"{text.rstrip()}{end}{end}{added}{end}"


def _head(entry: TopicFile, key: str, whole: FolderFacts) -> Iterator[str]:
    """What the head of the other file says and the merged one does not."""
    for value in dict.fromkeys((entry.front.get("name"), entry.description)):
        if not value or repeats(plain(value), plain(entry.body)):
            continue
        fact = Fact(key, 0, value, plain(value), "value")
        cut = is_cut(value) and whole.about(key, fact.terms, SAME_MATTER)
        if not cut and not says(whole, key, value, "value"):
            yield uncut(value)


def _only_in(body: str, key: str, known: FolderFacts) -> Iterator[str]:
    for chunk in _chunks(body):
        pieces = [one for one in passages(chunk) if not says(known, key, one.text, one.kind)]
        if not pieces:
            continue
        if any(one.kind in ("code", "row") for one in pieces):
            yield chunk.strip("\n")
        else:
            yield from _lines(pieces)


def _lines(pieces: Sequence[Passage]) -> Iterator[str]:
    """Passages as they stood: headings and sentences on their own, items as a list."""
    items = [f"- {one.text}" for one in pieces if one.kind == "item"]
    for one in pieces:
        if one.kind == "heading":
            yield f"## {one.text}"
        elif one.kind == "sentence":
            yield one.text
    if items:
        yield "\n".join(items)


def says(known: FolderFacts, key: str, text: str, kind: PassageKind = "sentence") -> bool:
    """Whether a file has a passage's words, or all that it tells in other words."""
    fact = Fact(key, 0, text, plain(text), kind)
    if not fact.plain or known.says(fact):
        return True
    return known.in_file(key, fact.terms, SAME_MATTER)


def _chunks(body: str) -> Iterator[str]:
    """A body cut at blank lines, but for those inside code."""
    rows: list[str] = []
    fence = ""
    for row in body.splitlines():
        mark = _FENCE.match(row)
        if mark is not None:
            closes = bool(fence) and mark[1].startswith(fence)
            fence = "" if closes else fence or mark[1]
        if row.strip() or fence:
            rows.append(row)
        elif rows:
            yield "\n".join(rows)
            rows = []
    if rows:
        yield "\n".join(rows)
