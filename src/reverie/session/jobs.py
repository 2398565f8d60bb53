"""Background work that fails alone, never overlaps itself, and ends with its session.

One job of a name runs at a time. A request during a run is kept, only the newest, and
runs once after it. All jobs of a process share one limit. A job's error is said and
recorded, never thrown; on exit the session waits a bounded time, then cancels.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

import anyio
from anyio import CapacityLimiter
from anyio.abc import TaskGroup
from anyio.lowlevel import RunVar

from reverie.alone import alone
from reverie.world import Notice, Say

JobWork: TypeAlias = "Callable[[], Awaitable[None]]"
Failure: TypeAlias = "Callable[[str, str], None]"

LETTING_GO = 1.0
"""Seconds that cancelled work has to say how it ended."""
_limits: RunVar[CapacityLimiter] = RunVar("reverie.background")


def process_limit(at_once: int) -> CapacityLimiter:
    """The one limit for background work in this process."""
    try:
        return _limits.get()
    except LookupError:
        limit = CapacityLimiter(max(1, at_once))
        _limits.set(limit)
        return limit


@dataclass
class _Running:
    scope: anyio.CancelScope
    done: anyio.Event
    waiting: JobWork | None = None


class Jobs:
    """The background work of one session."""

    def __init__(self, group: TaskGroup, limit: CapacityLimiter, say: Say, failed: Failure) -> None:
        self._group = group
        self._limit = limit
        self._say = say
        self._failed = failed
        self._running: dict[str, _Running] = {}

    @property
    def running(self) -> tuple[str, ...]:
        return tuple(self._running)

    def start(self, name: str, work: JobWork) -> bool:
        """Run `work` in the background; False where it was kept for after the run under way."""
        under_way = self._running.get(name)
        if under_way is not None:
            under_way.waiting = work
            return False
        self._running[name] = _Running(anyio.CancelScope(), anyio.Event())
        self._group.start_soon(self._run, name, work)
        return True

    async def _run(self, name: str, work: JobWork) -> None:
        running = self._running[name]
        try:
            with running.scope:
                todo: JobWork | None = work
                while todo is not None:
                    async with self._limit:
                        await self._once(name, todo)
                    todo, running.waiting = running.waiting, None
        finally:
            del self._running[name]
            running.done.set()

    async def _once(self, name: str, work: JobWork) -> None:
        _, error = await alone(work(), None)
        if error:
            self._say(Notice(name, f"background work stopped: {error}", "warning"))
            self._failed(name, error)

    async def wait(self, name: str, seconds: float) -> bool:
        """Wait for a run under way; False where it is not over by then."""
        running = self._running.get(name)
        if running is None:
            return True
        with anyio.move_on_after(seconds) as scope:
            await running.done.wait()
        return not scope.cancelled_caught

    def cancel(self, name: str) -> bool:
        """Stop one job; False where none of that name runs."""
        running = self._running.get(name)
        if running is None:
            return False
        running.waiting = None
        running.scope.cancel()
        return True

    async def drain(self, seconds: float) -> tuple[str, ...]:
        """Wait for all, at most so long; what is left is cancelled and named."""
        with anyio.move_on_after(seconds):
            while self._running:
                await next(iter(self._running.values())).done.wait()
        left = self.running
        for name in left:
            self.cancel(name)
        with anyio.move_on_after(LETTING_GO):  # what they leave behind is still recorded
            for running in list(self._running.values()):
                await running.done.wait()
        return left
