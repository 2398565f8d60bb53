"""Changes that land whole or not at all, fenced by job.

Landing: checked changes enter a memory folder as one step, whole or not at all.

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

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from reverie.errors import (
    InvalidInput,
    InvalidMessage,
    NotFound,
    PathRefused,
    SecretFound,
    StoreError,
)
from reverie.light import dataclass
from reverie.store.files import Changed
from reverie.store.fs import digest
from reverie.store.lists import ForgottenTextRefused
from reverie.store.objects import LARGEST, Damaged
from reverie.topics.entry import is_index
from reverie.topics.trust import Trust
from reverie.topics.versions import ABSENT, Origin, Version, decode, encode, time_before
from reverie.transcript.blocks import dump, parse

if TYPE_CHECKING:
    from reverie.store.memory_store import MemoryStore

PLAN = "landing.jsonl"
_MOST = 2**26


def land(
    memories: MemoryStore,
    changes: Mapping[str, bytes | None],
    here: Mapping[str, bytes],
    origin: Origin,
    trusts: Mapping[str, Trust] | None = None,
    fence: JobFence | None = None,
) -> str:
    """Write files and remove those that are None; the name of the step in the history.

    `trusts` gives the trust in a file where it is another than that of the step. `here` is
    what the changes were made from: where the folder holds something else by now, or a guard
    refuses one file, nothing is changed.
    """
    before = {key: digest(data) for key, data in here.items()}
    return land_over(memories, changes, before, origin, trusts=trusts or {}, fence=fence)


def land_over(
    memories: MemoryStore,
    changes: Mapping[str, bytes | None],
    here: Mapping[str, str],
    origin: Origin,
    undoes: tuple[str, ...] = (),
    *,
    trusts: Mapping[str, Trust] | None = None,
    fence: JobFence | None = None,
) -> str:
    """The same, where `here` is the SHA-256 of each file, and the step takes others back."""
    with memories.folder.locked():
        finish(memories)
        if fence is not None:
            check(memories, fence)
        step = Version("", "", ABSENT, ABSENT, 0.0, origin, memories.history.new_id(), undoes)
        steps = [_plan_step(memories, key, changes[key], here, step) for key in sorted(changes)]
        known = trusts or {}
        steps = [
            replace(one, origin=replace(origin, trust=known.get(one.key, origin.trust)))
            for one in steps
        ]
        if not steps:
            if fence is not None:
                record(memories, fence)
            return ""
        for data in changes.values():
            if data is not None:
                memories.history.put(data)
        rows = [encode(step) for step in steps]
        rows += [_encode_fence(fence)] if fence is not None else []
        plan = "".join(f"{row}\n" for row in rows)
        memories.beside.write(PLAN, plan.encode())
        return _carry_out(memories)


def least_trusted(memories: MemoryStore, keys: Iterable[str], most: Trust) -> Trust:
    """What is made of some files is as trusted as the least trusted of them."""
    return min([most, *(memories.trust(key) for key in keys)])


def is_planned(memories: MemoryStore) -> bool:
    """Whether a landing was begun and is not over, or nobody can tell."""
    try:
        os.lstat(memories.beside.root / PLAN)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


def finish(memories: MemoryStore) -> str:
    """Carry out a plan that a process left behind when it died; its step, or nothing."""
    if not is_planned(memories):
        return ""
    with memories.folder.locked():
        return _carry_out(memories)


def _plan_step(
    memories: MemoryStore,
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


def _carry_out(memories: MemoryStore) -> str:
    """Do what is left of the plan."""
    steps, fence = _read(memories)
    if not steps:
        return ""
    try:
        for step in sorted(steps, key=_place):
            with memories.history.by(step.origin, step.undoes, step.group):
                _step(memories, step)
    except (ForgottenTextRefused, SecretFound, NotFound, Damaged):
        memories.beside.remove(PLAN)
        raise
    if fence is not None:
        record(memories, fence)
    memories.beside.remove(PLAN)
    return steps[0].group


def _read(memories: MemoryStore) -> tuple[Sequence[Version], JobFence | None]:
    """The plan on disk and whose it is; one that cannot be read was never begun, and is removed."""
    files = memories.beside
    fence: JobFence | None = None
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


def _encode_fence(fence: JobFence) -> str:
    about = {"v": 1, "type": "fence", "job": fence.job, "number": fence.number}
    return dump({**about, "source": fence.source})


def _decode_fence(row: str) -> JobFence:
    value = parse(row)
    if not isinstance(value, dict):
        raise InvalidMessage("a plan's fence cannot be read")
    return JobFence(str(value.get("job")), int(str(value.get("number"))), str(value.get("source")))


def _place(step: Version) -> tuple[bool, bool, str]:
    """Files first, then indexes, then removals: no pointer ever leads to nothing."""
    return step.after == ABSENT, is_index(step.key), step.key


def _step(memories: MemoryStore, step: Version) -> None:
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


def _now(memories: MemoryStore, key: str) -> str:
    try:
        return memories.folder.digest(key)
    except NotFound:
        return ABSENT
    except PathRefused:
        return "not ours"


# --- Fences: which job may still land in a memory, and which has landed.
#
# A job that may be tried several times, by several hosts, carries a fence: its key, and a number
# that is higher each time somebody takes the job up. Whoever begins says so in the memory itself;
# from then on a lower number lands nothing, however long its worker slept. What landed is
# remembered by the job's key: the same job lands once.
#
# All of it stands in one small file beside the history. Numbers are compared with those of the
# same source alone: two sources share no count. Nothing here reads or writes a memory.


FENCES = "fences.json"
MAX_JOBS = 400
"""Jobs of one memory that are remembered, the newest; a year of nights and more."""
_MOST_FENCES = 2**20


@dataclass(frozen=True, slots=True)
class JobFence:
    """The right of one try at a job to land."""

    job: str
    number: int
    source: str


class Fenced(StoreError, code="fenced"):
    """Somebody has taken the job up since: this try lands nothing. `number` is theirs."""

    number = 0


class AlreadyLanded(StoreError, code="already_landed"):
    """The job has landed before; nothing was changed."""


def enter(memories: MemoryStore, fence: JobFence) -> bool:
    """Take a job up: older tries land nothing from here on. False where the job has landed."""
    with memories.folder.locked():
        numbers, jobs = _read_fences(memories)
        if fence.job in jobs:
            return False
        _compare(fence, numbers, memories)
        numbers[fence.source] = fence.number
        _write(memories, numbers, jobs)
        return True


def check(memories: MemoryStore, fence: JobFence) -> None:
    """Raise where this try may not land, under the folder's lock."""
    numbers, jobs = _read_fences(memories)
    if fence.job in jobs:
        raise AlreadyLanded("This job has landed already", where=fence.job)
    _compare(fence, numbers, memories)


