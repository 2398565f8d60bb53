"""A dream's changes, merged with what others wrote meanwhile, enter the folder as one step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reverie.memory.branch import joined
from reverie.memory.trust import Trust
from reverie.memory.versions import Origin
from reverie.session.dream.branch import FOLDER, Branch, snapshot
from reverie.store import landing
from reverie.store.memories import Memories


@dataclass(frozen=True, slots=True)
class LandedDream:
    """What a dream changed in the folder."""

    changed: tuple[str, ...]
    conflicts: tuple[str, ...] = ()


def dreams_folder(memories: Memories) -> Path:
    return memories.beside.root.parent / FOLDER


def land(
    memories: Memories, branch: Branch, base: Mapping[str, bytes], work: Mapping[str, bytes]
) -> LandedDream:
    """Merge a dream's work into the folder as it is now, and write it."""
    with memories.folder.locked():
        landing.finish(memories)
        memories.look()
        here = snapshot(memories.folder)
        found = joined(base, work, here)
        drawn_on = [key for key in found.changes if key in here]
        trust = landing.least_trusted(memories, drawn_on, Trust.AGENT)
        landing.land(memories, found.changes, here, _origin(branch.id, trust))
        return LandedDream(tuple(sorted(found.changes)), found.conflicts)


def _origin(dream: str, trust: Trust) -> Origin:
    return Origin("dream", trust, agent=f"dream {dream[:8]}", session=dream, tool="dream")
