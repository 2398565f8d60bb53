"""Two files made one: what either says stays, word for word.

A passage is left out only where the file that stays has it in the same words, case, marks and line
breaks aside, in one passage that denies no more and no less. One other word is another fact. What
stays is put at the end of the section with the same heading, else under its own heading; code and
tables move whole. The other file's name becomes a heading where nothing else has it, and its
description that of both where it says no less. Nothing is reworded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from reverie.memory.format.entry import TopicFile, is_cut, shown, uncut
from reverie.memory.format.frontmatter import Field
from reverie.memory.hygiene.reading import Passage, passages
from reverie.memory.rules.reading import APPLIES
from reverie.text.markdown import sections
from reverie.text.terms import plain, terms

FILE_FIELDS = frozenset({"type", "metadata", "trust", "node_type", "originSessionId", APPLIES})
"""What a head says of its file and not of its matter."""


_SIGNS = (
    (re.compile(r"(?<![\w.-])-(?=\d)"), "minus "),
    (re.compile(r"%"), " percent "),
    (re.compile(r"[$€£¥](?=\d)"), "money "),
)


def _row(text: str) -> str:
    """The words in a row, with the signs that make a number another one."""
    for sign, word in _SIGNS:
        text = sign.sub(word, text)
    return plain(text)


class Words:
    """What a text says, passage by passage, word for word."""

    def __init__(self, text: str) -> None:
        self._whole: set[str] = set()
        self._rows = {True: " ", False: " "}  # by whether they deny; a line is a block
        self.add(text)

    def add(self, text: str) -> None:
        by_block: dict[int, list[Passage]] = {}
        for one in passages(text):
            self._whole.add(_row(one.text))
            by_block.setdefault(one.block, []).append(one)
        for group in by_block.values():
            words = " ".join(_row(one.text) for one in group)
            self._rows[any(terms(one.text).denies for one in group)] += f"\n {words} "

    def has(self, text: str) -> bool:
        """Whether these words stand in a row in one passage, and mean there what they mean."""
        words = _row(text)
        if not words or words in self._whole:
            return True
        return f" {words} " in self._rows[terms(text).denies]

    def begins(self, text: str) -> bool:
        """Whether some passage begins with words that were cut where there was no more room."""
        words = plain(uncut(text).rpartition(" ")[0])
        return bool(words) and any(f" {words} " in rows for rows in self._rows.values())


def has_words(text: str, words: str) -> bool:
    """Whether a text has some words, whole or as what they were cut from."""
    known = Words(text)
    return known.has(words) or (is_cut(words) and known.begins(words))


def merged(key: str, text: str, other: str) -> str:
    """The text of a file with what only the other one says in its place."""
    end = "\r\n" if "\r\n" in text else "\n"
    body = text.replace("\r\n", "\n")
    entry = TopicFile(key, other.replace("\r\n", "\n").encode("utf-8", "replace"))
    known = Words(body)
    parts = [_SectionPart(one.title, one.level) for one in sections(entry.body)]
    for part, one in zip(parts, sections(entry.body), strict=True):
        part.rows = list(_kept(entry.body[one.body : one.end], known))
        known.add("\n\n".join(part.rows))
    said = Words(body)
    for part in parts:
        said.add("\n\n".join(part.rows))
    keep = TopicFile(key, body.encode("utf-8", "replace"))
    about = entry.description
    if keep.front.present and _is_better(about, keep.description):
        body = shown(keep.with_value(about, "description").data)
        said.add(about)
        old = [keep.description] if not _told(keep.description, Words(keep.body)) else []
    else:
        old = []
    head = [*old, *_head(entry, said, [one.title for one in parts if one.rows])]
    made = _placed(body, head, [one for one in parts if one.rows or _untold(one, said)])
    return made.replace("\n", end) if end != "\n" else made


def _is_better(newer: str, older: str) -> bool:
    """Whether a description says no less than the older one: then the newer state is told."""
    return not is_cut(newer) and newer != older and len(terms(newer)) >= max(1, len(terms(older)))


@dataclass(slots=True)
class _SectionPart:
    """What is left of one section of the other file."""

    title: str
    level: int
    rows: list[str] = field(default_factory=list[str])


def _untold(part: _SectionPart, said: Words) -> bool:
    return bool(part.title) and not said.has(part.title)


def _head(entry: TopicFile, said: Words, titles: Sequence[str]) -> Iterator[str]:
    """What the head of the other file says and nothing else does."""
    known = {plain(one) for one in titles}
    name, about = entry.front.get("name"), entry.description
    if name and plain(name) not in known and not _told(name, said):
        yield f"## {' '.join(uncut(name).split())}"
    if about and not _told(about, said):
        yield uncut(about)
    extra = [one for one in entry.front.fields if _is_fact(one) and not said.has(one.value)]
    if extra:
        yield "\n".join(f"- {'.'.join(one.names)}: {one.value}" for one in extra)


def _told(value: str, said: Words) -> bool:
    return said.has(value) or (is_cut(value) and said.begins(value))


def _is_fact(one: Field) -> bool:
    return one.names[0] not in (*FILE_FIELDS, "name", "description") and bool(plain(one.value))


def _kept(text: str, known: Words) -> Iterator[str]:
    """The blocks of a section that hold something new, without what is known of them."""
    items: list[str] = []
    for chunk in _chunks(text):
        inside = passages(f"\n{chunk}")
        fresh = [one for one in inside if not known.has(one.text)]
        whole = any(one.kind in ("code", "row") for one in inside)
        if not fresh:
            continue
        if whole or len(fresh) == len(inside):
            yield from _flush(items)
            yield chunk
            continue
        for one in fresh:
            if one.kind == "item":
                items.append(f"- {one.text}")
            else:
                yield from _flush(items)
                yield one.text
    yield from _flush(items)


def _flush(items: list[str]) -> Iterator[str]:
    if items:
        yield "\n".join(items)
        items.clear()


def _chunks(text: str) -> Iterator[str]:
    """A section cut at blank lines, but for those inside code."""
    rows: list[str] = []
    fence = ""
    for row in text.split("\n"):
        mark = row.lstrip(" \t>")[:3]
        if mark in ("```", "~~~"):
            fence = "" if fence == mark else fence or mark
        if row.strip() or fence:
            rows.append(row)
        elif rows:
            yield "\n".join(rows)
            rows = []
    if rows:
        yield "\n".join(rows)


def _placed(text: str, head: Sequence[str], parts: Sequence[_SectionPart]) -> str:
    """The text with each part at the end of the section that has its heading."""
    first = len(text) - len(TopicFile("", text.encode("utf-8", "replace")).body)
    homes: dict[str, int] = {}
    for one in sections(text, first):
        homes.setdefault(plain(one.title), one.end)
    inside: dict[int, list[str]] = {}
    behind: list[str] = list(head)
    for part in parts:
        at = homes.get(plain(part.title)) if part.title else None
        if at is not None:
            inside.setdefault(at, []).extend(part.rows)
        else:
            title = [f"{'#' * max(2, part.level)} {part.title}"] if part.title else []
            behind += [*title, *part.rows]
    for at in sorted(inside, reverse=True):
        text = _joined(text[:at], inside[at], text[at:])
    return _joined(text, behind, "") if behind else text


def _joined(before: str, rows: Sequence[str], after: str) -> str:
    added = "\n\n".join(row.strip("\n") for row in rows)
    start = before.rstrip()
    return f"{start}\n\n{added}\n" + (f"\n{after.lstrip(chr(10))}" if after.strip() else "")
