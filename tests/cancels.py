"""Cancellation on purpose, by the event loop itself: at the Nth point where work waits.

    hit = await cancelled_at(lambda: session.add("x"), 3)

`task.cancel()` is what `asyncio.wait_for` and a caller's own code use; a scope that shields from
anyio's cancellation does not keep it out. A loop over n that ends where it was not in time has been
through every point where the work waits. `hops` lets so many turns of the loop pass first, so
that a thread may be anywhere in what it does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Literal

from tests.tally import counted

Hit = Literal["", "late", "in time"]


class _Watched:
    """A coroutine, step by step; at one of its waits the task that runs it is cancelled."""

    def __init__(self, work: Coroutine[Any, Any, Any], at: int, hops: int) -> None:
        self._work = work
        self._at = at
        self._hops = hops
        self.hit = False
        self.came = False
        """Whether the work was still there when the cancellation came."""

    def __await__(self) -> Generator[Any, Any, Any]:
        waits, sent, raised = 0, None, None
        while True:
            try:
                waited = self._work.throw(raised) if raised else self._work.send(sent)
            except StopIteration as end:
                return end.value
            sent, raised = None, None
            waits += 1
            if waits == self._at:
                self.hit = True
                self._cancel(asyncio.current_task(), self._hops)
            try:
                sent = yield waited
            except BaseException as error:  # noqa: BLE001 - handed on to the work, as a task does
                raised = error

    def _cancel(self, task: asyncio.Task[Any] | None, hops: int) -> None:
        if task is None:
            return
        if hops:
            asyncio.get_running_loop().call_soon(self._cancel, task, hops - 1)
        else:
            self.came = task.cancel()


async def cancelled_at(
    work: Callable[[], Awaitable[Any]], at: int, hops: int = 0, *, drawn: bool = False
) -> Hit:
    """Run work in a task of its own that is cancelled at its wait number `at`; nothing where it
    waits less often. What it raises besides the cancellation is raised here. One that came too
    late, because the work had ended, is not counted."""
    watched = _Watched(_as_coroutine(work), at, hops)

    async def run() -> None:
        await watched

    task = asyncio.ensure_future(run())
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
    counted("native cancels", int(watched.came), drawn=drawn)
    return "in time" if watched.came else "late" if watched.hit else ""


async def _as_coroutine(work: Callable[[], Awaitable[Any]]) -> Any:
    return await work()
