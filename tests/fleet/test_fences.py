"""The landing has the last word: a job lands once, and a try that came too late lands nothing."""

from __future__ import annotations

import itertools
import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reverie.errors import StoreError
from reverie.settings import DEFAULTS
from reverie.store import (
    FENCES,
    MAX_JOBS,
    AlreadyLanded,
    Fenced,
    JobFence,
    MemoryStore,
    Project,
    enter,
    is_committed,
    land,
    record,
)
from reverie.topics import Origin, Trust
from tests.conftest import Scale
from tests.faults import Ack, Death, When, every_kill, quick_folder

pytestmark = [pytest.mark.spec("9.fleet-fence")]
ORIGIN = Origin("dream", Trust.AGENT, agent="test")
KEY = "a.md"
SOME: tuple[When, ...] = ("before", "partial")
ALL: tuple[When, ...] = ("before", "after", "partial")


@pytest.fixture
def memories(tmp_path: Path) -> Iterator[MemoryStore]:
    (tmp_path / "p").mkdir()
    with MemoryStore.of(
        Project.at(tmp_path / "p", home=tmp_path / "home", environ={}, settings=DEFAULTS),
        now=time.time,
    ) as found:
        yield found


def fence(number: int, job: str = "dream:m:night", source: str = "one") -> JobFence:
    return JobFence(job, number, source)


def write(memories: MemoryStore, text: str, by: JobFence) -> str:
    here = {KEY: memories.folder.bytes_of(KEY)} if memories.folder.exists(KEY) else {}
    return land(memories, {KEY: text.encode()}, here, ORIGIN, fence=by)


def test_a_job_lands_once(memories: MemoryStore) -> None:
    write(memories, "first\n", fence(1))
    with pytest.raises(AlreadyLanded):
        write(memories, "second\n", fence(2))
    assert memories.folder.bytes_of(KEY) == b"first\n"
    assert not enter(memories, fence(3))


def test_a_source_may_begin_to_count_at_nothing(memories: MemoryStore) -> None:
    assert enter(memories, fence(0))
    write(memories, "first\n", fence(0))
    assert memories.folder.bytes_of(KEY) == b"first\n"


def test_a_landing_of_nothing_counts(memories: MemoryStore) -> None:
    land(memories, {}, {}, ORIGIN, fence=fence(1))
    assert is_committed(memories, "dream:m:night")


def test_a_lower_fence_lands_nothing_once_another_began(memories: MemoryStore) -> None:
    assert enter(memories, fence(1))
    assert enter(memories, fence(2))
    with pytest.raises(Fenced) as late:
        write(memories, "late\n", fence(1))
    assert late.value.number == 2
    assert not memories.folder.exists(KEY)
    write(memories, "in time\n", fence(2))


def test_another_job_of_a_higher_fence_shuts_out_the_sleeper(memories: MemoryStore) -> None:
    assert enter(memories, fence(1))
    write(memories, "other\n", fence(2, "dream:m:next"))
    with pytest.raises(Fenced):
        write(memories, "late\n", fence(1))


def test_numbers_of_two_sources_are_not_compared(memories: MemoryStore) -> None:
    write(memories, "laptop\n", fence(5_000, "a", "laptop"))
    write(memories, "fleet\n", fence(1, "b", "fleet"))
    assert memories.folder.bytes_of(KEY) == b"fleet\n"


def test_a_kill_anywhere_in_a_landing_leaves_it_landed_or_not_begun(scale: Scale) -> None:
    """Whatever the disk holds then, the job and its words say the same, and the next try agrees."""
    with quick_folder() as base:
        (base / "p").mkdir()
        numbers = itertools.count(1)

        def attempt() -> Callable[[Ack], object]:
            home = base / f"home{next(numbers)}"
            with opened(base, home) as memories:
                write(memories, "before\n", fence(1, "earlier"))

            def work(ack: Ack) -> None:
                with opened(base, home) as memories:
                    enter(memories, fence(2))
                    write(memories, "after\n", fence(2))
                    ack("landed")

            current.append(home)
            return work

        def check(death: Death) -> None:
            with opened(base, current[-1]) as memories:  # as whoever comes next
                said = is_committed(memories, "dream:m:night")
                assert memories.folder.bytes_of(KEY) == (b"after\n" if said else b"before\n")
                assert said or "landed" not in death.acked
                if said:
                    with pytest.raises(AlreadyLanded):
                        write(memories, "again\n", fence(3))
                else:
                    write(memories, "again\n", fence(3))
            shutil.rmtree(current[-1])

        current: list[Path] = []
        points = every_kill(attempt, check, stride=scale.pick(15, 1), whens=scale.pick(SOME, ALL))
    assert points > 10


def opened(base: Path, home: Path) -> MemoryStore:
    return MemoryStore.of(
        Project.at(base / "p", home=home, environ={}, settings=DEFAULTS), now=time.time
    )


def test_a_file_that_nobody_can_read_is_named(memories: MemoryStore) -> None:
    (memories.beside.root / FENCES).write_text("{")
    with pytest.raises(StoreError, match="which jobs have landed") as found:
        enter(memories, fence(1))
    assert FENCES in found.value.where


def test_only_the_newest_jobs_are_remembered(memories: MemoryStore) -> None:
    jobs = {f"job-{n}": n for n in range(MAX_JOBS)}
    value = {"v": 1, "numbers": {"one": MAX_JOBS}, "jobs": jobs}
    (memories.beside.root / FENCES).write_text(json.dumps(value))
    with memories.folder.locked():
        record(memories, fence(MAX_JOBS, "job-new"))
    known = json.loads((memories.beside.root / FENCES).read_text())["jobs"]
    assert len(known) == MAX_JOBS
    assert not is_committed(memories, "job-0")
    assert is_committed(memories, "job-1")
    assert is_committed(memories, "job-new")
