"""One dream, from its lock to its landing.

The agent is fresh: it knows no conversation, works on a copy with guarded tools, and its cost is
counted before each request leaves. A transcript that outgrows its window is compacted like a
session's. It ends by itself, at its limit of rounds or time, or when somebody kills it. Then its
work is judged (`memory.branch.faults`) and lands, waits for review, or is refused with the
reasons; a dream that does not land gives the lock back as it found it. Nothing that the agent
writes reaches the memory folder but through the landing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import anyio
from anyio import to_thread

import reverie
from reverie import layers
from reverie.alone import alone
from reverie.layers import dreaming
from reverie.light import dataclass
from reverie.memory import branch as branches
from reverie.memory.facts import reasons_in
from reverie.memory.secrets import removed
from reverie.session import fork as forks
from reverie.session.budget import Budget, weight
from reverie.session.conversation import ConversationParts
from reverie.session.dream.branch import Branch, Dream, dreams_folder, land, snapshot
from reverie.session.fork import Worker
from reverie.session.library import Library
from reverie.settings import Settings
from reverie.store.consolidation import Consolidation, Taken
from reverie.store.landing import is_planned
from reverie.store.lists import learned_window
from reverie.store.memories import Memories
from reverie.tools import StoredResults, ToolContext
from reverie.tools.guard import Guards
from reverie.tools.sealed import SealedCalls
from reverie.transcript.blocks import dump
from reverie.transcript.records import HeadSet, Started
from reverie.transcript.tasks import DreamTask, KnownMemory
from reverie.world import (
    Clock,
    FlagReader,
    ForkResult,
    ForkSpec,
    Model,
    Notice,
    Reply,
    Say,
    Summariser,
    World,
)

DreamTrigger: TypeAlias = Literal["auto", "manual"]
OnProgress: TypeAlias = "Callable[[Dream], None]"
POLL = 0.2
WRITES = ("Edit", "Write")
READ_BACK = "ReadBack"  # what was stored, or gave way to a summary
MAX_SHOWN = 2_000
SYSTEM = (
    "You keep the long-term memory of a software project in order. You work alone, with files, "
    "and nobody answers you. Be exact, and change no more than is needed."
)


@dataclass(frozen=True, slots=True)
class Dreamer:
    """Everything that a dream of one project needs."""

    memories: Memories
    library: Library
    root: Path
    model: Model
    guards: Guards
    clock: Clock
    settings: Settings
    flags: FlagReader
    budget: Budget | None = None
    say: Say = lambda _: None
    summariser: Summariser | None = None  # who writes summaries, where it is another model

    @property
    def home(self) -> Path:
        return self.memories.home

    @property
    def course_settings(self) -> Settings:
        """The settings for the agent: a dream compacts its own transcript. The embedded model
        reads all it did from the conversation, and takes one of any length: nothing of it may
        give way."""
        settings = replace(self.settings, context_policy="classic")
        if not self.model.capabilities.free:
            return settings
        return replace(settings, auto_compact_enabled=False)

    @property
    def lock(self) -> Consolidation:
        return Consolidation.of(self.memories.root, self.clock.now, self.settings)


async def dream(
    dreamer: Dreamer,
    trigger: DreamTrigger = "manual",
    *,
    dry_run: bool = False,
    shown: OnProgress = lambda _: None,
) -> Dream:
    """Take the lock, dream, and land what stands the checks. Raises `Held` where another runs."""
    lock = dreamer.lock
    taken = await to_thread.run_sync(lock.take)
    course = DreamRun(dreamer, lock, taken, trigger, dry_run, shown)
    try:
        return await course.run()
    finally:
        with anyio.CancelScope(shield=True):
            await course.close()


class DreamRun:
    """A dream under way."""

    def __init__(
        self,
        dreamer: Dreamer,
        lock: Consolidation,
        taken: Taken,
        trigger: DreamTrigger,
        dry_run: bool,
        shown: OnProgress,
    ) -> None:
        self.dreamer = dreamer
        self.lock = lock
        self.taken = taken
        self.dry_run = dry_run
        self.shown = shown
        self.library = Library(dreams_folder(dreamer.memories), dreamer.library.project)
        self.begun = self.library.begin()
        self.branch = Branch(self.library.path, self.begun.id, create=True)
        now = dreamer.clock.now()
        self.now = Dream(self.begun.id, "running", "starting", trigger, dreamer.model.name)
        self.now = replace(self.now, pid=os.getpid(), began=now)
        self.worker: Worker | None = None
        self.base: dict[str, bytes] = {}
        self.times: dict[str, float] = {}
        self.settled = False

    async def run(self) -> Dream:
        await self._told()
        await to_thread.run_sync(self._copied)
        stopped, result, error = await self._worked()
        if stopped:
            return await self._failed(stopped == "killed", stopped, ())
        if error or result is None:
            return await self._failed(False, error or "it gave no answer", ())
        return await self._judged(result)

    async def close(self) -> None:
        """Give the lock back where nothing landed, and leave nothing open."""
        if not self.settled:
            await to_thread.run_sync(lambda: self.lock.give_back(self.taken))
            if not self.now.over:
                self.now = replace(self.now, status="killed", reason="it was cancelled")
                self.now = replace(self.now, ended=self.dreamer.clock.now())
                await self._told()
        try:
            if self.worker is not None:
                await self.worker.settled()
        finally:
            (self.worker or self.begun.log).close()
            self.branch.close()
            self.library.close()

    def _copied(self) -> None:
        folder = self.dreamer.memories.folder
        with folder.locked():
            self.dreamer.memories.look()
            self.base = snapshot(folder)
            self.times = {key: folder.stat(key).modified / 1e9 for key in self.base}
        self.branch.begin(self.base, self.times)

    # The agent

    async def _worked(self) -> tuple[str, ForkResult | None, str]:
        """Let it work: why it was stopped, what it did, or what went wrong."""
        result: ForkResult | None = None
        error, stopped = "", ""

        async def watched(scope: anyio.CancelScope) -> None:
            nonlocal stopped
            end = self.dreamer.clock.now() + self.dreamer.settings.dream_limit_minutes * 60
            while True:
                await anyio.sleep(POLL)
                if self.branch.killed:
                    stopped = "killed"
                elif self.dreamer.clock.now() >= end:
                    minutes = self.dreamer.settings.dream_limit_minutes
                    stopped = f"it took over {minutes:g} minutes"
                if stopped:
                    scope.cancel()
                    return

        async with anyio.create_task_group() as group:
            group.start_soon(watched, group.cancel_scope)
            result, error = await alone(self._agent(), None)
            group.cancel_scope.cancel()
        return stopped, result, error

    async def _agent(self) -> ForkResult:
        spec = self._spec()
        self.worker = worker = await self._hired()
        guards = replace(self.dreamer.guards, context=lambda: self._context(worker))
        tools = guards(spec, also_readable=(self.branch.work, self.library.path))
        try:
            return await forks.run(worker, spec, self.dreamer.model, tools, self._saw)
        finally:
            tools.close()

    def _context(self, worker: Worker) -> ToolContext:
        """What its tools use: ReadBack looks in the dream's own transcript and stored results."""
        folder, name = self.library.folder, self.begun.id
        return replace(
            self.dreamer.guards.context(),
            stored=StoredResults(folder, name, lambda: worker.view),
            sources=(SealedCalls(lambda: worker.view, folder, name),),
        )

    def _spec(self) -> ForkSpec:
        dreamer, work = self.dreamer, str(self.branch.work)
        settings, now = dreamer.settings, dreamer.clock.now()
        transcripts = str(dreamer.library.path)
        task = DreamTask(
            folder=work,
            transcripts=transcripts,
            root=str(dreamer.root),
            now=now,
            memories=tuple(KnownMemory(key, saved=at) for key, at in sorted(self.times.items())),
            index_lines=settings.index_lines,
            index_bytes=settings.index_bytes,
        )
        today = datetime.fromtimestamp(now, UTC).strftime("%A, %Y-%m-%d")
        text = dreaming.instruction(work, transcripts, today, settings)
        rounds = settings.dream_rounds
        return ForkSpec(dreaming.NAME, text, task, rounds, (*dreaming.TOOLS, READ_BACK), (work,))

    async def _hired(self) -> Worker:
        dreamer = self.dreamer
        world = World(
            dreamer.clock,
            self.begun.disk,
            dreamer.flags,
            dreamer.course_settings,
            dreamer.model,
            say=lambda notice: dreamer.say(replace(notice, text=f"in a dream: {notice.text}")),
            summariser=dreamer.summariser,
            model_name=dreamer.model.name,
            learned_window=learned_window(dreamer.home, dreamer.model.name),
            tool_limits=dreamer.guards.registry.limits(),
        )
        parts = ConversationParts(
            self.begun.log,
            self.begun.disk,
            self.begun.transcript.view,
            world,
            dreaming.NAME,
            layers.WHEN_ADDED,
            layers.BEFORE_A_REQUEST,
            budget=dreamer.budget,
            agent_log=partial(self.library.agent_log, self.begun.id),
            home=dreamer.home,
        )
        worker = Worker(parts, self.begun.id, compacts=True)
        root = str(dreamer.root)
        version = reverie.__version__
        await worker.append(
            Started(self.begun.id, root, root, version, dreaming.NAME, self.begun.id),
            HeadSet(
                dreamer.model.name,
                dump([{"type": "text", "text": SYSTEM}]),
                dump(dreamer.guards.registry.definitions()),
            ),
        )
        return worker

    def _saw(self, reply: Reply) -> None:
        """A round is over: what people are shown of it."""
        calls = reply.tool_calls
        writes = any(call.name in WRITES for call in calls)
        said = removed(reply.text.strip())[0][:MAX_SHOWN]
        texts = (*self.now.rounds, *((said,) if said else ()))
        most = self.dreamer.settings.dream_shown_rounds
        tally = self.worker.tally if self.worker else None
        self.now = replace(
            self.now,
            phase="updating" if writes else self.now.phase,
            rounds=texts[-most:],
            tools=self.now.tools + len(calls),
            requests=tally.requests if tally else 0,
            weighted=weight(tally.usage, self.dreamer.settings) if tally else 0.0,
        )
        self.branch.write(self.now)
        self.shown(self.now)

    # The outcome

    async def _judged(self, result: ForkResult) -> Dream:
        strangers = self.branch.strangers()
        work = branches.settled(self.branch.state("work"), self.base)
        keys = branches.changed(self.base, work)
        said, _ = removed(result.text.partition("```reasons")[0].strip())
        summary = said[:MAX_SHOWN]
        self.now = replace(self.now, touched=result.written, changed=keys, summary=summary)
        faults = await to_thread.run_sync(lambda: self._faults(work, result.text))
        told = (*(f"name: {key}: this is no memory file" for key in strangers), *map(str, faults))
        if told:
            return await self._failed(False, f"{len(told)} faults: {told[0]}", told)
        if keys and (self.dry_run or self.dreamer.settings.dream_review):
            return await self._waits()
        return await self._landed(work)

    def _faults(self, work: branches.FolderFiles, text: str) -> Sequence[branches.BranchFault]:
        return branches.faults(
            self.base,
            work,
            reasons_in(text),
            limits=self.dreamer.memories.folder.limits,
            now=self.dreamer.clock.now(),
        )

    async def _landed(self, work: branches.FolderFiles) -> Dream:
        def step() -> Any:
            with self.lock.landing(self.taken):
                return land(self.dreamer.memories, self.branch, self.base, work)

        found, error = await alone(to_thread.run_sync(step), None)
        if found is None and is_planned(self.dreamer.memories):
            later = "it was cut off while it landed, and lands when the memory is next opened"
            return await self._failed(False, f"{later}: {error}", ())
        if found is None:
            return await self._failed(False, error, ())
        self.settled = True
        self.now = replace(self.now, changed=found.changed, conflicts=found.conflicts)
        return await self._over("completed", "")

    async def _waits(self) -> Dream:
        """Left for a person: the time counts as that of a dream, unless it was only tried."""
        if not self.dry_run:

            def kept() -> None:
                with self.lock.landing(self.taken):
                    pass

            await to_thread.run_sync(kept)
            self.settled = True
        return await self._over("waiting", "its changes wait for review")

    async def _failed(self, killed: bool, reason: str, faults: Sequence[str]) -> Dream:
        self.now = replace(self.now, faults=tuple(faults))
        return await self._over("killed" if killed else "failed", reason)

    async def _over(
        self, status: Literal["completed", "failed", "killed", "waiting"], reason: str
    ) -> Dream:
        at = self.dreamer.clock.now()
        self.now = replace(self.now, status=status, reason=reason, ended=at)
        await self._told()
        if status == "completed":
            await to_thread.run_sync(self.branch.drop_copies)
        self.dreamer.say(Notice(dreaming.NAME, told(self.now), _LEVELS.get(status, "info")))
        return self.now

    async def _told(self) -> None:
        await to_thread.run_sync(lambda: self.branch.write(self.now))
        self.shown(self.now)


_LEVELS: dict[str, Literal["info", "warning", "error"]] = {"failed": "warning"}


def told(dream: Dream) -> str:
    """How a dream ended, in a sentence."""
    files = f"{len(dream.changed)} file{'' if len(dream.changed) == 1 else 's'}"
    match dream.status:
        case "completed" if dream.changed:
            more = f"; look at {', '.join(dream.conflicts)}" if dream.conflicts else ""
            return f"a dream changed {files}{more}; it can be undone"
        case "completed":
            return "a dream found nothing to change"
        case "waiting":
            return f"a dream would change {files}: look at it, then accept or drop it"
        case _:
            how = "was killed" if dream.status == "killed" else "failed"
            return f"a dream {how}: {dream.reason or dream.status}"
