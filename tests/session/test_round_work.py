"""What a round of a live session does beside its own work: counted, never timed."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import reverie
from reverie.testing import call, reply
from reverie.transcript import Extracted, ForkEnded
from reverie.wire import tool_result

pytestmark = [pytest.mark.spec("13.round"), pytest.mark.anyio]
ROUNDS = 60


class CountingPool(ThreadPoolExecutor):
    """Where an event loop sends what it does not wait for."""

    sent = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.sent += 1
        return super().submit(fn, *args, **kwargs)


@pytest.fixture
def pool() -> CountingPool:
    return CountingPool(4)


async def test_a_round_waits_for_the_disk_once_however_long_the_session_is(
    tmp_path: Path, pool: CountingPool
) -> None:
    asyncio.get_running_loop().set_default_executor(pool)
    each: list[int] = []
    async with reverie.Session.open(tmp_path, model="m", home=tmp_path / "home") as session:
        await session.add("Look at all of it, one file after the other, please.")
        for n in range(ROUNDS):
            before = pool.sent
            await session.prepare()
            await session.observe(reply(call("Read", f"t{n}", file_path=f"{n}.py")))
            await session.add(tool_result(f"t{n}", f"line {n}\n" * 100))
            each.append(pool.sent - before)
        await session.prepare()
        await session.observe(reply("Done."))
    assert set(each) == {1}


async def test_rules_that_find_nothing_make_no_fork(tmp_path: Path) -> None:
    memory = reverie.Memory(tmp_path / "work", home=tmp_path / "home")
    async with reverie.Session.open(memory=memory, model="m") as session:
        for n in range(4):
            await session.add(f"What does the function number {n} in that file do?")
            await session.prepare()
            await session.observe(reply("It adds two numbers."))
            await session.end_turn()
            assert await session.jobs.wait("extract_memories", 30)
            await session.flush()
        records = [entry.record for entry in session.view.entries]
        assert sum(isinstance(one, Extracted) for one in records) == 4
        assert not any(isinstance(one, ForkEnded) for one in records)
        await session.add("From now on always run the linter before you commit.")
        await session.prepare()
        await session.observe(reply("I will."))
        await session.end_turn()
        assert await session.jobs.wait("extract_memories", 30)
        await session.flush()
        assert any(isinstance(entry.record, ForkEnded) for entry in session.view.entries)
        assert session.view.extracted is not None
        assert session.view.extracted.written
