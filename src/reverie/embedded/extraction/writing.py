"""How a finding becomes a memory: a file of its own, or a change to the one on its subject.

A memory that says it already is left alone; one on the same subject is brought up to date: what
it denies or dates otherwise is replaced, anything else is added below. Changes are exact edits
of the lines that differ, so nothing else in a file can be lost. Texts alone; nothing is written
here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reverie.embedded.extraction.found import Found
from reverie.embedded.extraction.never import says
from reverie.embedded.phrases import is_chinese
from reverie.errors import ReverieError
from reverie.memory.echo import content, negates
from reverie.memory.format import entry as entries
from reverie.memory.format.entry import TopicFile
from reverie.memory.format.index import shorten
from reverie.transcript.tasks import KnownMemory

NAME = 60  # characters of a name
DESCRIPTION = 200
MAX_PASSAGES = 2_000
CUT = "more bytes in this line]"
SUBJECT = (0.6, 0.4)  # of the shorter and of the longer text's words, to be on one subject

_ROW = re.compile(r" *\d+[\t→](.*)")
_INSTEAD = re.compile(
    r"\b(?:instead|no longer|anymore|any more|not .* but|changed|moved|postponed|from now on)\b"
    r"|不再|改为|改成|改到|推迟|换成|而不是",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Save:
    """A finding and the file it goes to: a new one, or the memory that is on its subject."""

    found: Found
    key: str
    known: KnownMemory | None = None


def planned(found: Iterable[Found], memories: Sequence[KnownMemory]) -> list[Save]:
    """Where each finding goes; what a memory's description says already goes nowhere."""
    out: list[Save] = []
    taken = {known.file for known in memories}
    for one in found:
        if any(says(f"{known.name} {known.description}", one.rule) for known in memories):
            continue
        known = _on_subject(one, memories)
        if known is not None and any(save.known is known for save in out):
            known = None  # one change to a file at a time
        key = known.file if known else new_key(one, taken)
        taken.add(key)
        out.append(Save(one, key, known))
    return out


def new_key(found: Found, taken: Iterable[str]) -> str:
    return entries.key_for(name_of(found), found.type, frozenset(taken))


def _on_subject(found: Found, memories: Sequence[KnownMemory]) -> KnownMemory | None:
    mine = _lasting(content(found.rule))
    best: tuple[float, KnownMemory] | None = None
    for known in memories:
        if known.type not in ("", found.type):
            continue
        theirs = _lasting(content(f"{known.name} {known.description}"))
        both = len(mine & theirs)
        if both < 2 or not theirs:
            continue
        short, long = both / min(len(mine), len(theirs)), both / max(len(mine), len(theirs))
        if short >= SUBJECT[0] and long >= SUBJECT[1] and (best is None or short > best[0]):
            best = (short, known)
    return best[1] if best else None


def _lasting(words: frozenset[str]) -> frozenset[str]:
    """Words that stay when a date or a number changes."""
    return frozenset(word for word in words if not _DIGITS.search(word))


# What is written


def name_of(found: Found) -> str:
    return shorten(found.rule.rstrip(".。!！?？"), NAME)


def description_of(found: Found) -> str:
    return shorten(f"{_whose(found)}{found.rule}", DESCRIPTION)


def body_of(found: Found) -> str:
    """The rule or fact, then why and how where they were given; the words it was turned from are
    a why."""
    labelled = found.type in ("feedback", "project")
    why = " ".join(filter(None, (found.why, _said(found))))
    parts = [
        f"{_whose(found)}{found.rule}",
        f"{'**Why:** ' if labelled else ''}{why}" if why else "",
        f"{'**How to apply:** ' if labelled else ''}{found.how}" if found.how else "",
    ]
    return "\n\n".join(filter(None, parts))


def _said(found: Found) -> str:
    if not found.quote:
        return ""
    wide = any(map(is_chinese, found.quote))
    return f"用户说：“{found.quote}”" if wide else f"The user said: “{found.quote}”"


def _whose(found: Found) -> str:
    if found.type != "user":
        return ""
    return "用户说：" if any(map(is_chinese, found.rule)) else "In the user's words: "


def new_file(save: Save) -> str | None:
    """The whole text of a new memory, or nothing where it makes no valid one."""
    found = save.found
    try:
        made = entries.new(
            save.key,
            name=name_of(found),
            description=description_of(found),
            type=found.type,
            body=body_of(found),
        )
    except ReverieError:
        return None
    return made.text


def changed_file(save: Save, text: str) -> str | None:
    """The memory's text brought up to date, or nothing where it says so already."""
    found = save.found
    passages = re.split(r"\n+|(?<=[.!?])\s+|(?<=[。！？])", text)[:MAX_PASSAGES]
    if any(says(passage, found.rule) for passage in passages):
        return None
    old = TopicFile(save.key, text.encode("utf-8", "replace"))
    try:
        if _replaces(found, old):
            changed = old.with_body(body_of(found)).with_value(description_of(found), "description")
        else:
            changed = old.with_body(f"{old.body.rstrip()}\n\n{body_of(found)}")
    except ReverieError:
        return None
    return changed.text


def _replaces(found: Found, old: TopicFile) -> bool:
    """Whether the finding takes the place of what the memory says, and does not add to it."""
    told = f"{old.description} {old.body}"
    if negates(found.rule) != negates(old.description or old.body) or _INSTEAD.search(found.rule):
        return True
    mine, theirs = content(found.rule), content(told)
    numbers = {word for word in mine if _DIGITS.search(word)}
    return bool(numbers - theirs) and _lasting(mine) <= _lasting(theirs)


# Exact edits


def shown_text(result: str) -> str:
    """A file's text from a result with numbered lines; notes around them are no part of it."""
    rows = [row[1] for line in result.split("\n") if (row := _ROW.fullmatch(line.rstrip("\r")))]
    return "\n".join(rows) + "\n" if rows else ""


def edit_between(old: str, new: str) -> tuple[str, str] | None:
    """What to replace by what to get from one text to the other: lines that differ, and as
    many before them as make the place unique; nothing where that cannot be said."""
    a, b = old.split("\n"), new.split("\n")
    head = 0
    while head < min(len(a), len(b)) and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < min(len(a), len(b)) - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    while head > 0 and not _is_place(old, a[head : len(a) - tail]):
        head -= 1
    gone, put = a[head : len(a) - tail], b[head : len(b) - tail]
    if not _is_place(old, gone) or CUT in "\n".join(gone):
        return None
    return "\n".join(gone), "\n".join(put)


def _is_place(text: str, lines: Sequence[str]) -> bool:
    part = "\n".join(lines)
    return bool(part.strip()) and text.count(part) == 1
