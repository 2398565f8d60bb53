"""One job from claim to end, locally or over a shared memory.

One job, from the hand that takes it up to the word that it ended.

It is the same on one host and in a fleet. The kind says which task is run; the ledger hears how
far it is and answers whether to go on. A cancel stops the body first and says so after, so the
memory is free only then. What failed waits and is tried again, five times in all; what only has to
wait, for another process, tomorrow's budget or a worker that knows the job, uses up no try.

The words of an error stay in a log of this host; the ledger gets one of few codes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import anyio
from anyio import to_thread

from reverie.concurrency import alone
from reverie.errors import BudgetExceeded, Held, NotAvailable, NotFound, ReverieError
from reverie.fleet.ledger import TRIES, FleetLedger
from reverie.fleet.plan import TEAM, ClaimedJob, Job, JobEnd, Progress, at_work, fleet_locked, lives
from reverie.fleet.rates import MeteredModel, Rates, SpendLimit, TenantBudget, until_tomorrow
from reverie.fleet.tables import AT_ONCE
from reverie.light import dataclass
from reverie.memory.tasks import (
    Shown,
    TaskOutcome,
    TaskRun,
    dream_memory,
    learn_session,
    sync_memory,
    tidy_memory,
)
from reverie.observer import SystemClock
from reverie.session.dream.branch import snapshot
from reverie.session.open_memory import open_memory
from reverie.session.team import connect
from reverie.settings.catalog import Settings
from reverie.store import home as places
from reverie.store import transaction
from reverie.store.files import Folder
from reverie.store.fs import digest
from reverie.store.home import named_project
from reverie.store.memory_store import MemoryStore
from reverie.store.project import Project
from reverie.store.transaction import AlreadyLanded, Fenced
from reverie.team.client import Stale
from reverie.team.database import DatabaseAway, open_database
from reverie.team.folder import why_not
from reverie.team.protocol import BATCH_BYTES, EntryChange, RemoteState
from reverie.team.sync import RemoteSide, batches
from reverie.topics.trust import Trust
from reverie.topics.versions import Origin
from reverie.world import Clock, Model

if TYPE_CHECKING:
    from reverie.session.dream.branch import Dream

POLL = 2.0
"""Seconds between two looks at whether a job that runs should go on."""
HELD_WAIT = 30.0
UNKNOWN_WAIT = 600.0
BACKOFF = 30.0
LOG = "fleet/log.jsonl"


@dataclass(frozen=True, slots=True)
class JobHandle:
    """What a task of the fleet is handed."""

    job: Job
    place: Project
    run: TaskRun
    tell: Callable[[Progress], None]
    home: Project  # where the worker itself stands


FleetTask: TypeAlias = Callable[[JobHandle], Awaitable[TaskOutcome]]


async def _dream(work: JobHandle) -> TaskOutcome:
    def report_progress(dream: Dream) -> None:
        files, rounds = len(dream.touched), len(dream.rounds)
        work.tell(Progress(dream.phase, rounds, files, dream.requests, dream.weighted))

    if work.job.root.startswith(TEAM):
        return await dream_shared(
            work.home, work.run, work.job.root.removeprefix(TEAM), report_progress
        )
    return (await dream_memory(work.place, work.run, due=work.job.due, shown=report_progress))[0]


async def _learn(work: JobHandle) -> TaskOutcome:
    return await learn_session(work.place, work.run, work.job.about, size=work.job.size)


async def _hygiene(work: JobHandle) -> TaskOutcome:
    return await tidy_memory(work.place, work.run)


async def _sync(work: JobHandle) -> TaskOutcome:
    return await sync_memory(work.place, work.run)


@dataclass(frozen=True, slots=True)
class TeamCopy:
    """The server's state as the copy has it."""

    tag: str
    files: Mapping[str, bytes]


