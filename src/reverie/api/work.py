"""The long verbs of a memory: learning, tidying, checking, forgetting.

Learning and tidying wait for a model, which is the embedded rules where none is handed in: free,
and on this machine alone. They have a memory of their own open, so that nobody else waits for
them, and they may be called inside a running event loop, whose thread they hold up.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from reverie.agent.memory import AgentPlace, agent_memories
from reverie.api.pool import Ground, shared
from reverie.api.values import Checked, Dreamt, Fault, Forgotten, Saved
from reverie.api.writing import Writer
from reverie.concurrency import run
from reverie.embedded import EmbeddedModel
from reverie.errors import BudgetExceeded, InvalidMessage, NotFound
from reverie.memory.format.entry import TopicFile
from reverie.session.dream import doors
from reverie.session.dream.run import dream as dream_once
from reverie.session.extraction.past import Learned, PastSession
from reverie.session.extraction.past import learn as go_through
from reverie.store.lock import FileLock
from reverie.store.memories import Memories, history_folder
from reverie.transcript.blocks import text_block
from reverie.transcript.records import AssistantMessage, Entry, UserMessage
from reverie.upkeep.background import (
    closing,
    daily_budget,
    dreaming,
    learning_context,
    learning_head,
)
from reverie.upkeep.check import check_memory, fix_memory
from reverie.upkeep.forget import Forgetting
from reverie.upkeep.past_files import past_in
from reverie.upkeep.place import ProjectPlace
from reverie.world import Model, Notice

LEARNING = "learning.lock"
LEARNING_SECONDS = 50.0


def place_of(ground: Ground) -> ProjectPlace:
    """An address as upkeep knows a project."""
    return ProjectPlace(ground.environ, ground.home, ground.root)


# Learning


def learn(writer: Writer, messages: Sequence[object], model: Model | None) -> list[Saved]:
    """Keep what is worth keeping in a conversation; what was gone through is not gone through
    again when the same conversation comes back longer."""
    entries = tuple(_entries(messages))
    if not entries:
        return []
    return _learn(writer, PastSession(entries[0].id, entries, program="messages"), model)


def learn_recorded(writer: Writer, path: Path, model: Model | None = None) -> list[Saved]:
    """The same for a session file, of Claude Code or another program; one that is longer now is
    gone on with. Two that learn at once wait for each other."""
    past = past_in(path, lambda text: writer.say(Notice("extraction", text)))
    if not past.entries:
        return []
    writer.ground.claim()
    with shared().opened(writer.ground, writer.say) as one:
        lock = FileLock(one.memories.beside.root / LEARNING)
    lock.acquire(LEARNING_SECONDS)
    try:
        return _learn(writer, past, model)
    finally:
        lock.release()


def _learn(writer: Writer, past: PastSession, model: Model | None) -> list[Saved]:
    place, ground = place_of(writer.ground), writer.ground
    chosen = model or EmbeddedModel()
    with ground.open(writer.say) as memories:
        context = learning_context(place, ground.settings, memories, chosen, writer.say)
        budget = daily_budget(place, ground.settings, chosen)
        try:
            done = run(lambda: go_through(past, context, learning_head(context), budget))
        finally:
            if budget is not None:
                budget.close()
        for key, why in done.refused:
            writer.say(Notice("extraction", f"{key} was not saved: {why}"))
        if done.over_budget:
            raise BudgetExceeded(done.stopped)
        return list(_learned(memories, done))


def _learned(memories: Memories, done: Learned) -> Iterator[Saved]:
    for key in done.written:
        try:
            text = memories.folder.read(key).body.strip()
        except NotFound:
            text = ""
        steps = memories.history.log(key)
        yield Saved("saved", key, text, steps[-1].id if steps else "")
    for item in memories.review.items():
        if item.key in done.queued:
            text = TopicFile(item.key, item.text.encode("utf-8", "replace")).body.strip()
            why = "; ".join(f"{one.rule}: {one.words}" for one in item.evidence)
            yield Saved("queued", item.key, text, reason=why)


def _entries(messages: Sequence[object]) -> Iterator[Entry]:
    """A list of messages as a transcript; ids follow from what was said up to there."""
    chain, parent, at = sha256(), "", time.time()
    for message in messages:
        value = _value(message)
        record = _record(value)
        if record is None:
            continue
        chain.update(repr((value.get("role"), value.get("content"))).encode("utf-8", "replace"))
        name = chain.hexdigest()[:32]
        yield Entry(name, parent, at, record)
        parent = name


def _value(message: object) -> Mapping[str, Any]:
    if isinstance(message, str):
        return {"role": "user", "content": message}
    if isinstance(message, Mapping):
        return cast("Mapping[str, Any]", message)
    dump = getattr(message, "model_dump", None)
    if callable(dump):
        return cast("Mapping[str, Any]", dump(mode="json", exclude_unset=True))
    raise InvalidMessage(
        "a message is a dict with role and content, or an SDK's object",
        where=type(message).__name__,
    )


def _record(value: Mapping[str, Any]) -> UserMessage | AssistantMessage | None:
    """What was said by a person or the model; what a tool or the system says teaches nothing."""
    content: object = value.get("content")
    if value.get("role") not in ("user", "assistant") or not content:
        return None
    parts = [content] if isinstance(content, str) else cast("Sequence[object]", content)
    blocks = tuple(text_block(text) for part in parts if (text := _text(part)))
    if all(block.blank for block in blocks):
        return None
    return UserMessage(blocks) if value["role"] == "user" else AssistantMessage(blocks)


def _text(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return ""
    found = cast("Mapping[str, object]", part)
    is_text = found.get("type") in ("text", "input_text", "output_text")
    return str(found.get("text") or "") if is_text else ""


# Tidying


def dream(writer: Writer, model: Model | None, dry_run: bool) -> Dreamt:
    """Tidy the memory on a copy; what stands the checks lands as one step."""
    ground = writer.ground
    if not ground.is_there:
        return Dreamt("completed", reason="there is no memory yet")
    place = place_of(ground)
    with (
        ground.open(writer.say) as memories,
        dreaming(place, ground.settings, memories, model or EmbeddedModel(), writer.say) as dreamer,
    ):

        async def work() -> Dreamt:
            async with closing(dreamer):
                done = await dream_once(dreamer, "manual", dry_run=dry_run)
            return Dreamt(done.status, done.changed, done.summary, done.reason, done.id)

        done = run(work)
        if dry_run and done.status == "waiting":
            doors.drop(memories, doors.find(memories, done.id))
        return done


# Checking and forgetting


def check(writer: Writer, fix: bool) -> Checked:
    """The faults of the memory at this address, and with `fix` the repairs that lose nothing."""
    ground, place = writer.ground, place_of(writer.ground)
    if not ground.is_there:
        return Checked(100)
    with shared().opened(ground, writer.say) as one:
        one.memories.look()
        done = fix_memory(one.memories, place, writer.origin("check")) if fix else None
        report = check_memory(one.memories, place)
        steps = [v for v in one.memories.history.log() if done and v.group == done.group != ""]
    faults = tuple(
        Fault(each.kind, each.file, each.line, each.evidence, each.fix is not None)
        for each in report.findings
    )
    fixed = (*done.files, *done.removed) if done else ()
    change = steps[-1].id if steps else ""
    return Checked(report.score, faults, fixed, change, done.failed if done else "")


def forget(writer: Writer, words: str, dry_run: bool) -> Forgotten:
    """Take words out of everything under home, and prove it."""
    ground = writer.ground
    home, root, environ = ground.home, ground.root, ground.environ
    kept = history_folder(home, root, environ)
    outside = [] if ground.folder.is_relative_to(home) else [(ground.folder, kept)]
    agents = agent_memories(AgentPlace(home, root, environ, ground.settings))
    work = Forgetting(home, environ, time.time, [*outside, *agents])
    done = work.run(words, dry_run=dry_run)
    return Forgotten(
        tuple(one.path for one in done.touched),
        done.remaining,
        done.searched,
        done.proven,
        done.dry_run,
    )
