"""One job, from the hand that takes it up to the word that it ended.

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

from reverie.clock import SystemClock
from reverie.concurrency import alone
from reverie.errors import BudgetExceeded, Held, NotFound, ReverieError
from reverie.fleet.jobs import TEAM, Job, JobEnd, Progress, TakenJob
from reverie.fleet.ledger import TRIES, FleetLedger
from reverie.fleet.rates import MeteredModel, Purse, Rates, TenantPurse, until_tomorrow
from reverie.light import dataclass
from reverie.settings import Settings
from reverie.store.fences import AlreadyLanded, Fenced
from reverie.store.files import Folder
from reverie.store.project import Project
from reverie.team.database import DatabaseAway
from reverie.upkeep.tasks import (
    TaskOutcome,
    TaskRun,
    dream_memory,
    learn_session,
    sync_memory,
    tidy_memory,
)
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
class JobWork:
    """What a task of the fleet is handed."""

    job: Job
    place: Project
    run: TaskRun
    tell: Callable[[Progress], None]
    home: Project  # where the worker itself stands


FleetTask: TypeAlias = Callable[[JobWork], Awaitable[TaskOutcome]]


async def _dream(work: JobWork) -> TaskOutcome:
    def shown(dream: Dream) -> None:
        files, rounds = len(dream.touched), len(dream.rounds)
        work.tell(Progress(dream.phase, rounds, files, dream.requests, dream.weighted))

    if work.job.root.startswith(TEAM):
        from reverie.fleet.shared import dream_shared

        return await dream_shared(work.home, work.run, work.job.root.removeprefix(TEAM), shown)
    return (await dream_memory(work.place, work.run, due=work.job.due, shown=shown))[0]


async def _learn(work: JobWork) -> TaskOutcome:
    return await learn_session(work.place, work.run, work.job.about, size=work.job.size)


async def _hygiene(work: JobWork) -> TaskOutcome:
    return await tidy_memory(work.place, work.run)


async def _sync(work: JobWork) -> TaskOutcome:
    return await sync_memory(work.place, work.run)


TASKS: Mapping[str, FleetTask] = {
    "dream": _dream,
    "learn": _learn,
    "hygiene": _hygiene,
    "sync": _sync,
}
"""Replay is handed in by whoever can replay: it stands above this package."""


class Workshop:
    """What a process works jobs with."""

    def __init__(
        self,
        ledger: FleetLedger,
        place: Project,
        model: Model,
        *,
        key: str = "",
        tasks: Mapping[str, FleetTask] = TASKS,
        purses: Sequence[Purse] = (),
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

    async def work(self, taken: TakenJob) -> JobEnd | None:
        """Do a job and say how it ended; None where it was another's in the end."""
        end = await self._watched(taken)
        mine = False
        with anyio.CancelScope(shield=True):
            mine = end is not None and await to_thread.run_sync(self.ledger.end, taken, end)
        return end if mine else None

    async def _watched(self, taken: TakenJob) -> JobEnd | None:
        """The body, and beside it a look every now and then at whether it should go on."""
        watch = _Watch(self.ledger, taken, self._poll)
        end: JobEnd | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(watch.run, group.cancel_scope)
            end = await self._done(taken, watch.tell)
            group.cancel_scope.cancel()
        if end is not None:
            return end
        if watch.answer == "cancel":
            return JobEnd("cancelled", "cancelled", progress=watch.at)
        return None

    async def _done(self, taken: TakenJob, tell: Callable[[Progress], None]) -> JobEnd | None:
        job = taken.job
        task = self._tasks.get(job.kind)
        if task is None:
            return JobEnd("queued", "unknown-kind", UNKNOWN_WAIT, counted=False)
        here = self.place.reload()
        model = self._metered(job.tenant, here.settings)
        run = TaskRun(model, taken.fence, counted=False)
        free = self.model.capabilities.free

        def told(at: Progress) -> None:
            tell(replace(at, cost=0.0) if free else at)

        work = JobWork(job, here.sibling(Path(job.root)), run, told, here)
        outcome, error = await alone(self._outcome(task(work)), None)
        if outcome is None:
            outcome = TaskOutcome("failed", "error", error)
        if free:
            outcome = replace(outcome, cost=0.0)
        self._log(taken, outcome)
        now = await to_thread.run_sync(self.ledger.now)
        return ended(outcome, taken.tries, until_tomorrow(now) if model.refused else 0.0)

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

    def _metered(self, tenant: str, settings: Settings) -> MeteredModel:
        purses = (TenantPurse(self.ledger, tenant, settings), *self._purses)
        return MeteredModel(
            self.model, settings, self.clock, rates=self._rates, key=self._key, purses=purses
        )

    def _log(self, taken: TakenJob, outcome: TaskOutcome) -> None:
        """What people on this host may read of it."""
        if not outcome.reason:
            return
        about = {"at": time.time(), "job": taken.job.key, "fence": taken.fence.number}
        row = {**about, "root": taken.job.root, "code": outcome.code, "reason": outcome.reason}
        with Folder(self.place.home) as home:
            home.append_line(LOG, json.dumps(row, ensure_ascii=False).encode())


class _Watch:
    """How far a job is, told every now and then, until the ledger answers that it should stop."""

    def __init__(self, ledger: FleetLedger, taken: TakenJob, poll: float) -> None:
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


def ended(outcome: TaskOutcome, tries: int, tomorrow: float = 0.0) -> JobEnd:
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