async def dream_shared(
    place: Project, run: TaskRun, repo: str, shown: Shown = lambda _: None
) -> TaskOutcome:
    """Pull, dream, and land under the tag that was pulled."""
    remote = _remote(place, repo)
    copy = _copy(place, remote)
    pulled = await to_thread.run_sync(_pull, copy, run, remote)
    if not pulled.files:
        return TaskOutcome("passed over", "no-memory", "nobody has written anything yet")
    alone = replace(run, fence=None)  # the server's tag is the fence
    outcome, dream = await dream_memory(copy, alone, due=False, shown=shown)
    if outcome.result != "done" or dream is None:
        return outcome
    try:
        count = await to_thread.run_sync(_push, copy, run, remote, pulled)
    except Stale as error:
        return replace(outcome, result="failed", code="changed-meanwhile", reason=str(error))
    return replace(outcome, files=count)


def _remote(place: Project, repo: str) -> RemoteSide:
    settings = replace(place.settings, team_repository=repo)
    if not settings.team_url:
        raise NotAvailable("No team server is set", do="Set teamUrl in your own settings")
    return connect(replace(place, settings=settings))


def _copy(place: Project, remote: RemoteSide) -> Project:
    """Where the private copy lies: a project that is a name."""
    root: Path = named_project(place.home, f"{TEAM}{remote.url}:{remote.repo}")
    places.claim_address(place.home, root, environ=place.environ)
    return place.sibling(root)


def _pull(copy: Project, run: TaskRun, remote: RemoteSide) -> TeamCopy:
    """Make the copy what the server holds."""
    state: RemoteState = remote.state() or RemoteState("", {})
    with open_memory(copy, run.say) as memories:
        there = {key: text.encode() for key, text in state.contents.items()}
        good = {key: data for key, data in there.items() if _is_allowed(memories, key, data)}
        here = snapshot(memories.folder)
        changes: dict[str, bytes | None] = dict.fromkeys(key for key in here if key not in good)
        changes |= {key: data for key, data in good.items() if here.get(key) != data}
        origin = Origin("pull", Trust.UNTRUSTED, agent="team", tool="fleet")
        transaction.land(memories, changes, here, origin)
        return TeamCopy(state.tag, good)


def _is_allowed(memories: MemoryStore, key: str, data: bytes) -> bool:
    try:
        memories.allow(key, data)
    except ReverieError:
        return False
    return len(data) <= BATCH_BYTES


def _push(copy: Project, run: TaskRun, remote: RemoteSide, pulled: TeamCopy) -> int:
    """Put what changed back: texts first, then what goes, where deletions travel."""
    with open_memory(copy, run.say) as memories:
        now = snapshot(memories.folder)
    drafts = [
        EntryChange(key, data.decode(), digest(data))
        for key, data in sorted(now.items())
        if data != pulled.files.get(key) and not why_not(key, data)
    ]
    if copy.settings.team_deletions:
        drafts += [EntryChange(key, None, "") for key in sorted(pulled.files) if key not in now]
    tag = pulled.tag
    for batch in batches(drafts):
        tag = remote.put(batch, tag)
    return len(drafts)


TASKS: Mapping[str, FleetTask] = {
    "dream": _dream,
    "learn": _learn,
    "hygiene": _hygiene,
    "sync": _sync,
}
"""Replay is handed in by whoever can replay: it stands above this package."""


