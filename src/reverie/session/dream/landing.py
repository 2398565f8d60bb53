"""Landing: a dream's changes enter the memory folder as one step, whole or not at all.

Under the folder's lock, what others wrote meanwhile is merged in, and the plan with every new
byte is put on the disk. Only then are files changed, each through the folder's own guards and
history, and the plan removed. A process that dies in between leaves the plan, and whoever opens
the memory next carries it out: no reader of ours ever works on half a dream. A file that somebody
changed after the plan was made keeps their words.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from reverie.errors import NotFound, StoreError
from reverie.memory.branch import Joined, joined
from reverie.memory.trust import Trust
from reverie.memory.versions import Origin
from reverie.session.dream.branch import FOLDER, Branch, snapshot
from reverie.store.files import Folder, digest

if TYPE_CHECKING:
    from reverie.session.remember import Memories

PLAN = "landing.json"
NEW = "new"


@dataclass(frozen=True, slots=True)
class Landed:
    """What a dream changed in the folder."""

    changed: tuple[str, ...]
    conflicts: tuple[str, ...] = ()


def dreams_folder(memories: Memories) -> Path:
    return memories.history.files.root.parent / FOLDER


def origin_of(dream: str, trust: Trust = Trust.AGENT) -> Origin:
    return Origin("dream", trust, agent=f"dream {dream[:8]}", session=dream, tool="dream")


def land(
    memories: Memories, branch: Branch, base: Mapping[str, bytes], work: Mapping[str, bytes]
) -> Landed:
    """Merge a dream's work into the folder as it is now, and write it."""
    with memories.folder.locked():
        memories.look()
        here = snapshot(memories.folder)
        found: Joined = joined(base, work, here)
        if not found.changes:
            return Landed((), found.conflicts)
        _plan(memories, branch, found.changes, here)
        _carry_out(memories)
        return Landed(tuple(sorted(found.changes)), found.conflicts)


def _trust(memories: Memories, steps: Mapping[str, Mapping[str, str]]) -> Trust:
    """What a dream writes is as trusted as the least trusted file that it took part of."""
    drawn_on = [key for key, step in steps.items() if step["before"]]
    return min([Trust.AGENT, *(memories.trust(key) for key in drawn_on)])


def _plan(
    memories: Memories,
    branch: Branch,
    changes: Mapping[str, bytes | None],
    here: Mapping[str, bytes],
) -> None:
    for key, data in changes.items():
        if data is not None:
            memories.allow(key, data)
            branch.files.write(f"{NEW}/{key}", data)
    steps = {
        key: {
            "before": digest(here[key]) if key in here else "",
            "after": "" if data is None else digest(data),
        }
        for key, data in changes.items()
    }
    with Folder(dreams_folder(memories)) as folder:
        folder.write(PLAN, json.dumps({"dream": branch.id, "steps": steps}).encode())


def is_planned(memories: Memories) -> bool:
    """Whether a landing was begun and is not over."""
    return os.path.lexists(dreams_folder(memories) / PLAN)


def finish(memories: Memories) -> str:
    """Carry out a plan that a process left behind when it died; the dream's id, or nothing."""
    if not is_planned(memories):
        return ""
    with memories.folder.locked():
        return _carry_out(memories)


def _read(memories: Memories) -> tuple[str, dict[str, dict[str, str]]] | None:
    """The plan on disk; one that cannot be read was never begun, and is removed."""
    with Folder(dreams_folder(memories)) as folder:
        try:
            value: Any = json.loads(folder.read(PLAN, 2**26))
            dream, steps = str(value["dream"]), cast("dict[str, dict[str, str]]", value["steps"])
        except NotFound:
            return None
        except (ValueError, KeyError, TypeError):
            folder.remove(PLAN)
            return None
    return dream, steps


def _carry_out(memories: Memories) -> str:
    """Do what is left of the plan; the id of its dream."""
    plan = _read(memories)
    if plan is None:
        return ""
    dream, steps = plan
    origin = origin_of(dream, _trust(memories, steps))
    with Branch(dreams_folder(memories), dream) as branch, memories.history.by(origin):
        for key in _in_order(steps):
            _step(memories, branch, key, steps[key])
    with Folder(dreams_folder(memories)) as folder:
        folder.remove(PLAN)
    return dream


def _in_order(steps: Mapping[str, Mapping[str, str]]) -> Sequence[str]:
    """Files first, then indexes, then removals: no pointer ever leads to nothing."""

    def place(key: str) -> tuple[bool, bool, str]:
        return not steps[key]["after"], key.endswith("MEMORY.md"), key

    return sorted(steps, key=place)


def _step(memories: Memories, branch: Branch, key: str, step: Mapping[str, str]) -> None:
    now = _digest(memories, key)
    if now == step["after"] or now != step["before"]:
        return  # done already, or somebody else's words by now
    if step["after"]:
        data = branch.files.read(f"{NEW}/{key}")
        if digest(data) != step["after"]:
            raise StoreError("A planned file has changed on disk", where=f"{branch.id}/{key}")
        memories.folder.write(key, data, expect=now or None, exclusive=not now)
        return
    memories.take_out(key, now)


def _digest(memories: Memories, key: str) -> str:
    try:
        return memories.folder.files.digest(key)
    except NotFound:
        return ""
