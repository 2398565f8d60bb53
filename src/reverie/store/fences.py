"""Fences: which job may still land in a memory, and which has landed.

A job that may be tried several times, by several hosts, carries a fence: its key, and a number
that is higher each time somebody takes the job up. Whoever begins says so in the memory itself;
from then on a lower number lands nothing, however long its worker slept. What landed is
remembered by the job's key: the same job lands once.

All of it stands in one small file beside the history. Numbers are compared with those of the same
source alone: two sources share no count. Nothing here reads or writes a memory.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from reverie.errors import NotFound, StoreError
from reverie.light import dataclass

if TYPE_CHECKING:
    from reverie.store.memories import Memories

NAME = "fences.json"
MAX_JOBS = 400
"""Jobs of one memory that are remembered, the newest; a year of nights and more."""
_MOST = 2**20


@dataclass(frozen=True, slots=True)
class Fence:
    """The right of one try at a job to land."""

    job: str
    number: int
    source: str


class Fenced(StoreError, code="fenced"):
    """Somebody has taken the job up since: this try lands nothing. `number` is theirs."""

    number = 0


class AlreadyLanded(StoreError, code="already_landed"):
    """The job has landed before; nothing was changed."""


def enter(memories: Memories, fence: Fence) -> bool:
    """Take a job up: older tries land nothing from here on. False where the job has landed."""
    with memories.folder.locked():
        numbers, jobs = _read(memories)
        if fence.job in jobs:
            return False
        _compare(fence, numbers, memories)
        numbers[fence.source] = fence.number
        _write(memories, numbers, jobs)
        return True


def check(memories: Memories, fence: Fence) -> None:
    """Raise where this try may not land, under the folder's lock."""
    numbers, jobs = _read(memories)
    if fence.job in jobs:
        raise AlreadyLanded("This job has landed already", where=fence.job)
    _compare(fence, numbers, memories)


def record(memories: Memories, fence: Fence) -> None:
    """Remember that a job has landed, under the folder's lock."""
    numbers, jobs = _read(memories)
    numbers[fence.source] = max(fence.number, numbers.get(fence.source, 0))
    jobs[fence.job] = fence.number
    _write(memories, numbers, jobs)


def landed(memories: Memories, job: str) -> bool:
    """Whether a job has landed in this memory."""
    return job in _read(memories)[1]


def _compare(fence: Fence, numbers: dict[str, int], memories: Memories) -> None:
    if fence.number < numbers.get(fence.source, 0):
        late = Fenced(
            "This try at a job came too late: somebody has taken it up since",
            where=str(memories.root),
            do="Nothing was changed; the other try goes on",
        )
        late.number = numbers[fence.source]
        raise late


def _read(memories: Memories) -> tuple[dict[str, int], dict[str, int]]:
    """The highest number of each source, and the jobs that landed, oldest first."""
    try:
        value: Any = json.loads(memories.beside.read(NAME, _MOST))
        numbers = {str(k): int(v) for k, v in cast("dict[str, Any]", value["numbers"]).items()}
        jobs = {str(k): int(v) for k, v in cast("dict[str, Any]", value["jobs"]).items()}
    except NotFound:
        return {}, {}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(
            "Nobody can tell which jobs have landed here: the file cannot be read",
            where=str(memories.beside.root / NAME),
            do="Move it away; the next job begins a new one",
        ) from error
    return numbers, jobs


def _write(memories: Memories, numbers: dict[str, int], jobs: dict[str, int]) -> None:
    kept = dict(list(jobs.items())[-MAX_JOBS:])
    memories.beside.write(NAME, json.dumps({"v": 1, "numbers": numbers, "jobs": kept}).encode())
