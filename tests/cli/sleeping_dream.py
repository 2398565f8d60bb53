"""A process that dreams with a model that never answers, until somebody kills the dream."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import anyio

from reverie.observer import SystemClock
from reverie.session import DreamContext, SessionLibrary, guards_at, run_dream
from reverie.settings import DEFAULTS
from reverie.store import MemoryStore, Project
from reverie.testing import FixedFlags, MemoryDisk
from reverie.wire import Delta, Request
from reverie.world import Capabilities, World


class Sleeper:
    name = "sleeper"
    capabilities = Capabilities()

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        del request
        print("dreaming", flush=True)
        await anyio.sleep_forever()
        yield Delta("text", "")


async def main(home: Path, root: Path) -> None:
    clock, flags, model = SystemClock(), FixedFlags(), Sleeper()
    library = SessionLibrary.of(Project.at(root, home=home, environ={}))
    with MemoryStore.of(
        Project.at(root, home=home, environ={}, settings=DEFAULTS), now=time.time
    ) as memories:
        world = World(clock, MemoryDisk(), flags, DEFAULTS, model)
        guards = guards_at(root, library.path, memories, world)
        dreamer = DreamContext(memories, library, root, model, guards, clock, DEFAULTS, flags)
        done = await run_dream(dreamer)
        print(done.status, flush=True)
    library.close()


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), Path(sys.argv[2]))
