"""Extraction over sessions that are long over: Claude Code's, pi's, our own.

A recorded session is gone through in lessons: some turns that are new, behind the one before
them. A model is asked as in an extraction after a turn, with the lesson abridged. What was saved is
noted beside the memory's history, session by session: a run that is cut off goes on where it was,
and one that is repeated finds nothing to do. The recordings are only read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias, cast

from anyio import to_thread

from reverie.errors import BudgetExceeded, NotFound
from reverie.session.budget import Budget, DayUsage, Reservation, weight
from reverie.session.conversation import NoLog
from reverie.session.extraction import run as runs
from reverie.session.extraction import trigger as layer
from reverie.session.extraction.acceptance import format_reasons
from reverie.session.extraction.run import ExtractionContext
from reverie.session.extraction.trigger import NAME
from reverie.session.library import NoDisk
from reverie.session.worker import Worker, apart_head
from reverie.settings.catalog import Settings
from reverie.store.memory_store import MemoryStore
from reverie.transcript.blocks import dump
from reverie.transcript.fold import fold_entries
from reverie.transcript.records import (
    AssistantMessage,
    Attached,
    Entry,
    HeadSet,
    Started,
    Usage,
    UserMessage,
)
from reverie.transcript.view import EMPTY, View

LEARNED = "learned.jsonl"
TOKENS = 12_000
"""Rough tokens of words that one lesson holds, whole turns, at least one."""

LearnProgress: TypeAlias = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class PastSession:
    """A recorded session. `session` names it for good."""

    session: str
    entries: tuple[Entry, ...]
    file: str = ""
    program: str = ""
    cwd: str = ""


@dataclass
class LearnResult:
    """What going through one session came to."""

    session: str
    file: str = ""
    turns: int = 0  # that were new
    lessons: int = 0
    written: list[str] = field(default_factory=list[str])
    queued: list[str] = field(default_factory=list[str])
    refused: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    calls: int = 0
    cost: float = 0.0  # price-weighted tokens
    stopped: str = ""  # why it did not come to the end
    over_budget: bool = False


class RunBudget(Budget):
    """A budget for one run, in price-weighted tokens; nothing is kept of it."""

    def __init__(self, weighted: float, settings: Settings) -> None:
        self._most = weighted
        self._numbers = settings
        self._known: dict[str, float] = {}

    def reserve(self, source: str, weighted: float) -> Reservation:
        used = sum(self._known.values())
        if used + weighted > self._most:
            raise BudgetExceeded(
                f"the budget is used up: {used:,.0f} of {self._most:,.0f} price-weighted tokens",
                do="Run it again with a larger one: it goes on where it stopped",
            )
        made = Reservation(str(len(self._known)), "", source)
        self._known[made.id] = weighted
        return made

    def settle(self, reservation: Reservation, usage: Usage) -> None:
        self._known[reservation.id] = weight(usage, self._numbers)

    def spent(self, day: str | None = None) -> DayUsage:
        del day
        return DayUsage(sum(self._known.values()), len(self._known))

    def close(self) -> None:
        """Nothing is open."""


# --- what a session is gone through in


@dataclass(frozen=True, slots=True)
class TurnBatch:
    """New turns, and the turn before them for what they refer to."""

    before: tuple[Entry, ...]
    new: tuple[Entry, ...]
    turns: int

    @property
    def last(self) -> str:
        return self.new[-1].id


def lessons(entries: Sequence[Entry], after: str) -> list[TurnBatch]:
    """The turns behind `after`, in pieces of a bounded size."""
    turns = list(_turns(_spoken_entries(entries)))
    start = next((n + 1 for n, turn in enumerate(turns) if any(e.id == after for e in turn)), 0)
    found: list[TurnBatch] = []
    for at in range(start, len(turns)):
        turn = turns[at]
        before = turns[at - 1] if at else ()
        last = found[-1] if found else None
        if last is not None and _tokens((*last.new, *turn)) <= TOKENS:
            found[-1] = replace(last, new=(*last.new, *turn), turns=last.turns + 1)
        else:
            found.append(TurnBatch(before, turn, 1))
    return found


def _spoken_entries(entries: Sequence[Entry]) -> Iterator[Entry]:
    """The conversation as it was said, summaries undone, in what any provider takes."""
    view = fold_entries(entries)
    held = frozenset[str]().union(*(item.covers | {item.id} for item in view.items))
    for entry in entries:
        record = entry.record
        if entry.id not in held or not isinstance(
            record, (UserMessage, AssistantMessage, Attached)
        ):
            continue
        blocks = tuple(block for block in record.blocks if not block.thinking)
        if not blocks:
            continue
        if isinstance(record, AssistantMessage):
            yield replace(entry, record=AssistantMessage(blocks))
        else:
            yield replace(entry, record=replace(record, blocks=blocks))


def _turns(entries: Iterator[Entry]) -> Iterator[tuple[Entry, ...]]:
    """From what the user says up to where they say something else."""
    turn: list[Entry] = []
    answered = False
    for entry in entries:
        record = entry.record
        if answered and isinstance(record, UserMessage) and _is_words(record):
            yield tuple(turn)
            turn, answered = [], False
        turn.append(entry)
        answered = answered or isinstance(record, AssistantMessage)
    if turn:
        yield tuple(turn)


def _is_words(record: UserMessage) -> bool:
    return not any(block.type == "tool_result" for block in record.blocks)


def _tokens(entries: Sequence[Entry]) -> int:
    records = (entry.record for entry in entries)
    blocks = (block for record in records for block in getattr(record, "blocks", ()))
    return sum(block.tokens for block in blocks if block.type == "text")


# --- going through it


def ignore_progress(at: int, total: int) -> None:
    """A `LearnProgress` for where nobody watches."""
    del at, total


async def learn(
    past: PastSession,
    ground: ExtractionContext,
    head: HeadSet,
    budget: Budget | None,
    step: LearnProgress = ignore_progress,
) -> LearnResult:
    """Go through a session from where it was left; what stops it is said, not raised, where it
    is the budget."""
    source = replace(ground.source, session=past.session, note=f"learned from {past.program}")
    ground = replace(ground, source=source)
    done = LearnResult(past.session, past.file)
    model = ground.world.model
    by_rules = model is not None and model.capabilities.rules
    look = partial(last_learned_message, ground.memories, past, by_rules=by_rules)
    seen = await to_thread.run_sync(look)
    todo = lessons(past.entries, seen)
    done.turns = sum(one.turns for one in todo)
    for number, lesson in enumerate(todo):
        step(number, len(todo))
        try:
            finished = await _take(lesson, past, ground, head, budget, done)
        except BudgetExceeded as error:
            done.stopped, done.over_budget = str(error), True
            break
        if not finished:
            break
        if not ground.dry:
            now = ground.world.clock.now()
            await to_thread.run_sync(_note, ground.memories, past, lesson.last, by_rules, now)
    step(len(todo), len(todo))
    return done


async def _take(
    lesson: TurnBatch,
    past: PastSession,
    ground: ExtractionContext,
    head: HeadSet,
    budget: Budget | None,
    done: LearnResult,
) -> bool:
    """One lesson; False where it could not land and is left for the next time."""
    view = _view(lesson, past, head)
    fresh = layer.fresh(view, lesson.before[-1].id if lesson.before else "")
    if not fresh.has_words:
        return True
    model, world = ground.world.model, ground.world
    apart = model is not None and not model.capabilities.rules
    given = EMPTY if apart else view
    worker = Worker(NAME, NoLog(), NoDisk(), given, world, source=NAME, budget=budget)
    if apart and view.started is not None:
        worker.words = ""
        await worker.append(view.started, apart_head(world.model_name, "the session is over"))
    try:
        run = await runs.run(worker, view, fresh, ground)
    finally:
        done.calls += worker.tally.requests
        done.cost += weight(worker.tally.usage, ground.world.settings)
    landed = await runs.land(run, ground)
    done.lessons += 1
    done.written += [key for key in landed.written if key not in done.written]
    done.queued += landed.queued
    done.refused += landed.refused
    if landed.given_up:
        done.stopped = f"files changed meanwhile: {format_reasons(landed.given_up)}"
    elif not ground.dry:
        await runs.count_repeats(view, fresh, ground, past.session)
    return not landed.given_up


def _view(lesson: TurnBatch, past: PastSession, head: HeadSet) -> View:
    """The lesson as a conversation that has just come to its end."""
    at = lesson.new[0].at
    started = Started(past.session, past.cwd, past.cwd, "", NAME, NAME)
    entries = [Entry("started", "", at, started), Entry("head", "", at, head)]
    parent = ""
    for entry in (*lesson.before, *lesson.new):
        entries.append(replace(entry, parent=parent))
        parent = entry.id
    return fold_entries(entries)


# --- what was learned already


def last_learned_message(memories: MemoryStore, past: PastSession, *, by_rules: bool) -> str:
    """The last message of a session that was gone through, or "": by us, or as it went on. What
    rules alone went through, a model has not."""
    seen = {
        str(one.get("last"))
        for one in _noted(memories)
        if one.get("session") == past.session and (by_rules or "rules" not in one)
    }
    last = next((one.id for one in reversed(past.entries) if one.id in seen), "")
    if last:
        return last
    known = fold_entries(past.entries).extracted
    return known.last if known else ""


def count_learned_sessions(memories: MemoryStore, since: float) -> int:
    """How many sessions of other programs were learned from since."""
    times = ((str(one.get("session")), one.get("at")) for one in _noted(memories))
    return len({name for name, at in times if isinstance(at, int | float) and at > since})


def _noted(memories: MemoryStore) -> Iterator[dict[str, Any]]:
    with suppress(NotFound):
        for line in memories.beside.read(LEARNED).splitlines():
            with suppress(ValueError):
                value: object = json.loads(line)
                if isinstance(value, dict):
                    yield cast("dict[str, Any]", value)


def _note(memories: MemoryStore, past: PastSession, last: str, by_rules: bool, now: float) -> None:
    known = {"session": past.session, "last": last, "at": round(now)}
    line = dump({**known, "rules": True} if by_rules else known)
    memories.beside.append_line(LEARNED, line.encode())
