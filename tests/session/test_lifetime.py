"""A session is opened, used and closed from any task, and costs little while it is idle."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import tracemalloc
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from reverie.errors import InvalidMessage, NotFound
from reverie.session import Session, SessionLibrary, open_session, start_session
from reverie.settings import DEFAULTS
from reverie.store import MemoryStore, Project, canonical_root
from reverie.testing import ManualClock, ScriptedModel, reply

pytestmark = pytest.mark.spec("B18.lifetime")
KILOBYTES = 300
DESCRIPTORS = 1


async def started(home: Path, project: Path, **parts: Any) -> Session:
    os.makedirs(project, exist_ok=True)
    known: dict[str, Any] = {"model": ScriptedModel(["Done."] * 9), "clock": ManualClock()}
    known |= {"home": home, "environ": {"HOME": str(home.parent)}, "system": "You help."}
    return await start_session(project, **{**known, **parts})


async def elsewhere(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """In a task of its own."""
    return await asyncio.create_task(work())


async def a_turn(s: Session) -> None:
    await s.add("Where does this project keep track of its bugs?")
    await s.prepare()
    await s.observe(reply("Hello."))
    await s.end_turn()


async def test_opened_used_and_closed_in_three_tasks(home: Path, tmp_path: Path):
    s = await elsewhere(lambda: started(home, tmp_path / "work"))
    ran = anyio.Event()

    async def job() -> None:
        ran.set()

    async def used() -> None:
        await a_turn(s)
        s.jobs.start("job", job)
        await s.jobs.wait("job", 5)

    await elsewhere(used)
    await elsewhere(s.aclose)
    assert ran.is_set()
    again = await started(home, tmp_path / "work", resume=s.id)
    assert again.view.turns == 1
    await again.aclose()


async def test_a_job_outlives_the_task_that_started_it_and_ends_with_the_session(
    home: Path, tmp_path: Path
):
    settings = replace(DEFAULTS, extract_drain_seconds=0)
    s = await started(home, tmp_path / "work", settings=settings)
    began, ended = anyio.Event(), anyio.Event()

    async def job() -> None:
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    async def begin() -> None:
        s.jobs.start("job", job)

    await elsewhere(begin)
    await began.wait()
    assert s.jobs.running == ("job",)
    await s.aclose()
    assert ended.is_set()
    assert s.jobs.running == ()


async def test_closing_twice_does_nothing_more(home: Path, tmp_path: Path):
    s = await started(home, tmp_path / "work")
    await s.aclose()
    other = await started(home, tmp_path / "work", resume=s.id)
    await s.aclose()
    await a_turn(other)  # its lock is its own
    await other.aclose()


async def test_opened_within_a_time_limit(home: Path, tmp_path: Path):
    s = await asyncio.wait_for(started(home, tmp_path / "work"), 30)
    await asyncio.wait_for(a_turn(s), 30)
    await asyncio.wait_for(s.aclose(), 30)


async def test_closed_in_the_order_they_were_opened(home: Path, tmp_path: Path):
    first, second = [await started(home, tmp_path / "work") for _ in range(2)]
    for s in (first, second):
        s.jobs.start("job", anyio.sleep_forever)
        s.jobs.cancel("job")
    await first.aclose()
    await a_turn(second)
    await second.aclose()


async def test_a_callers_error_comes_out_as_it_is(home: Path, tmp_path: Path):
    (tmp_path / "work").mkdir()

    async def failing() -> None:
        async with open_session(tmp_path / "work", home=home, environ={}) as s:
            s.jobs.start("job", anyio.sleep_forever)
            s.jobs.cancel("job")
            raise NotFound("mine")

    with pytest.raises(NotFound, match="mine"):
        await failing()


async def test_one_that_is_cancelled_while_it_opens_leaves_no_lock(home: Path, tmp_path: Path):
    s = await started(home, tmp_path / "work")
    await s.aclose()
    for turns in range(12):
        task = asyncio.create_task(started(home, tmp_path / "work", resume=s.id))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await (await task).aclose()
        again = await started(home, tmp_path / "work", resume=s.id)
        await again.aclose()


async def test_a_head_that_cannot_be_recorded_leaves_no_lock(home: Path, tmp_path: Path):
    with pytest.raises(InvalidMessage):
        await started(home, tmp_path / "work", tools=[{"name": object()}])
    library = SessionLibrary.of(Project.at(tmp_path / "work", home=home, environ={}))
    (only,) = library.sessions()
    library.remove(only.id)


# --- idle


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are not to be seen")
@pytest.mark.parametrize("remembers", [False, True], ids=["plain", "with memories"])
async def test_an_idle_session_holds_one_descriptor_and_little_memory(
    home: Path, tmp_path: Path, scale: Any, *, remembers: bool
):
    clock, count = ManualClock(), scale.pick(80, 1_000)

    async def idle(n: int) -> tuple[Session, MemoryStore | None]:
        project = tmp_path / f"work{n % 10}"
        os.makedirs(project, exist_ok=True)
        memories = None
        if remembers:
            root = canonical_root(project)
            memories = MemoryStore.of(
                Project.at(root, home=home, environ={}, settings=DEFAULTS), now=clock.now
            )
        s = await started(home, project, memories=memories, clock=clock)
        await a_turn(s)
        return s, memories

    others = asyncio.all_tasks()

    async def at_rest() -> None:
        working = asyncio.all_tasks() - others
        if working:
            await asyncio.wait(working)

    kept = [await idle(n) for n in range(10)]  # what a process has once
    await at_rest()
    gc.collect()
    files = _descriptors()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        more = [await idle(n) for n in range(count)]
        await at_rest()
        gc.collect()
        each = (tracemalloc.get_traced_memory()[0] - before) / count
    finally:
        tracemalloc.stop()
    opened = (_descriptors() - files) / count
    assert opened <= DESCRIPTORS
    assert each <= KILOBYTES * 1_000
    assert asyncio.all_tasks() == others
    for s, memories in (*kept, *more):
        await s.aclose()
        if memories is not None:
            memories.close()
    assert _descriptors() <= files
