"""A worker of the trials as a process: `trial_worker URL HOME LEASE SECONDS`.

Without a URL (`-`) it works the plan of this host in its own process.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import anyio

from reverie.embedded import EmbeddedModel
from reverie.fleet.work import TASKS, Workshop
from tests.fleet.stage import lander, place_at


def main(url: str, home: Path, lease: float, seconds: float) -> None:
    logging.getLogger("procrastinate").setLevel(logging.CRITICAL)
    place = place_at(home, home)
    tasks = {**TASKS, "dream": lander(seconds)} if seconds >= 0 else TASKS
    if url == "-":
        from reverie.fleet.local import open_local, run_local

        ledger = open_local(home)
        anyio.run(run_local, Workshop(ledger, place, EmbeddedModel(), tasks=tasks), 2)
        return
    from reverie.fleet.engine import FleetWorker, WorkerOptions, open_fleet

    ledger = open_fleet(url)
    ledger.check()
    shop = Workshop(ledger, place, EmbeddedModel(), tasks=tasks, poll=0.2)
    options = WorkerOptions(2, (), lease, until_done=True, poll=min(0.5, lease / 4))
    anyio.run(FleetWorker(url, shop, options).run)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]))
