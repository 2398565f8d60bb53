"""A worker of the trials as a process: `trial_worker URL HOME LEASE BODY`.

Without a URL (`-`) it works the plan of this host in its own process. The body is the seconds
between reading a memory and landing in it; `locked` stops the process once, while it holds the
memory's lock; `real` is the dream itself.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import anyio

from reverie.embedded import EmbeddedModel
from reverie.fleet import TASKS, FleetTask, WorkerContext
from tests.fleet.stage import lander, place_at, stopped_in_lock


def reading_mark(home: Path, pid: int) -> Path:
    """Is there once a process has read a memory and will land in it later."""
    return home.parent / f"reading.{pid}"


def _body(home: Path, body: str) -> FleetTask:
    if body == "locked":
        return stopped_in_lock()
    return lander(float(body), reading_mark(home, os.getpid()).touch)


def main(url: str, home: Path, lease: float, body: str) -> None:
    logging.getLogger("procrastinate").setLevel(logging.CRITICAL)
    place = place_at(home, home)
    tasks = TASKS if body == "real" else {**TASKS, "dream": _body(home, body)}
    if url == "-":
        from reverie.fleet import open_local, run_local

        ledger = open_local(home)
        anyio.run(run_local, WorkerContext(ledger, place, EmbeddedModel(), tasks=tasks), 2)
        return
    from reverie.fleet import FleetWorker, WorkerOptions, open_fleet

    ledger = open_fleet(url)
    ledger.check()
    shop = WorkerContext(ledger, place, EmbeddedModel(), tasks=tasks, poll=0.2)
    options = WorkerOptions(2, (), lease, until_done=True, poll=min(0.5, lease / 4))
    anyio.run(FleetWorker(url, shop, options).run)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]), sys.argv[4])
