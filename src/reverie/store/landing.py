"""Landing: checked changes enter a memory folder as one step, whole or not at all.

Under the folder's lock every new byte is kept in the history, then the plan is put on the disk.
Only then are files changed, each through the folder's own guards and history, and the plan
removed. A process that dies in between leaves the plan, and whoever opens the memory next carries
it out: no reader of ours ever works on half of it. What is taken back goes the same way, and a
file that comes back has its old time. A file that somebody changed after the plan
was made keeps their words. A plan with words that may no longer be written is given up: what it
would have removed stays.

A job's landing carries its fence: one that came too late, or landed before, changes nothing. The
fence stands in the plan, so the job counts as landed however its process ended.

What may land is judged elsewhere. Every memory that is opened asks for a plan left behind, so
nothing that judges is imported here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from reverie.errors import InvalidInput, InvalidMessage, NotFound, PathRefused, SecretFound
from reverie.memory.format.entry import is_index
from reverie.memory.trust import Trust
from reverie.memory.versions import ABSENT, Origin, Version, decode, encode, time_before
from reverie.store import fences
from reverie.store.fences import Fence
from reverie.store.files import Changed
from reverie.store.lists import Forgotten
from reverie.store.objects import LARGEST, Damaged
from reverie.store.plain import digest
from reverie.transcript.blocks import dump, parse

if TYPE_CHECKING:
    from reverie.store.memories import Memories

PLAN = "landing.jsonl"
_MOST = 2**26


def land(
    memories: Memories,
    changes: Mapping[str, bytes | None],
    here: Mapping[str, bytes],
    origin: Origin,
    trusts: Mapping[str, Trust] | None = None,
    fence: Fence | None = None,
) -> str:
    """Write files and remove those that are None; the name of the step in the history.

    `trusts` gives the trust in a file where it is another than that of the step. `here` is
    what the changes were made from: where the folder holds something else by now, or a guard
    refuses one file, nothing is changed.
    """
    before = {key: digest(data) for key, data in here.items()}
    return land_over(memories, changes, before, origin, trusts=trusts or {}, fence=fence)


def land_over(
    memories: Memories,
    changes: Mapping[str, bytes | None],
    here: Mapping[str, str],
    origin: Origin,
    undoes: tuple[str, ...] = (),
    *,
    trusts: Mapping[str, Trust] | None = None,
    fence: Fence | None = None,
) -> str:
    """The same, where `here` is the SHA-256 of each file, and the step takes others back."""
    with memories.folder.locked():
        finish(memories)
        if fence is not None:
            fences.check(memories, fence)
        step = Version("", "", ABSENT, ABSENT, 0.0, origin, memories.history.new_id(), undoes)
        steps = [_planned(memories, key, changes[key], here, step) for key in sorted(changes)]
        known = trusts or {}
        steps = [
            replace(one, origin=replace(origin, trust=known.get(one.key, origin.trust)))
            for one in steps
        ]
        if not steps:
            if fence is not None:
                fences.record(memories, fence)
            return ""
        for data in changes.values():
            if data is not None:
                memories.history.put(data)
        rows = [encode(step) for step in steps]
        rows += [_encode_fence(fence)] if fence is not None else []
        plan = "".join(f"{row}\n" for row in rows)
        memories.beside.write(PLAN, plan.encode())
        return _carry_out(memories)


def least_trusted(memories: Memories, keys: Iterable[str], most: Trust) -> Trust:
    """What is made of some files is as trusted as the least trusted of them."""
    return min([most, *(memories.trust(key) for key in keys)])


def is_planned(memories: Memories) -> bool:
    """Whether a landing was begun and is not over."""
    return os.path.lexists(memories.beside.root / PLAN)


def finish(memories: Memories) -> str:
    """Carry out a plan that a process left behind when it died; its step, or nothing."""
    if not is_planned(memories):
        return ""
    with memories.folder.locked():
        return _carry_out(memories)


def _planned(
    memories: Memories,
    key: str,
    data: bytes | None,
    here: Mapping[str, str],
    step: Version,
) -> Version:
    before = here.get(key, ABSENT)
    if _now(memories, key) != before:
        raise Changed("The file has changed since it was read", where=key)
    if data is None:
        return replace(step, key=key, before=before)
    if len(data) > LARGEST:
        raise InvalidInput("The file would become too large", where=key)
    memories.allow(key, data)
    return replace(step, key=key, before=before, after=digest(data))


def _carry_out(memories: Memories) -> str:
    """Do what is left of the plan."""
    steps, fence = _read(memories)
    if not steps:
        return ""
    try:
        for step in sorted(steps, key=_place):
            with memories.history.by(step.origin, step.undoes, step.group):
                _step(memories, step)
    except (Forgotten, SecretFound, NotFound, Damaged):
        memories.beside.remove(PLAN)
        raise
    if fence is not None:
        fences.record(memories, fence)
    memories.beside.remove(PLAN)
    return steps[0].group


def _read(memories: Memories) -> tuple[Sequence[Version], Fence | None]:
    """The plan on disk and whose it is; one that cannot be read was never begun, and is removed."""
    files = memories.beside
    fence: Fence | None = None
    try:
        rows = files.read(PLAN, _MOST).decode().split("\n")[:-1]
        if rows and rows[-1].startswith(_FENCE):
            fence = _decode_fence(rows.pop())
        found = [decode(row) for row in rows]
    except NotFound:
        return (), None
    except (ValueError, InvalidMessage):
        found = []
    steps = [step for step in found if isinstance(step, Version)]
    if not steps or len(steps) < len(found):
        files.remove(PLAN)
        return (), None
    return steps, fence


_FENCE = '{"v":1,"type":"fence",'


def _encode_fence(fence: Fence) -> str:
    about = {"v": 1, "type": "fence", "job": fence.job, "number": fence.number}
    return dump({**about, "source": fence.source})


def _decode_fence(row: str) -> Fence:
    value = parse(row)
    if not isinstance(value, dict):
        raise InvalidMessage("a plan's fence cannot be read")
    return Fence(str(value.get("job")), int(str(value.get("number"))), str(value.get("source")))


def _place(step: Version) -> tuple[bool, bool, str]:
    """Files first, then indexes, then removals: no pointer ever leads to nothing."""
    return step.after == ABSENT, is_index(step.key), step.key


def _step(memories: Memories, step: Version) -> None:
    now = _now(memories, step.key)
    if now == step.after or now != step.before:
        return  # done already, or somebody else's words by now
    if step.after == ABSENT:
        memories.take_out(step.key, now)
        return
    history = memories.history
    history.refresh()
    undone = [history.state.versions[one] for one in step.undoes if one in history.state.versions]
    memories.folder.write(
        step.key,
        history.content(step.after),
        expect=now or None,
        exclusive=not now,
        modified=time_before(undone, step.key, step.after),
    )


def _now(memories: Memories, key: str) -> str:
    try:
        return memories.folder.digest(key)
    except NotFound:
        return ABSENT
    except PathRefused:
        return "not ours"
