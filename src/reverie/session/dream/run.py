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
from functools import partial
from typing import Literal, TypeAlias

import anyio
from anyio import to_thread

import reverie
from reverie.concurrency import alone
from reverie.consolidation import branch as branches
from reverie.consolidation.reasons import reasons_in
from reverie.errors import Held
from reverie.secrets.scanner import remove_secrets
from reverie.session import worker as forks
from reverie.session.budget import weight
from reverie.session.dream import schedule
from reverie.session.dream.branch import (
    Dream,
    DreamBranch,
    DreamChanges,
    applied_files,
    dreams,
    dreams_folder,
    land,
    sources_of,
)
from reverie.session.dream.context import DreamContext, MemoryCopy
from reverie.session.dream.results import describe_dream
from reverie.session.extraction.drafts import file_blocks, without_files
from reverie.session.library import SessionLibrary
from reverie.session.options import RequestHead
from reverie.session.worker import Worker, worker_world
from reverie.store.consolidation_lock import AcquiredLock, ConsolidationLock
from reverie.store.transaction import is_planned
from reverie.text.format import plural
from reverie.toolbox.read_back import SealedCalls
from reverie.toolbox.tool import NoTools, Registry, StoredResults, ToolContext, ToolRunner
from reverie.topics.trust import Trust
from reverie.transcript.records import Started
from reverie.transcript.tasks import DreamTask
from reverie.wire.reply import Reply, ToolCall
from reverie.world import (
    ForkResult,
    ForkSpec,
    Notice,
)

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


async def run_dream(
    dreamer: DreamContext,
    trigger: DreamTrigger = "manual",
    *,
    dry_run: bool = False,
    shown: OnProgress = lambda _: None,
) -> Dream:
    """Take the lock, dream, and land what stands the checks. Raises `Held` where another runs."""
    if trigger == "auto" and not dreamer.model.capabilities.tools:
        await to_thread.run_sync(_not_again, dreamer)
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


def _not_again(dreamer: DreamContext) -> None:
    """Raise `Held` where this model was asked to dream already within the time between two: its
    calls are the user's own, so a dream that failed counts too."""
    now, name = dreamer.clock.now(), dreamer.model.name
    least = now - dreamer.settings.dream_hours * 3600
    known = [one.began for one in dreams(dreams_folder(dreamer.memories)) if one.model == name]
    if any(least < at <= now for at in known):
        raise Held(f"{name} dreamed today already", where=str(dreamer.memories.root))


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
        parts = (dreamer.memories, dreamer.root, dreamer.settings, dreamer.clock.now)
        self.copy = MemoryCopy(self.branch, *parts)
        self.refused: tuple[str, ...] = ()  # files of the last answer that could not be written
        self.settled = False

    async def run(self) -> Dream:
        await self._publish_state()
        await to_thread.run_sync(self.copy.begin)
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
        tools = self._tools(worker, spec)
        try:
            result = await self._ask(worker, spec, tools)
            for _ in range(0 if self.dreamer.model.capabilities.free else RETRIES):
                found = await to_thread.run_sync(self.copy.verdict, reasons_in(result.text))
                told = (*self.refused, *found.faults)
                if not told:
                    break
                again = replace(spec, instruction=schedule.faults_told(told, self._form))
                more = await self._ask(worker, again, tools)
                written = tuple(dict.fromkeys((*result.written, *more.written)))
                result = replace(more, text=f"{result.text}\n\n{more.text}", written=written)
            return result
        finally:
            tools.close()

    @property
    def _in_words(self) -> bool:
        return not self.dreamer.model.capabilities.tools

    @property
    def _form(self) -> schedule.DreamForm:
        return "words" if self._in_words else "tools"

    def _tools(self, worker: Worker, spec: ForkSpec) -> ToolRunner:
        if self._in_words:
            return NoTools(spec)
        guards = replace(self.dreamer.guards, context=lambda: self._context(worker))
        tools = guards(spec, also_readable=(self.branch.work, self.library.path))
        tools.note_shown(self.branch.work, spec.instruction, self.copy.base.get)
        if self.dreamer.model.capabilities.rules:  # they read the files in the task
            tools.note_files(self.branch.work, self.copy.base)
        return tools

    async def _ask(self, worker: Worker, spec: ForkSpec, tools: ToolRunner) -> ForkResult:
        """Let it work once; an answer in words is written to the copy, and read without it."""
        done = await forks.run(worker, spec, self.dreamer.model, tools, self._saw)
        if not self._in_words:
            return done

        given = dict(file_blocks(done.text))
        self.refused = await to_thread.run_sync(self.copy.put, given, self.copy.shown())
        return replace(done, text=without_files(done.text), written=tuple(given))

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
            files=tuple(sorted(self.copy.base.items())),
            transcripts=transcripts,
            root=str(dreamer.root),
            now=now,
            memories=self.copy.manifest(),
            index_lines=settings.index_lines,
            index_bytes=settings.index_bytes,
            rules=self.copy.rules,
        )
        text = self.copy.prompt(transcripts, self._form)
        if self._in_words:
            return ForkSpec(schedule.NAME, text, task)
        rounds = settings.dream_rounds
        return ForkSpec(schedule.NAME, text, task, rounds, (*schedule.TOOLS, READ_BACK), (work,))

    async def _spawn_worker(self) -> Worker:
        dreamer, begun = self.dreamer, self.begun
        tools = Registry() if self._in_words else dreamer.guards.registry
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
        reasons = reasons_in(result.text)
        found = await to_thread.run_sync(self.copy.verdict, reasons)
        said = remove_secrets(_REASONS.sub("", result.text).strip())[0]
        now = replace(self.now, touched=result.written, summary=said[:MAX_SHOWN])
        self.now = self.copy.judged(now, found, reasons, self.refused)
        keys = self.now.changed
        if not keys and found.left:
            told = found.faults
            reason = f"none of {plural(len(found.left), 'change')} could be used: {told[0]}"
            return await self._fail_run(
                False, remove_secrets(reason)[0], [remove_secrets(one)[0] for one in told]
            )
        await to_thread.run_sync(partial(self.branch.settle, found.work))
        if keys and (self.dry_run or self.dreamer.settings.dream_review):
            return await self._waits()
        return await self._commit_changes(found.work)

    async def _commit_changes(self, work: branches.FolderFiles) -> Dream:
        done: list[DreamChanges] = []
        memories, fence = self.dreamer.memories, self.dreamer.fence

        def step() -> None:
            with self.lock.landing(self.taken):
                free = self.dreamer.model.capabilities.free  # and puts in no word of its own
                most = Trust.USER if free else Trust.AGENT
                drawn = sources_of(self.now)
                done.append(land(memories, self.branch, self.copy.base, work, drawn, most, fence))

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


_LEVELS: dict[str, Literal["info", "warning", "error"]] = {"failed": "warning"}
