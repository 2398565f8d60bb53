"""A plan worked on one host, in this process, with no database server.

The ledger is a SQLite file in home. Several workers take jobs from it, one memory each; a run that
was killed is taken up by the next one: jobs whose process is gone wait again. Two runs at once
share the jobs between them. One that is cancelled gives its jobs back.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import anyio
from anyio import to_thread

from reverie.fleet.jobs import JobEnd, TakenJob
from reverie.fleet.ledger import FleetLedger
from reverie.fleet.work import Workshop
from reverie.light import dataclass
from reverie.store.folders import make_folder
from reverie.store.lock import FileLock, alive, process_start
from reverie.team.database import open_database

FILE = "fleet/fleet.sqlite3"
LOCK = "fleet/fleet.lock"
STOPPED = JobEnd("queued", "stopped", counted=False)
OnEnd = Callable[[TakenJob, JobEnd], None]


def open_local(home: Path) -> FleetLedger:
    """The ledger of this host; on a disk without locks it is refused by name."""
    make_folder(home / "fleet")
    with FileLock(home / LOCK):  # says which disk has no locks
        ledger = FleetLedger(open_database(str(home / FILE)))
        ledger.make()
    return ledger


def worker_name() -> str:
    """This process, told apart from a later one of the same number."""
    pid = os.getpid()
    return f"{socket.gethostname()}:{pid}:{process_start(pid) or 0}"


def lives(worker: str) -> bool:
    """Whether a worker of this host still runs; of others nobody can tell here."""
    host, pid, started = (*worker.rsplit(":", 2), "", "")[:3]
    if host != socket.gethostname() or not pid.isdecimal():
        return True
    now = process_start(int(pid))
    return alive(int(pid)) and (now is None or str(now) == started)


@dataclass(frozen=True, slots=True)
class RunTotals:
    """What a run came to."""

    done: int = 0
    failed: int = 0
    skipped: int = 0
    cancelled: int = 0
    waiting: int = 0  # for a later run: another try, tomorrow's budget
    cost: float = 0.0


async def run_local(
    shop: Workshop, workers: int, on_end: OnEnd = lambda _taken, _end: None
) -> RunTotals:
    """Work until no job may begin now."""
    ledger = shop.ledger
    gone = [one for one in ledger.running_workers() if not lives(one)]
    ledger.give_back(gone)
    ends: dict[str, JobEnd] = {}
    cost, busy, freed = 0.0, 0, anyio.Event()

    async def worker() -> None:
        nonlocal cost, busy, freed
        name, host = worker_name(), socket.gethostname()
        while True:
            taken: TakenJob | None = None
            with anyio.CancelScope(shield=True):  # else a job could be taken that nobody has
                taken = await to_thread.run_sync(ledger.claim, name, host)
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
