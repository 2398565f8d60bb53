"""What tests ask of a memory folder."""

from __future__ import annotations

from reverie.memory import INDEX, IndexFault, index_of
from reverie.memory.format import index as indexes
from reverie.store import MemoryFolder


def index_faults(memory: MemoryFolder, key: str = INDEX) -> tuple[IndexFault, ...]:
    """What is wrong with an index."""
    below = key.removesuffix(INDEX)
    own = [one.key.removeprefix(below) for one in memory.scan() if index_of(one.key) == key]
    return indexes.check(memory.index(key), own, width=memory.limits.width)