class WorkerContext:
    """What a process works jobs with."""

    def __init__(
        self,
        ledger: FleetLedger,
        place: Project,
        model: Model,
        *,
        key: str = "",
        tasks: Mapping[str, FleetTask] = TASKS,
        purses: Sequence[SpendLimit] = (),
        clock: Clock | None = None,
        poll: float = POLL,
    ) -> None:
        self.ledger = ledger
        self.place = place
        self.model = model
        self.clock = clock or SystemClock()
        self._key = key
        self._tasks = tasks
        self._purses = tuple(purses)
        self._rates = Rates(ledger)
        self._poll = poll

    async def work(self, taken: ClaimedJob) -> JobEnd | None:
        """Do a job and say how it ended; None where it was another's in the end."""
        end = await self._run_watched(taken)
        mine = False
        with anyio.CancelScope(shield=True):
            mine = end is not None and await to_thread.run_sync(self.ledger.end, taken, end)
        return end if mine else None

    async def _run_watched(self, taken: ClaimedJob) -> JobEnd | None:
        """The body, and beside it a look every now and then at whether it should go on."""
        watch = _ProgressReporter(self.ledger, taken, self._poll)
        end: JobEnd | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(watch.run, group.cancel_scope)
            end = await self._run_task(taken, watch.tell)
            group.cancel_scope.cancel()
        if end is not None:
            return end
        if watch.answer == "cancel":
            return JobEnd("cancelled", "cancelled", progress=watch.at)
        return None

    async def _run_task(self, taken: ClaimedJob, tell: Callable[[Progress], None]) -> JobEnd | None:
        job = taken.job
        task = self._tasks.get(job.kind)
        if task is None:
            return JobEnd("queued", "unknown-kind", UNKNOWN_WAIT, counted=False)
        here = self.place.reload()
        model = self._meter_model(job.tenant, here.settings)
        run = TaskRun(model, taken.fence, counted=False)
        free = self.model.capabilities.free

        def tell_progress(at: Progress) -> None:
            tell(replace(at, cost=0.0) if free else at)

        work = JobHandle(job, here.sibling(Path(job.root)), run, tell_progress, here)
        outcome, error = await alone(self._outcome(task(work)), None)
        if outcome is None:
            outcome = TaskOutcome("failed", "error", error)
        if free:
            outcome = replace(outcome, cost=0.0)
        self._log(taken, outcome)
        now = await to_thread.run_sync(self.ledger.now)
        return job_end(outcome, taken.tries, until_tomorrow(now) if model.refused else 0.0)

    async def _outcome(self, work: Awaitable[TaskOutcome]) -> TaskOutcome:
        """What a task gives; errors of ours have codes of their own."""
        try:
            return await work
        except Fenced as error:
            await to_thread.run_sync(self.ledger.raise_fence, error.number)
            return TaskOutcome("passed over", "fenced", str(error))
        except AlreadyLanded as error:
            return TaskOutcome("done", "already", str(error))
        except Held as error:  # nobody's fault: it uses up no try, however long it lasts
            return TaskOutcome("passed over", "held", str(error))
        except BudgetExceeded as error:
            return TaskOutcome("failed", "budget", str(error))
        except NotFound as error:
            return TaskOutcome("passed over", "not-found", str(error))
        except ReverieError as error:
            return TaskOutcome("failed", type(error).__name__, str(error))

    def _meter_model(self, tenant: str, settings: Settings) -> MeteredModel:
        purses = (TenantBudget(self.ledger, tenant, settings), *self._purses)
        return MeteredModel(
            self.model, settings, self.clock, rates=self._rates, key=self._key, purses=purses
        )

    def _log(self, taken: ClaimedJob, outcome: TaskOutcome) -> None:
        """What people on this host may read of it."""
        if not outcome.reason:
            return
        about = {"at": time.time(), "job": taken.job.key, "fence": taken.fence.number}
        row = {**about, "root": taken.job.root, "code": outcome.code, "reason": outcome.reason}
        with Folder(self.place.home) as home:
            home.append_line(LOG, json.dumps(row, ensure_ascii=False).encode())


class _ProgressReporter:
    """How far a job is, told every now and then, until the ledger answers that it should stop."""

    def __init__(self, ledger: FleetLedger, taken: ClaimedJob, poll: float) -> None:
        self.at = Progress()
        self.answer = ""
        self._ledger = ledger
        self._taken = taken
        self._poll = poll

    def tell(self, progress: Progress) -> None:
        self.at = progress

    async def run(self, scope: anyio.CancelScope) -> None:
        while not self.answer:
            await anyio.sleep(self._poll)
            try:
                self.answer = await to_thread.run_sync(self._ledger.beat, self._taken, self.at)
            except DatabaseAway:
                continue  # the lease, not this look, says whose the job is
        scope.cancel()


