"""The watcher: one push when a folder has come to rest, patience with a server that is away."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from reverie.session import QUIET_SECONDS, keep_pushing, watch_changes
from reverie.team import Offline, Permanent, SyncReport
from reverie.world import Notice

pytestmark = [pytest.mark.spec("11.watch")]


async def times(count: int) -> AsyncIterator[None]:
    for _ in range(count):
        yield


@pytest.mark.integration
async def test_row_40_a_storm_of_writes_is_one_event(tmp_path: Path) -> None:
    """Ten thousand writes, an editor's rename, files that come and go: one event in the end."""
    pytest.importorskip("watchfiles", reason="needs watchfiles: not installed")
    stop, first = anyio.Event(), anyio.Event()
    seen = 0

    async def count() -> None:
        nonlocal seen
        async for _ in watch_changes(tmp_path, stop):
            seen += 1
            first.set()

    async with anyio.create_task_group() as group:
        group.start_soon(count)
        await anyio.sleep(0.5)  # until the watch stands
        with anyio.move_on_after(1.5):  # a storm that is over before the folder is at rest
            for n in range(10_000):
                (tmp_path / f"f{n % 50}.md").write_text(str(n))
                if n % 500 == 0:
                    (tmp_path / "edit.tmp").write_text("x")
                    os.replace(tmp_path / "edit.tmp", tmp_path / "edited.md")
                    await anyio.lowlevel.checkpoint()
        with anyio.fail_after(30):
            await first.wait()
        await anyio.sleep(QUIET_SECONDS * 1.5)
        stop.set()
    assert seen == 1


async def test_a_server_that_is_away_is_tried_again_less_often() -> None:
    waits: list[float] = []
    answers: list[Exception | SyncReport] = [
        Offline("away"),
        Offline("away", after=100.0),
        Offline("away"),
        SyncReport(pushed=["a.md"]),
    ]
    said: list[Notice] = []

    async def push() -> SyncReport:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    await keep_pushing(times(1), push, said.append, sleep=sleep)
    assert waits == [15.0, 100.0, 60.0]
    assert [notice.level for notice in said] == ["warning", "info"]


async def test_what_stays_wrong_is_not_tried_until_something_changes() -> None:
    tries = 0
    said: list[Notice] = []

    async def push() -> SyncReport:
        nonlocal tries
        tries += 1
        raise Permanent("no token")

    await keep_pushing(times(2), push, said.append)
    assert tries == 2
    assert "no token" in said[0].text


async def test_a_file_that_is_not_shared_is_told_once_with_the_reason() -> None:
    said: list[Notice] = []

    async def push() -> SyncReport:
        return SyncReport(blocked={"key.md": "it looks as if this held a secret"})

    told: set[str] = set()
    await keep_pushing(times(3), push, said.append, told=told)
    assert [one.text for one in said] == [
        "key.md is not shared, since it looks as if this held a secret"
    ]
    assert told == {"key.md"}
