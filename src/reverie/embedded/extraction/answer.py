"""The embedded answer to extraction: what is worth keeping of the newest messages, written.

It reads the user's own new words by fixed rules and works through tool calls: the memories to
change are read in one round, everything is written in the next, file first and pointer after,
and a last short text says what was done. A memory that says it already is left alone; one on the
same subject is brought up to date by exact edits of the lines that differ, so nothing else in a
file can be lost. It calls no other tool, writes outside no folder it was given, and where nothing
is worth keeping it says so and writes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reverie.embedded import history as past
from reverie.embedded.extraction.findings import findings, says
from reverie.embedded.extraction.words import FoundFact, turns
from reverie.embedded.history import CallAsked, ConversationHistory, read_ask
from reverie.errors import ReverieError
from reverie.memory.echo import content, negates
from reverie.memory.format import entry as entries
from reverie.memory.format import index as indexes
from reverie.memory.format.entry import INDEX, TopicFile
from reverie.memory.format.index import shorten
from reverie.text.tokens import has_chinese
from reverie.transcript.blocks import Block, text_block
from reverie.transcript.request import Request
from reverie.transcript.tasks import ExtractTask, KnownMemory

NOTHING = "Nothing new is worth keeping."
SAVED = "Saved: {files}."
FAILED = "Not saved: {files}."
WRITERS = frozenset({"Write", "Edit"})
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


def answer(request: Request) -> Sequence[Block]:
    """The blocks of one round."""
    task = request.task
    if not isinstance(task, ExtractTask):
        return [text_block(NOTHING)]
    history = past.read(request)
    if any(call.name in WRITERS for call in history.made):
        return [text_block(_told(history, task))]
    saves = saves_of(request, task)
    asks = _reads(saves, task, history) if not history.made else []
    asks = asks or _writes(saves, task, history)
    if not asks or not (task.any_tool or history.tools >= {ask.tool for ask in asks}):
        return [text_block(NOTHING)]
    used = {call.id for call in history.calls}
    return [past.call_block(request, used, ask.tool, ask.input) for ask in asks]


def saves_of(request: Request, task: ExtractTask) -> list[Save]:
    """What is to be saved, and where; the same at every round."""
    known = (*task.injected, task.instructions)
    return planned(findings(turns(request, task), known), task.memories)


def _path(task: ExtractTask, key: str) -> str:
    return f"{task.folder.rstrip('/')}/{key}"


def _reads(
    saves: Sequence[Save], task: ExtractTask, history: ConversationHistory
) -> list[CallAsked]:
    """Every file that will be changed, to be read together."""
    if not saves or not (task.any_tool or "Read" in history.tools):
        return []
    keys = [save.key for save in saves if save.known]
    if task.index.strip():
        keys.append(INDEX)
    return [read_ask(_path(task, key)) for key in keys]


def _read_texts(history: ConversationHistory) -> dict[str, str]:
    """What the reads of this run brought, by path; one that failed brought nothing."""
    mine = {call.id for call in history.made}
    good = [o for o in history.outcomes if o.call.id in mine and not o.error]
    return {outcome.call.path: shown_text(outcome.text) for outcome in good}


def _writes(
    saves: Sequence[Save], task: ExtractTask, history: ConversationHistory
) -> list[CallAsked]:
    """The files, then the pointers to them."""
    read = _read_texts(history)
    taken = {known.file for known in task.memories}
    index = read.get(_path(task, INDEX), task.index)
    asks: list[CallAsked] = []
    pointers = index
    for save in saves:
        text = read.get(_path(task, save.key), "") if save.known else ""
        if save.known and not text:  # it is gone: a memory of its own
            save = Save(save.found, new_key(save.found, taken))  # noqa: PLW2901
        ask = _changed(save, text, task) if text else _new(save, task)
        if ask is None:
            continue
        taken.add(save.key)
        asks.append(ask)
        if indexes.parse(pointers.encode()).find(save.key) is None:
            pointers = _pointed(pointers, save)
    if not asks or pointers == index:
        return asks
    return [*asks, *_index(index, pointers, task, read=_path(task, INDEX) in read)]


def _changed(save: Save, text: str, task: ExtractTask) -> CallAsked | None:
    after = changed_file(save, text)
    change = edit_between(text, after) if after is not None else None
    if change is None:
        return None
    given = {"file_path": _path(task, save.key), "old_string": change[0], "new_string": change[1]}
    return CallAsked("Edit", dict(given))


def _new(save: Save, task: ExtractTask) -> CallAsked | None:
    text = new_file(save)
    if text is None:
        return None
    return CallAsked("Write", {"file_path": _path(task, save.key), "content": text})


def _pointed(index: str, save: Save) -> str:
    """The index with a line for a memory more."""
    found = save.found
    name, hook = name_of(found), found.why or description_of(found)
    return indexes.put(index.encode(), save.key, name, hook).decode()


def _index(before: str, after: str, task: ExtractTask, *, read: bool) -> list[CallAsked]:
    path = _path(task, INDEX)
    if not before.strip():
        return [CallAsked("Write", {"file_path": path, "content": after})]
    change = edit_between(before, after) if read else None
    if change is None:
        return []  # whoever lands the file adds the line
    return [
        CallAsked("Edit", {"file_path": path, "old_string": change[0], "new_string": change[1]})
    ]


def _told(history: ConversationHistory, task: ExtractTask) -> str:
    """What became of the writes: topic files by name, the index never."""
    made = {call.id: call for call in history.made if call.name in WRITERS}
    good: dict[str, None] = {}
    bad: dict[str, None] = {}
    for outcome in history.outcomes:
        call = made.get(outcome.call.id)
        name = call.path.removeprefix(_path(task, "")) if call else INDEX
        if name != INDEX:
            (bad if outcome.error else good)[name] = None
    lines = [SAVED.format(files=", ".join(good))] if good else []
    lines += [FAILED.format(files=", ".join(bad))] if bad else []
    return "\n".join(lines) or NOTHING


# Where a finding goes


@dataclass(frozen=True, slots=True)
class Save:
    """A finding and the file it goes to: a new one, or the memory that is on its subject."""

    found: FoundFact
    key: str
    known: KnownMemory | None = None


def planned(found: Iterable[FoundFact], memories: Sequence[KnownMemory]) -> list[Save]:
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


def new_key(found: FoundFact, taken: Iterable[str]) -> str:
    return entries.key_for(name_of(found), found.type, frozenset(taken))


def _on_subject(found: FoundFact, memories: Sequence[KnownMemory]) -> KnownMemory | None:
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


def name_of(found: FoundFact) -> str:
    return shorten(found.rule.rstrip(".。!！?？"), NAME)


def description_of(found: FoundFact) -> str:
    return shorten(f"{_whose(found)}{found.rule}", DESCRIPTION)


def body_of(found: FoundFact) -> str:
    """The rule or fact, then why and how where they were given."""
    labelled = found.type in ("feedback", "project")
    parts = [
        f"{_whose(found)}{found.rule}",
        f"{'**Why:** ' if labelled else ''}{found.why}" if found.why else "",
        f"{'**How to apply:** ' if labelled else ''}{found.how}" if found.how else "",
    ]
    return "\n\n".join(filter(None, parts))


def _whose(found: FoundFact) -> str:
    if found.type != "user":
        return ""
    return "用户说：" if has_chinese(found.rule) else "In the user's words: "


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


def _replaces(found: FoundFact, old: TopicFile) -> bool:
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
