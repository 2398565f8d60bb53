"""One dream, from its lock to its end.

The agent is fresh: it knows no conversation, works on a copy with guarded tools, and its cost is
counted before each request leaves. A transcript that outgrows its window is compacted like a
session's. It ends by itself, at its limit of rounds or time, or when somebody kills it. Then its
work is judged change by change (`consolidation.changes`): what is wrong goes back to a model twice,
what is still wrong is left out and reported, and the rest is applied or waits for review. A dream
of which nothing is applied gives the lock back as it found it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

import anyio
from anyio import to_thread

import reverie
from reverie.concurrency import alone
from reverie.consolidation import branch as branches
from reverie.consolidation.changes import BranchVerdict, change_verdict
from reverie.consolidation.folder import CheckInput
from reverie.consolidation.reasons import Tombstone, reasons_in
from reverie.light import dataclass
from reverie.secrets.scanner import remove_secrets
from reverie.session import worker as forks
from reverie.session.budget import Budget, weight
from reverie.session.dream import schedule
from reverie.session.dream.branch import (
    Dream,
    DreamBranch,
    DreamChanges,
    applied_files,
    dreams_folder,
    land,
    snapshot,
    sources_of,
)
from reverie.session.dream.results import describe_dream, doubted_rules
from reverie.session.library import SessionLibrary
from reverie.session.options import RequestHead
from reverie.session.recall.project_index import TopicTimes, written_times
from reverie.session.worker import Worker, worker_world
from reverie.settings.catalog import Settings
from reverie.store.consolidation_lock import AcquiredLock, ConsolidationLock
from reverie.store.memory_store import MemoryStore
from reverie.store.transaction import JobFence, is_planned
from reverie.text.format import plural
from reverie.toolbox.guard import Guards
from reverie.toolbox.read_back import SealedCalls
from reverie.toolbox.tool import StoredResults, ToolContext
from reverie.topics.entry import TopicFile, decode_text, is_topic
from reverie.topics.trust import Trust
from reverie.transcript.records import Started
from reverie.transcript.tasks import DoubtedRule, DreamTask, KnownMemory
from reverie.wire.reply import Reply, ToolCall
from reverie.world import Clock, FlagReader, ForkResult, ForkSpec, Model, Notice, Say, Summariser

DreamTrigger: TypeAlias = Literal["auto", "manual"]
OnProgress: TypeAlias = "Callable[[Dream], None]"
POLL = 0.2
WRITES = ("Edit", "Write")
READ_BACK = "ReadBack"  # what was stored, or gave way to a summary
MAX_SHOWN = 2_000

RETRIES = 2
"""How often what is wrong with its work goes back to a model."""
_REASONS = re.compile(r"^```reasons[ \t]*\n.*?(?:^```[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
SYSTEM = (
    "You keep the long-term memory of a software project in order. You work alone, with files, "
    "and nobody answers you. Be exact, and change no more than is needed."
)


@dataclass(frozen=True, slots=True)
class DreamContext:
    """Everything that a dream of one project needs."""

    memories: MemoryStore
    library: SessionLibrary
    root: Path
    model: Model
    guards: Guards
    clock: Clock
    settings: Settings
    flags: FlagReader
    budget: Budget | None = None
    say: Say = lambda _: None
    summariser: Summariser | None = None  # who writes summaries, where it is another model
    fence: JobFence | None = None  # where it is a job that may be tried again

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
    def lock(self) -> ConsolidationLock:
        return ConsolidationLock.of(self.memories.root, self.clock.now, self.settings)


async def run_dream(
    dreamer: DreamContext,
    trigger: DreamTrigger = "manual",
    *,
    dry_run: bool = False,
    shown: OnProgress = lambda _: None,
) -> Dream:
    """Take the lock, dream, and land what stands the checks. Raises `Held` where another runs."""
    lock = dreamer.lock
    taken = await to_thread.run_sync(lock.take)
    try:
        course = DreamRun(dreamer, lock, taken, trigger, dry_run, shown)
    except BaseException:
        lock.give_back(taken)
        raise
    try:
        return await course.run()
    finally:
        with anyio.CancelScope(shield=True):
            await course.close()


class DreamRun:
    """A dream under way."""

    def __init__(
        self,
        dreamer: DreamContext,
        lock: ConsolidationLock,
        taken: AcquiredLock,
        trigger: DreamTrigger,
        dry_run: bool,
        shown: OnProgress,
    ) -> None:
        self.dreamer = dreamer
        self.lock = lock
        self.taken = taken
        self.dry_run = dry_run
        self.shown = shown
        self.library = SessionLibrary(dreams_folder(dreamer.memories), dreamer.library.project)
        self.begun = self.library.begin()
        self.branch = DreamBranch(self.library.path, self.begun.id, create=True)
        now = dreamer.clock.now()
        self.now = Dream(self.begun.id, "running", "starting", trigger, dreamer.model.name)
        self.now = replace(self.now, pid=os.getpid(), began=now)
        self.worker: Worker | None = None
        self.base: dict[str, bytes] = {}
        self.times = TopicTimes()
        self.rules: tuple[DoubtedRule, ...] = ()
        self.settled = False

    async def run(self) -> Dream:
        await self._publish_state()
        await to_thread.run_sync(self._copy_memory)
        stopped, result, error = await self._run_worker()
        if stopped:
            return await self._fail_run(stopped == "killed", stopped, ())
        if error or result is None:
            return await self._fail_run(False, error or "it gave no answer", ())
        return await self._judge_result(result)

    async def close(self) -> None:
        """Give the lock back where nothing landed, and leave nothing open."""
        if not self.settled:
            _, error = await alone(
                to_thread.run_sync(lambda: self.lock.give_back(self.taken)), False
            )
            if error:
                self.dreamer.say(Notice(schedule.NAME, error, "warning"))
            if not self.now.over:
                self.now = replace(self.now, status="killed", reason="it was cancelled")
                self.now = replace(self.now, ended=self.dreamer.clock.now())
                await self._publish_state()
        try:
            if self.worker is not None:
                await self.worker.settled()
        finally:
            (self.worker or self.begun.log).close()
            self.branch.close()
            self.library.close()

    def _copy_memory(self) -> None:
        folder = self.dreamer.memories.folder
        with folder.locked():
            self.dreamer.memories.look()
            self.base = snapshot(folder)
            stamps = {key: folder.stat(key).modified / 1e9 for key in self.base}
            now = self.dreamer.clock.now()
            self.times = written_times(self.dreamer.memories, self.base, now)
            self.rules = doubted_rules(self.dreamer.memories, self.dreamer.root, self.base)
        self.branch.begin(self.base, stamps)

    # The agent

    async def _run_worker(self) -> tuple[str, ForkResult | None, str]:
        """Let it work: why it was stopped, what it did, or what went wrong."""
        result: ForkResult | None = None
        error, stopped = "", ""

        async def watch_limits(scope: anyio.CancelScope) -> None:
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
            group.start_soon(watch_limits, group.cancel_scope)
            result, error = await alone(self._agent(), None)
            group.cancel_scope.cancel()
        return stopped, result, error

    async def _agent(self) -> ForkResult:
        spec = self._spec()
        self.worker = worker = await self._spawn_worker()
        guards = replace(self.dreamer.guards, context=lambda: self._context(worker))
        tools = guards(spec, also_readable=(self.branch.work, self.library.path))
        tools.note_shown(self.branch.work, spec.instruction, self.base.get)
        if self.dreamer.model.capabilities.rules:  # they read the files in the task
            tools.note_files(self.branch.work, self.base)
        try:
            result = await forks.run(worker, spec, self.dreamer.model, tools, self._saw)
            for _ in range(0 if self.dreamer.model.capabilities.free else RETRIES):
                found = await to_thread.run_sync(partial(self._verdict, result.text))
                if not found.left:
                    break
                again = replace(spec, instruction=schedule.faults_told(map(str, _all(found))))
                more = await forks.run(worker, again, self.dreamer.model, tools, self._saw)
                written = tuple(dict.fromkeys((*result.written, *more.written)))
                result = replace(more, text=f"{result.text}\n\n{more.text}", written=written)
            return result
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
            files=tuple(sorted(self.base.items())),
            transcripts=transcripts,
            root=str(dreamer.root),
            now=now,
            memories=self._manifest(),
            index_lines=settings.index_lines,
            index_bytes=settings.index_bytes,
            rules=self.rules,
        )
        today = datetime.fromtimestamp(now, UTC).strftime("%A, %Y-%m-%d")
        texts = {key: decode_text(data) for key, data in sorted(self.base.items())}
        text = schedule.dream_prompt(
            work, transcripts, today, settings, task.memories, texts, task.rules
        )
        rounds = settings.dream_rounds
        return ForkSpec(schedule.NAME, text, task, rounds, (*schedule.TOOLS, READ_BACK), (work,))

    def _manifest(self) -> tuple[KnownMemory, ...]:
        """The files of the copy, with what is known of each."""
        found: list[KnownMemory] = []
        for key, at in sorted(self.times.files.items()):
            entry = TopicFile(key, self.base[key])
            about = (entry.type, entry.name, entry.description) if is_topic(key) else ("", "", "")
            found.append(KnownMemory(key, *about, at, self.times.lines.get(key, ())))
        return tuple(found)

    async def _spawn_worker(self) -> Worker:
        dreamer, begun = self.dreamer, self.begun
        tools = dreamer.guards.registry
        world = worker_world(
            dreamer.model,
            dreamer.course_settings,
            dreamer.flags,
            dreamer.clock,
            home=dreamer.home,
            say=lambda notice: dreamer.say(replace(notice, text=f"in a dream: {notice.text}")),
            tool_limits=tools.limits(),
            summariser=dreamer.summariser,
        )
        root, version = str(dreamer.root), reverie.__version__
        head = RequestHead(dreamer.model.name, SYSTEM, tools.definitions())
        return await Worker.open(
            begun,
            world,
            lambda: (
                Started(begun.id, root, root, version, schedule.NAME, begun.id),
                head.record(),
            ),
            source=schedule.NAME,
            budget=dreamer.budget,
            agent_log=partial(self.library.agent_log, begun.id),
            home=dreamer.home,
        )

    def _saw(self, reply: Reply) -> None:
        """A round is over: what people are shown of it."""
        calls = reply.tool_calls
        writes = any(call.name in WRITES for call in calls)
        said = remove_secrets(reply.text.strip())[0][:MAX_SHOWN]
        texts = (*self.now.rounds, *((said,) if said else ()))
        most = self.dreamer.settings.dream_shown_rounds
        tally = self.worker.tally if self.worker else None
        self.now = replace(
            self.now,
            phase="updating" if writes else self.now.phase,
            rounds=texts[-most:],
            touched=tuple(dict.fromkeys((*self.now.touched, *self._written_by(calls)))),
            tools=self.now.tools + len(calls),
            requests=tally.requests if tally else 0,
            weighted=weight(tally.usage, self.dreamer.settings) if tally else 0.0,
        )
        self.branch.write(self.now)
        self.shown(self.now)

    def _written_by(self, calls: Sequence[ToolCall]) -> Iterator[str]:
        """The files of the copy that calls write to."""
        work = f"{self.branch.work}/"
        for call in calls:
            path = str(call.arguments.get("file_path", ""))
            if call.name in WRITES and path.startswith(work):
                yield path.removeprefix(work)

    # The outcome

    async def _judge_result(self, result: ForkResult) -> Dream:
        strangers = [f"{key}: this is no memory file" for key in self.branch.strangers()]
        found = await to_thread.run_sync(partial(self._verdict, result.text))
        keys = branches.changed_keys(self.base, found.work)
        said = remove_secrets(_REASONS.sub("", result.text).strip())[0]
        self.now = replace(
            self.now,
            touched=result.written,
            changed=keys,
            summary=said[:MAX_SHOWN],
            left_out=tuple(remove_secrets(one)[0] for one in (*strangers, *map(str, found.left))),
            drawn=_reason_pairs(result.text),
            tombstones=tuple(_grave(one) for one in found.tombstones),
        )
        if not keys and found.left:
            told = tuple(map(str, _all(found)))
            reason = f"none of {plural(len(found.left), 'change')} could be used: {told[0]}"
            return await self._fail_run(
                False, remove_secrets(reason)[0], [remove_secrets(one)[0] for one in told]
            )
        await to_thread.run_sync(partial(self.branch.settle, found.work))
        if keys and (self.dry_run or self.dreamer.settings.dream_review):
            return await self._waits()
        return await self._commit_changes(found.work)

    def _verdict(self, text: str) -> BranchVerdict:
        work = branches.without_emptied(self.branch.state("work"), self.base)
        given = CheckInput(
            self.base,
            now=self.dreamer.clock.now(),
            limits=self.dreamer.memories.folder.limits,
            trust=self.dreamer.memories.trust,
        )
        return change_verdict(given, work, reasons_in(text), [one.file for one in self.rules])

    async def _commit_changes(self, work: branches.FolderFiles) -> Dream:
        done: list[DreamChanges] = []
        memories, fence = self.dreamer.memories, self.dreamer.fence

        def step() -> None:
            with self.lock.landing(self.taken):
                free = self.dreamer.model.capabilities.free  # and puts in no word of its own
                most = Trust.USER if free else Trust.AGENT
                drawn = sources_of(self.now)
                done.append(land(memories, self.branch, self.base, work, drawn, most, fence))

        _, error = await alone(to_thread.run_sync(step), None)
        if not done and is_planned(memories):
            later = f"what it planned is applied when the memory is next opened: {error}"
            return await self._fail_run(False, later, ())
        if not done:
            keys, _ = await alone(to_thread.run_sync(applied_files, memories, self.now.id), ())
            done += [DreamChanges(keys)] if keys else []
        if not done:
            self.now = replace(self.now, changed=())
            return await self._fail_run(False, error, ())
        self.settled = not error
        self.now = replace(self.now, changed=done[0].changed, conflicts=done[0].conflicts)
        return await self._over("completed", f"after its changes: {error}" if error else "")

    async def _waits(self) -> Dream:
        """Left for a person: the time counts as that of a dream, unless it was only tried."""
        if not self.dry_run:

            def confirm_lock() -> None:
                with self.lock.landing(self.taken):
                    pass

            await to_thread.run_sync(confirm_lock)
            self.settled = True
        return await self._over("waiting", "its changes wait for review")

    async def _fail_run(self, killed: bool, reason: str, faults: Sequence[str]) -> Dream:
        self.now = replace(self.now, faults=tuple(faults))
        return await self._over("killed" if killed else "failed", reason)

    async def _over(
        self, status: Literal["completed", "failed", "killed", "waiting"], reason: str
    ) -> Dream:
        at = self.dreamer.clock.now()
        self.now = replace(self.now, status=status, reason=reason, ended=at)
        _, error = await alone(self._publish_state(), None)
        if error:  # what was done counts, not what could be written about it
            self.dreamer.say(Notice(schedule.NAME, error, "warning"))
        if status == "completed":
            await to_thread.run_sync(self.branch.drop_copies)
        self.dreamer.say(
            Notice(schedule.NAME, describe_dream(self.now), _LEVELS.get(status, "info"))
        )
        return self.now

    async def _publish_state(self) -> None:
        await to_thread.run_sync(lambda: self.branch.write(self.now))
        self.shown(self.now)


def _all(found: BranchVerdict) -> list[branches.BranchFault]:
    return [fault for one in found.left for fault in one.faults]


def _reason_pairs(text: str) -> tuple[dict[str, str], ...]:
    pairs = {(one.file, one.target) for one in reasons_in(text) if one.target}
    return tuple({"from": a, "to": b} for a, b in sorted(pairs) if a != b)


def _grave(one: Tombstone) -> dict[str, str]:
    """A fact that went, as it is kept; nothing secret with it."""
    found = {"file": one.file, "fact": one.fact, "why": one.why, "target": one.target, "by": one.by}
    return {name: remove_secrets(text)[0] for name, text in found.items() if text}


_LEVELS: dict[str, Literal["info", "warning", "error"]] = {"failed": "warning"}