def record(memories: MemoryStore, fence: JobFence) -> None:
    """Remember that a job has landed, under the folder's lock."""
    numbers, jobs = _read_fences(memories)
    numbers[fence.source] = max(fence.number, numbers.get(fence.source, 0))
    jobs[fence.job] = fence.number
    _write(memories, numbers, jobs)


def is_committed(memories: MemoryStore, job: str) -> bool:
    """Whether a job has landed in this memory."""
    return job in _read_fences(memories)[1]


def _compare(fence: JobFence, numbers: dict[str, int], memories: MemoryStore) -> None:
    if fence.number < numbers.get(fence.source, 0):
        late = Fenced(
            "This try at a job came too late: somebody has taken it up since",
            where=str(memories.root),
            do="Nothing was changed; the other try goes on",
        )
        late.number = numbers[fence.source]
        raise late


def _read_fences(memories: MemoryStore) -> tuple[dict[str, int], dict[str, int]]:
    """The highest number of each source, and the jobs that landed, oldest first."""
    try:
        value: Any = json.loads(memories.beside.read(FENCES, _MOST_FENCES))
        numbers = {str(k): int(v) for k, v in cast("dict[str, Any]", value["numbers"]).items()}
        jobs = {str(k): int(v) for k, v in cast("dict[str, Any]", value["jobs"]).items()}
    except NotFound:
        return {}, {}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(
            "Nobody can tell which jobs have landed here: the file cannot be read",
            where=str(memories.beside.root / FENCES),
            do="Move it away; the next job begins a new one",
        ) from error
    return numbers, jobs


def _write(memories: MemoryStore, numbers: dict[str, int], jobs: dict[str, int]) -> None:
    kept = dict(list(jobs.items())[-MAX_JOBS:])
    memories.beside.write(FENCES, json.dumps({"v": 1, "numbers": numbers, "jobs": kept}).encode())
