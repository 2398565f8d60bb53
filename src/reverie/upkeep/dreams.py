"""When the next dream of a project is due, and why not now."""

from __future__ import annotations

import time

from reverie.store.consolidation import Consolidation
from reverie.store.memories import Memories
from reverie.store.project import Project
from reverie.upkeep.tasks import dream_gates


def next_dream(place: Project, memories: Memories) -> str:
    """Why none is due, or nothing."""
    seen = Consolidation.of(memories.root, time.time, place.settings).look()
    if seen.state == "held":
        return f"one is running now, in process {seen.pid}"
    return dream_gates(place, memories, time.time())
