"""What tests ask of a memory folder."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from reverie.store import MemoryFolder, MemoryStore
from reverie.topics import INDEX, IndexFault, check, index_of


def index_faults(memory: MemoryFolder, key: str = INDEX) -> tuple[IndexFault, ...]:
    """What is wrong with an index."""
    below = key.removesuffix(INDEX)
    own = [one.key.removeprefix(below) for one in memory.scan() if index_of(one.key) == key]
    return check(memory.index(key), own, width=memory.limits.width)


def opened(base: Path, **more: Any) -> MemoryStore:
    """The memory of one project, with a clock that counts."""
    ticks, project = itertools.count(1.0), base / "p"
    memory, history = project / "memory", project / "memory-history"
    return MemoryStore(memory, history, base, now=lambda: next(ticks), **more)
