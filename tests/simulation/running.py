"""Seeds, one after another, in one event loop and one folder in memory."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import anyio

from tests.faults import quick_folder
from tests.simulation.world import World, virtual_disk


def simulate(seeds: Iterable[int]) -> list[str]:
    """Run some seeds; what each did, as a digest. A failure names its seed."""
    return anyio.run(_simulate, list(seeds))


async def _simulate(seeds: list[int]) -> list[str]:
    traces: list[str] = []
    with virtual_disk():
        for seed in seeds:
            with quick_folder() as base:
                world = World(base, seed)
                try:
                    await world.run()
                except BaseException as error:
                    error.add_note(f"seed {seed}: {' '.join(world.trace)}")
                    raise
                finally:
                    world.close()
            traces.append(sha256(" ".join(world.trace).encode()).hexdigest())
    return traces
