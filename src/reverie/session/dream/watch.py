"""After each turn: is a dream due? One that is runs as a job of the session.

With a language model configured a dream costs money, so the first one is asked for: until a
person has run one (`/dream`, `reverie dream run`), the session says once that one is due. After a
failure or a kill this session does not try again; the next may. Where no person is there the
session ends with its answer, and a dream would end with it: the next with a person dreams. With
the flag `dream` off none begins, also where a person asks.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from reverie.errors import Held, NotFound, StoreError
from reverie.layers.dreaming import NAME, Gates
from reverie.memory.format.entry import LOGS
from reverie.session.library import Library
from reverie.store.consolidation import Consolidation
from reverie.store.files import Folder
from reverie.store.memories import Memories
from reverie.world import Notice

if TYPE_CHECKING:
    from reverie.session.dream.branch import Dream
    from reverie.session.dream.run import Dreamer, DreamTrigger
    from reverie.session.host import Host

ALLOWED = "dreams-allowed"
OFF = "Dreams are switched off; `reverie flags set dream on` allows them again"


@dataclass
class DreamWatch:
    """What one session knows of its dreams."""

    looked: float | None = None
    ended: bool = False  # one failed or was killed
    asked: bool = False
    now: Dream | None = None  # the one under way

    async def start(self, host: Host) -> str:
        """Dream because a person asked; says what happens."""
        if not host.world.flags.get(NAME):
            return OFF
        dreamer = dreamer_of(host)
        if dreamer is None:
            return "There is no long-term memory here to dream about"
        if NAME in host.jobs.running:
            return "A dream is under way already; /tasks lists it"
        if host.home is not None and not dreamer.model.capabilities.free:
            await to_thread.run_sync(allow, host.home)
        self.ended = False
        host.jobs.start(NAME, lambda: self._run(dreamer, "manual"))
        return "A dream has begun; /tasks lists it and ends it"

    async def consider(self, host: Host) -> None:
        """Ask the gates; where all stand open, dream in the background."""
        world, memories = host.world, host.memories
        if memories is None or world.model is None or self.ended or not host.interactive:
            return
        settings, now = world.settings, world.clock.now()
        lock = Consolidation.of(memories.root, world.clock.now, settings)

        def counted(since: float) -> int:
            self.looked = now
            return touched(host.library, since, host.id)

        days = partial(undistilled, memories)
        gates = Gates(world.flags, lock.last, counted, self.looked, days)
        shut = await to_thread.run_sync(lambda: gates.shut(settings, now))
        if shut or NAME in host.jobs.running:
            return
        if not allowed(host):
            self._ask(host)
            return
        dreamer = dreamer_of(host)
        if dreamer is not None:
            host.jobs.start(NAME, lambda: self._run(dreamer, "auto"))

    def _ask(self, host: Host) -> None:
        if not self.asked:
            self.asked = True
            text = (
                "a dream is due: it would tidy the memory with the model in use, within the day's "
                "budget. `/dream` runs it and allows later ones; the flag `dream` switches them off"
            )
            host.world.say(Notice(NAME, text))

    async def _run(self, dreamer: Dreamer, trigger: DreamTrigger) -> None:
        from reverie.session.dream.run import dream  # it judges, which takes a while to load

        try:
            done = await dream(dreamer, trigger, shown=self._shown)
        except Held as error:  # another process dreams
            if trigger == "manual":
                dreamer.say(Notice(NAME, str(error), "warning"))
            return
        self.ended = done.status in ("failed", "killed")

    def _shown(self, dream: Dream) -> None:
        self.now = dream


def dreamer_of(host: Host) -> Dreamer | None:
    """What a session's dream needs; None where it has no memory or no model."""
    from reverie.session.dream.run import Dreamer
    from reverie.session.extraction.run import guards_at
    from reverie.tools.guard import Guards

    world, memories, guards = host.world, host.memories, host.guards
    if memories is None or world.model is None:
        return None
    root = Path(host.view.started.project if host.view.started else ".")
    if not isinstance(guards, Guards):  # a caller's own loop: our tools, within our walls
        guards = guards_at(root, host.library.path, memories, world)
    return Dreamer(
        memories,
        host.library,
        root,
        world.model,
        guards,
        world.clock,
        world.settings,
        world.flags,
        host.budget,
        world.say,
        summariser=world.summariser,
    )


def touched(library: Library, since: float, current: str = "") -> int:
    """How many sessions were used since, but for the current one."""
    return sum(1 for one in library.sessions() if one.id != current and one.mtime > since)


def undistilled(memories: Memories, since: float) -> int:
    """How many days of the daily log were written to since."""
    found = 0
    for key in memories.folder.all_keys():
        if key.startswith(f"{LOGS}/") and key.endswith(".md"):
            with suppress(NotFound, StoreError):
                found += memories.folder.stat(key).modified / 1e9 > since
    return found


def allowed(host: Host) -> bool:
    """Whether a dream may use this session's model without being asked for."""
    model, home = host.world.model, host.home
    if model is None or model.capabilities.free:
        return True
    return home is not None and os.path.lexists(home / ALLOWED)


def allow(home: Path) -> None:
    """A person ran a dream with a model: later ones need not be asked for."""
    if not os.path.lexists(home / ALLOWED):
        with Folder(home) as folder:
            folder.write(ALLOWED, b"")
