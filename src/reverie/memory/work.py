"""The long verbs of a memory: learning, tidying, checking, forgetting.

Learning and tidying wait for a model, which is the embedded rules where none is handed in: free,
and on this machine alone. They have a memory of their own open, so that nobody else waits for
them, and they may be called inside a running event loop, whose thread they hold up.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from reverie.concurrency import run
from reverie.embedded.model import EmbeddedModel
from reverie.errors import BudgetExceeded, NotFound
from reverie.memory.check import check_memory, fix_memory
from reverie.memory.forget import ForgetRun
from reverie.memory.tasks import (
    close_summariser,
    daily_budget,
    learn_past,
    learning_context,
    open_dreamer,
)
from reverie.memory.values import Checked, Dreamt, Fault, Forgotten, Saved
from reverie.session.dream import results
from reverie.session.dream.run import run_dream as dream_once
from reverie.session.extraction.past_sessions import LearnResult, PastSession
from reverie.session.open_memory import OpenMemory, lend_memory
from reverie.session.transfer import past_in
from reverie.store.lock import FileLock
from reverie.store.project import Project
from reverie.topics.versions import Origin
from reverie.transcript.records import AssistantMessage, Entry, UserMessage
from reverie.wire.lists import ParsedMessage, adopt, format_of, parse_message, value_of
from reverie.world import Model, Notice, Say

LEARNING = "learning.lock"
LEARNING_SECONDS = 50.0


# Learning


def learn(
    project: Project, messages: Sequence[object], model: Model | None, say: Say
) -> list[Saved]:
    """Keep what is worth keeping in a conversation; what was gone through is not gone through
    again when the same conversation comes back longer."""
    entries = tuple(_entries(messages))
    if not entries:
        return []
    past = PastSession(entries[0].id, entries, program="messages")
    return learn_session(project, past, model, say)


def learn_recorded(
    project: Project, file: str | os.PathLike[str], model: Model | None, say: Say
) -> list[Saved]:
    """The same for a session file, of Claude Code or another program; one that is longer now is
    gone on with. Two that learn at once wait for each other."""
    past = past_in(Path(file), lambda text: say(Notice("extraction", text)))
    if not past.entries:
        return []
    with lend_memory(project, say) as one:
        lock = FileLock(one.store.beside.root / LEARNING)
    with lock.hold(LEARNING_SECONDS):
        return learn_session(project, past, model, say)


def learn_session(
    project: Project, past: PastSession, model: Model | None, say: Say
) -> list[Saved]:
    """The same for a session that was read."""
    chosen = model or EmbeddedModel()
    with OpenMemory.of(project, say=say) as opened:
        context = learning_context(project, opened.store, chosen, say)
        budget = daily_budget(project, chosen)
        try:
            done = run(lambda: learn_past(past, context, budget))
        finally:
            if budget is not None:
                budget.close()
        for key, why in done.refused:
            say(Notice("extraction", f"{key} was not saved: {why}"))
        if done.over_budget:
            raise BudgetExceeded(done.stopped)
        return list(_saved_memories(opened, done))


def _saved_memories(opened: OpenMemory, done: LearnResult) -> Iterator[Saved]:
    for key in done.written:
        try:
            text = opened.store.folder.read(key).body.strip()
        except NotFound:
            text = ""
        yield Saved("saved", key, text, opened.newest_change(key))
    for item in opened.store.review.items():
        if item.key in done.queued:
            yield Saved("queued", item.key, item.body, reason=item.reason)


def _entries(messages: Sequence[object]) -> Iterator[Entry]:
    """A list of messages in any of the three formats as a transcript: words, calls and results.
    A call that nobody answered yet is left out."""
    values = [_value(one) for one in messages]
    form, _ = format_of(values)
    parsed = [parse_message(value, form) for value in values]
    parts = adopt(parsed, form).parts
    names, parent, at = _names(values, parsed), "", time.time()
    waiting = {block.call for part in parts if part.part == "interrupted" for block in part.blocks}
    for part in parts:
        blocks = tuple(block for block in part.blocks if block.type in _KEPT[part.part])
        blocks = tuple(b for b in blocks if b.type != "tool_use" or b.call not in waiting)
        if all(block.blank for block in blocks) or parsed[part.first].speaker == "other":
            continue
        tool = all(block.type == "tool_result" for block in blocks)
        said = UserMessage(blocks, "tool" if tool else "user")
        record = AssistantMessage(blocks) if part.part == "assistant" else said
        yield Entry(names[part.end - 1], parent, at, record)
        parent = names[part.end - 1]


_KEPT: Mapping[str, tuple[str, ...]] = {
    "user": ("text", "tool_result"),
    "assistant": ("text", "tool_use"),
    "aside": ("text",),  # words beside a picture
    "interrupted": (),
}


def _value(message: object) -> dict[str, Any]:
    return {"role": "user", "content": message} if isinstance(message, str) else value_of(message)


def _names(values: Sequence[Mapping[str, Any]], parsed: Sequence[ParsedMessage]) -> list[str]:
    """An id for each message, from what was said up to there: calls and results change no id
    behind them."""
    chain, names = sha256(), list[str]()
    for value, one in zip(values, parsed, strict=True):
        said = chain.copy()
        words = value.get("role") in ("user", "assistant") and any(
            block.type == "text" and not block.blank for block in one.blocks
        )
        told = (value.get("role"), value.get("content")) if words else value
        said.update(repr(told).encode("utf-8", "replace"))
        chain = said if words else chain
        names.append(said.hexdigest()[:32])
    return names


# Tidying


def dream(project: Project, model: Model | None, say: Say, *, dry_run: bool) -> Dreamt:
    """Tidy the memory on a copy; what stands the checks lands as one step."""
    if not project.has_memory:
        return Dreamt("completed", reason="there is no memory yet")
    with (
        OpenMemory.of(project, say=say) as opened,
        open_dreamer(project, opened.store, model or EmbeddedModel(), say) as dreamer,
    ):

        async def work() -> Dreamt:
            async with close_summariser(dreamer):
                done = await dream_once(dreamer, "manual", dry_run=dry_run)
            return Dreamt(done.status, done.changed, done.summary, done.reason, done.id)

        done = run(work)
        if dry_run and done.status == "waiting":
            results.drop(opened.store, results.find(opened.store, done.id))
        return done


# Checking and forgetting


def check(project: Project, origin: Origin, say: Say, *, fix: bool) -> Checked:
    """The faults of the memory at this address, and with `fix` the repairs that lose nothing."""
    if not project.has_memory:
        return Checked(100)
    with lend_memory(project, say) as one:
        one.store.look()
        done = fix_memory(one.store, project, origin) if fix else None
        report = check_memory(one.store, project)
        steps = [v for v in one.store.history.log() if done and v.group == done.group != ""]
    faults = tuple(
        Fault(each.kind, each.file, each.line, each.evidence, each.fixable)
        for each in report.findings
    )
    fixed = (*done.files, *done.removed) if done else ()
    change = steps[-1].id if steps else ""
    return Checked(report.score, faults, fixed, change, done.failed if done else "")


def forget(project: Project, words: str, *, dry_run: bool) -> Forgotten:
    """Take words out of everything under home, and prove it."""
    done = ForgetRun.of(project).run(words, dry_run=dry_run)
    return Forgotten(
        tuple(one.path for one in done.touched),
        done.remaining,
        done.searched,
        done.proven,
        done.dry_run,
    )