def job_end(outcome: TaskOutcome, tries: int, tomorrow: float = 0.0) -> JobEnd:
    """How a job stands after a try that gave this. `tomorrow` is how far off it is, where the
    budget had no room."""
    at = Progress("", 0, outcome.files, outcome.requests, outcome.cost)
    code, ident = outcome.code, outcome.ident
    if outcome.result == "done":
        return JobEnd("done", code, progress=at, ident=ident)
    if outcome.result == "passed over":
        if code in ("held", "fenced"):
            wait = HELD_WAIT if code == "held" else 0.0
            return JobEnd("queued", code, wait, counted=False, progress=at)
        return JobEnd("skipped", code, progress=at)
    if tomorrow:
        return JobEnd("queued", "budget", tomorrow, counted=False, progress=at, ident=ident)
    if tries >= TRIES:
        return JobEnd("dead", code, progress=at, ident=ident)
    return JobEnd("queued", code, BACKOFF * 4.0 ** (tries - 1), progress=at, ident=ident)


# --- A plan worked on one host, in this process, with no database server.
#
# The ledger is a SQLite file in home. Several workers take jobs from it, one memory each; a run
# that was killed is taken up by the next one: jobs whose process is gone wait again. Two runs at
# once share the jobs between them. One that is cancelled gives its jobs back.


FILE = "fleet/fleet.sqlite3"
STOPPED = JobEnd("queued", "stopped", counted=False)
OnEnd = Callable[[ClaimedJob, JobEnd], None]


def open_local(home: Path) -> FleetLedger:
    """The ledger of this host; on a disk without locks it is refused by name."""
    with fleet_locked(home):
        ledger = FleetLedger(open_database(str(home / FILE)))
        ledger.make()
    return ledger


@dataclass(frozen=True, slots=True)
class RunTotals:
    """What a run came to."""

    done: int = 0
    failed: int = 0
    skipped: int = 0
    cancelled: int = 0
    waiting: int = 0  # for a later run: another try, tomorrow's budget
    cost: float = 0.0

    @property
    def ended(self) -> int:
        """Jobs that came to an end of some kind."""
        return self.done + self.failed + self.skipped + self.cancelled


async def run_local(
    shop: WorkerContext, workers: int, on_end: OnEnd = lambda _taken, _end: None
) -> RunTotals:
    """Work until no job may begin now. What is over for long leaves the ledger before."""
    ledger, home = shop.ledger, shop.place.home
    while ledger.forget() == AT_ONCE:
        pass
    ledger.give_back([one for one in ledger.running_workers() if not lives(home, one)])
    with at_work(home) as name:
        return await _run_workers(shop, name, workers, on_end)


async def _run_workers(shop: WorkerContext, name: str, workers: int, on_end: OnEnd) -> RunTotals:
    ledger = shop.ledger
    ends: dict[str, JobEnd] = {}
    cost, busy, freed = 0.0, 0, anyio.Event()

    async def worker() -> None:
        nonlocal cost, busy, freed
        while True:
            taken: ClaimedJob | None = None
            with anyio.CancelScope(shield=True):  # else a job could be taken that nobody has
                taken = await to_thread.run_sync(ledger.claim, name)
            if taken is None and not busy:
                return
            if taken is None:  # a job that ends may free the memory of another
                await freed.wait()
                continue
            busy += 1
            try:
                end = await shop.work(taken)
            except BaseException:  # whoever runs this goes on: the job must not wait for its end
                with anyio.CancelScope(shield=True):
                    await to_thread.run_sync(ledger.end, taken, STOPPED)
                raise
            finally:
                busy -= 1
                freed.set()
                freed = anyio.Event()
            if end is not None:
                ends[f"{taken.job.tenant}/{taken.job.key}"] = end
                cost += end.progress.cost
                on_end(taken, end)

    async with anyio.create_task_group() as group:
        for _ in range(workers):
            group.start_soon(worker)
    states = [end.state for end in ends.values()]
    return RunTotals(
        states.count("done"),
        sum(1 for end in ends.values() if _has_failed(end)),
        states.count("skipped"),
        states.count("cancelled"),
        ledger.open_jobs(),
        round(cost, 2),
    )


def _has_failed(end: JobEnd) -> bool:
    """Dead, or to be tried again since something went wrong."""
    return end.state == "dead" or (end.state == "queued" and end.counted)
