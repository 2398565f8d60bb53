"""A plan worked on one host, in this process, with no database server.

The ledger is a SQLite file in home. Several workers take jobs from it, one memory each; a run that
was killed is taken up by the next one: jobs whose process is gone wait again. Two runs at once
share the jobs between them. One that is cancelled gives its jobs back.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio
from anyio import to_thread

from reverie.fleet.here import at_work, fleet_locked, lives
from reverie.fleet.jobs import JobEnd, TakenJob
from reverie.fleet.ledger import FleetLedger
from reverie.fleet.tables import AT_ONCE
from reverie.fleet.work import Workshop
from reverie.light import dataclass
from reverie.team.database import open_database

FILE = "fleet/fleet.sqlite3"
STOPPED = JobEnd("queued", "stopped", counted=False)
OnEnd = Callable[[TakenJob, JobEnd], None]


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
    shop: Workshop, workers: int, on_end: OnEnd = lambda _taken, _end: None
) -> RunTotals:
    """Work until no job may begin now. What is over for long leaves the ledger before."""
    ledger, home = shop.ledger, shop.place.home
    while ledger.forget() == AT_ONCE:
        pass
    ledger.give_back([one for one in ledger.running_workers() if not lives(home, one)])
    with at_work(home) as name:
        return await _worked(shop, name, workers, on_end)


async def _worked(shop: Workshop, name: str, workers: int, on_end: OnEnd) -> RunTotals:
    ledger = shop.ledger
    ends: dict[str, JobEnd] = {}
    cost, busy, freed = 0.0, 0, anyio.Event()

    async def worker() -> None:
        nonlocal cost, busy, freed
        while True:
            taken: TakenJob | None = None
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
        sum(1 for end in ends.values() if _failed(end)),
        states.count("skipped"),
        states.count("cancelled"),
        ledger.open_jobs(),
        round(cost, 2),
    )


def _failed(end: JobEnd) -> bool:
    """Dead, or to be tried again since something went wrong."""
    return end.state == "dead" or (end.state == "queued" and end.counted)
