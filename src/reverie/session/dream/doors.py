"""What a person can do about dreams: look, compare, accept, drop, kill, take back.

Every function works on what is on the disk, so it makes no difference which process dreams or
dreamt. Accepting judges the branch once more against the folder as it is now.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from reverie.errors import InvalidInput, NotFound
from reverie.memory import branch as branches
from reverie.memory.trust import Trust
from reverie.memory.versions import Origin, from_origin
from reverie.session.dream.branch import (
    Branch,
    Dream,
    LandedDream,
    Standing,
    dreams,
    dreams_folder,
    land,
    sources_of,
)
from reverie.store.consolidation import Consolidation
from reverie.store.lock import alive
from reverie.store.memories import Memories, Reverted


def known(memories: Memories) -> list[Dream]:
    """All dreams of a project, the newest first; one whose process is gone counts as killed,
    or as completed where it had landed or was landed since."""
    found = dreams(dreams_folder(memories))
    lost = {one.id for one in found if one.status == "running" and not alive(one.pid)}
    return [_without_process(memories, one) if one.id in lost else one for one in found]


def _without_process(memories: Memories, dream: Dream) -> Dream:
    keys = {v.key for v in from_origin(memories.history.log(), "session", dream.id)}
    if keys:
        return replace(dream, status="completed", changed=tuple(sorted(keys)))
    return replace(dream, status="killed", reason="its process is gone")


def find(memories: Memories, name: str, *standing: Standing) -> Dream:
    """A dream by the beginning of its id, or the newest one that stands so."""
    found = [
        dream
        for dream in known(memories)
        if dream.id.startswith(name.lower()) and (not standing or dream.status in standing)
    ]
    if not found or (name and len(found) > 1):
        what = " or ".join(standing) or "known"
        many = (
            "Several dreams have ids that begin like this"
            if found
            else f"There is no dream that is {what}"
        )
        code = "ambiguous" if found else ""
        raise NotFound(many, where=name, do="List the dreams to see their ids", code=code)
    return found[0]


def changes(memories: Memories, dream: Dream) -> list[tuple[str, bytes | None, bytes | None]]:
    """The files that a branch changes, each as it was and as it would be; None is not there."""
    with Branch(dreams_folder(memories), dream.id) as branch:
        base = branch.state("base")
        work = branches.settled(branch.state("work"), base)
    return [(key, base.get(key), work.get(key)) for key in branches.changed(base, work)]


def unified(key: str, before: bytes | None, after: bytes | None) -> Iterator[str]:
    """One file's unified diff."""
    old, new = ((side or b"").decode("utf-8", "replace") for side in (before, after))
    rows = old.splitlines(), new.splitlines()
    yield from difflib.unified_diff(*rows, f"a/{key}", f"b/{key}", lineterm="")


def accept(
    memories: Memories,
    dream: Dream,
    now: Callable[[], float],
    stale_seconds: float,
    only: Collection[str] | None = None,
) -> LandedDream:
    """Land a branch that waited, or only some files of it. What is wrong with it was said when
    it ended."""
    if dream.status != "waiting":
        raise InvalidInput(f"This dream is {dream.status}, it does not wait", where=dream.id)
    lock = Consolidation(memories.root, now=now, stale_seconds=stale_seconds)
    taken = lock.take()
    try:
        with Branch(dreams_folder(memories), dream.id) as branch:
            base = branch.state("base")
            work = branches.settled(branch.state("work"), base)
            if only is not None:
                work = _only(base, work, only)
            with lock.landing(taken):
                done = land(memories, branch, base, work, sources_of(dream))
            branch.write(replace(dream, status="completed", changed=done.changed, reason=""))
            branch.drop_copies()
            return done
    finally:
        lock.give_back(taken)


def _only(
    base: branches.FolderFiles, work: branches.FolderFiles, only: Collection[str]
) -> branches.FolderFiles:
    """The work without the changes of files that were not chosen."""
    changed = branches.changed(base, work)
    unknown = [key for key in only if key not in changed]
    if unknown or not only:
        what = "The dream does not change this file" if unknown else "No file was chosen"
        raise InvalidInput(what, where=", ".join(unknown), do="Look at its diff")
    left = {key for key in changed if key not in only}
    kept = {key: data for key, data in work.items() if key not in left}
    return {**kept, **{key: base[key] for key in left if key in base}}


def drop(memories: Memories, dream: Dream) -> None:
    """Throw a branch away; the memory folder is as it was."""
    if not dream.over:
        raise InvalidInput("This dream still runs", where=dream.id, do="Kill it first")
    with Branch(dreams_folder(memories), dream.id) as branch:
        branch.write(replace(dream, status="dropped"))
        branch.drop_copies()


def kill(memories: Memories, dream: Dream) -> None:
    """Ask the process that dreams it to stop; it gives the lock back itself."""
    with Branch(dreams_folder(memories), dream.id) as branch:
        branch.kill()


def undo(memories: Memories, dream: Dream) -> Reverted:
    """Take back what a dream changed; what others wrote since stays."""
    origin = Origin("undo", Trust.USER, agent="user", note=f"dream {dream.id[:8]}")
    done = memories.revert("session", dream.id, origin)
    with Branch(dreams_folder(memories), dream.id) as branch:
        branch.write(replace(dream, status="undone"))
    return done
