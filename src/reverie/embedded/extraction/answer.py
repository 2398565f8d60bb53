"""The embedded answer to extraction: what is worth keeping of the newest messages, written.

It reads the user's own new words by fixed rules and works through tool calls: the memories to
change are read in one round, everything is written in the next, file first and pointer after,
and a last short text says what was done. It calls no other tool, writes outside no folder it
was given, and where nothing is worth keeping it says so and writes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from reverie.embedded import history as past
from reverie.embedded.extraction.judging import findings
from reverie.embedded.extraction.words import turns
from reverie.embedded.extraction.writing import (
    Save,
    changed_file,
    description_of,
    edit_between,
    name_of,
    new_file,
    new_key,
    planned,
    shown_text,
)
from reverie.embedded.forms import CallAsked, read_ask
from reverie.embedded.history import ConversationHistory
from reverie.memory.format import index as indexes
from reverie.memory.format.entry import INDEX
from reverie.transcript.blocks import Block, text_block
from reverie.transcript.request import Request
from reverie.transcript.tasks import ExtractTask

NOTHING = "Nothing new is worth keeping."
SAVED = "Saved: {files}."
FAILED = "Not saved: {files}."
WRITERS = frozenset({"Write", "Edit"})


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
    if not asks or not history.tools >= {ask.tool for ask in asks}:
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
    if not saves or "Read" not in history.tools:
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
    return indexes.parse(index.encode()).put(save.key, name, hook).decode()


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
