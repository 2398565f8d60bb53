"""A run of the queue that its caller cancels: its jobs are not lost to those that come after."""

from __future__ import annotations

from pathlib import Path
from random import Random

import anyio
import pytest

from reverie.embedded import EmbeddedModel
from reverie.fleet import WorkerContext, open_local, run_local
from tests.cancels import cancelled_at
from tests.conftest import Scale
from tests.faults import quick_folder

from .stage import jobs_for, landed, lander, make_memories, place_at

pytestmark = [pytest.mark.spec("1.courses")]


async def _run(home: Path, base: Path) -> None:
    ledger = open_local(home)
    try:
        shop = WorkerContext(
            ledger,
            place_at(home, base),
            EmbeddedModel(),
            tasks={"dream": lander()},
            poll=0.01,
        )
        await run_local(shop, 1)
    finally:
        ledger.close()


async def _cancelled(base: Path, hops: int) -> None:
    """A run that is cancelled some turns of the loop after it began to wait, and the next one."""
    home = base / "home"
    roots = make_memories(home, base, 1)
    ledger = open_local(home)
    ledger.add(jobs_for(roots, 2))
    ledger.close()
    assert await cancelled_at(lambda: _run(home, base), 1, hops)
    await _run(home, base)
    found = landed(home, roots[0])
    assert (found["night-0"], found["night-1"]) == (1, 1), f"cancelled after {hops} turns"


def test_a_run_that_is_cancelled_anywhere_lands_each_job_once(scale: Scale) -> None:
    chance = Random(f"fleet cancels:{scale.seed}")
    for _ in range(scale.pick(2, 100)):
        with quick_folder() as base:
            anyio.run(_cancelled, base, int(chance.lognormvariate(6, 2)))
