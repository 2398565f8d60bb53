"""When the next dream of a project is due, and why not now."""

from __future__ import annotations

import time
from functools import partial

from reverie.layers.dreaming import Gates
from reverie.session.dream.watch import touched, undistilled
from reverie.store.consolidation import Consolidation
from reverie.store.memories import Memories
from reverie.upkeep.place import ProjectPlace


def next_dream(place: ProjectPlace, memories: Memories) -> str:
    """Why none is due, or nothing."""
    settings = place.loaded().settings
    lock = Consolidation.of(memories.root, time.time, settings)
    seen = lock.look()
    if seen.state == "held":
        return f"one is running now, in process {seen.pid}"
    library = place.library()

    def counted(since: float) -> int:
        return touched(library, since) if library else 0

    days = partial(undistilled, memories)
    gates = Gates(place.flags(), lock.last, counted, None, days)
    return gates.shut(settings, time.time())
