"""Background work: one at a time, newest kept, bounded, fails alone."""

from __future__ import annotations

import threading

import anyio
import pytest

from reverie.session import Jobs, ProcessLimit, process_limit
from reverie.world import Notice

pytestmark = pytest.mark.spec("B18.jobs")


class Record:
    def __init__(self) -> None:
        self.said: list[Notice] = []
        self.failed: list[tuple[str, str]] = []
        self.done: list[str] = []


async def jobs_in(group, record: Record, at_once: int = 4) -> Jobs:
    limit = anyio.CapacityLimiter(at_once)
    return Jobs(group, limit, record.said.append, lambda n, e: record.failed.append((n, e)))


async def test_only_the_newest_waits_and_runs_once():
    record, gate = Record(), anyio.Event()

    def work(name: str):
        async def run() -> None:
            await gate.wait()
            record.done.append(name)

        return run

    async with anyio.create_task_group() as group:
        jobs = await jobs_in(group, record)
        assert jobs.start("notes", work("first"))
        await anyio.wait_all_tasks_blocked()
        assert [jobs.start("notes", work(n)) for n in ("second", "third", "fourth")] == [False] * 3
        gate.set()
        assert await jobs.drain(5) == ()
    assert record.done == ["first", "fourth"]


async def test_a_failure_is_said_and_kept_to_itself():
    record = Record()

    async def broken() -> None:
        raise ValueError("boom")

    async def fine() -> None:
        record.done.append("fine")

    async with anyio.create_task_group() as group:
        jobs = await jobs_in(group, record)
        jobs.start("a", broken)
        jobs.start("b", fine)
        await jobs.drain(5)
        jobs.start("a", fine)
        await jobs.drain(5)
    assert record.failed == [("a", "ValueError: boom")]
    assert record.done == ["fine", "fine"]


async def test_a_kept_request_runs_after_a_failure():
    record, gate = Record(), anyio.Event()

    async def broken() -> None:
        await gate.wait()
        raise ValueError("boom")

    async def after() -> None:
        record.done.append("after")

    async with anyio.create_task_group() as group:
        jobs = await jobs_in(group, record)
        jobs.start("a", broken)
        await anyio.wait_all_tasks_blocked()
        jobs.start("a", after)
        gate.set()
        await jobs.drain(5)
    assert record.done == ["after"]


async def test_draining_is_bounded_and_names_what_it_gave_up():
    record = Record()

    async with anyio.create_task_group() as group:
        jobs = await jobs_in(group, record)
        jobs.start("endless", anyio.sleep_forever)
        assert await jobs.drain(0.01) == ("endless",)
    assert record.failed == []


async def test_one_limit_for_all():
    record, running, most = Record(), 0, 0

    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.lowlevel.checkpoint()
        running -= 1
        record.done.append("x")

    async with anyio.create_task_group() as group:
        jobs = await jobs_in(group, record, at_once=2)
        for n in range(9):
            jobs.start(f"job{n}", work)
        await jobs.drain(5)
    assert (len(record.done), most) == (9, 2)


async def test_sessions_of_a_process_share_the_limit():
    assert process_limit(4) is process_limit(9)


def test_event_loops_of_a_process_share_the_limit():
    limit, inside, most = ProcessLimit(2), 0, 0

    async def work() -> None:
        nonlocal inside, most
        async with limit:
            inside += 1
            most = max(most, inside)
            await anyio.sleep(0.02)
            inside -= 1

    threads = [threading.Thread(target=anyio.run, args=(work,)) for _ in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(20)
    assert (inside, most) == (0, 2)


async def test_cancel_stops_one_and_drops_what_waited():
    record = Record()

    async def never() -> None:
        record.done.append("never")

    async with anyio.create_task_group() as group:
        jobs = await jobs_in(group, record)
        jobs.start("a", anyio.sleep_forever)
        await anyio.wait_all_tasks_blocked()
        jobs.start("a", never)
        assert jobs.cancel("a")
        assert not jobs.cancel("b")
        assert await jobs.wait("a", 5)
        assert jobs.running == ()
    assert record.done == []
