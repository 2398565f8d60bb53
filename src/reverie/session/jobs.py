"""Background work that fails alone, never overlaps itself, and ends with its session.

It belongs to no caller's task: a session may be opened in one task, used in others and closed
in yet another. A session with nothing to do has no task.

One job of a name runs at a time. A request during a run is kept, only the newest, and
runs once after it. All jobs of a process share one limit. A job's error is said and
recorded, never thrown; on exit the session waits a bounded time, then cancels.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any, Protocol, TypeAlias

import anyio

from reverie.concurrency import alone
from reverie.observer import is_watched, tell
from reverie.world import Notice, Say

JobWork: TypeAlias = "Callable[[], Awaitable[None]]"
Failure: TypeAlias = "Callable[[str, str], None]"

LETTING_GO = 1.0
"""Seconds that cancelled work has to say how it ended."""
WAIT_SECONDS = 0.05
"""Between two looks whether another loop's work has ended."""


class ProcessLimit:
    """So much work at once in this process, whichever event loops it runs in."""

    def __init__(self, at_once: int) -> None:
        self._free = threading.BoundedSemaphore(at_once)

    async def __aenter__(self) -> None:
        while not self._free.acquire(blocking=False):  # noqa: ASYNC110 - other loops cannot set it
            await anyio.sleep(WAIT_SECONDS)

    async def __aexit__(self, *ended: object) -> None:
        self._free.release()


_limits: dict[int, ProcessLimit] = {}  # by process: a fork counts its own work


def process_limit(at_once: int) -> ProcessLimit:
    """The one limit for background work in this process; who asks first says how much."""
    return _limits.setdefault(os.getpid(), ProcessLimit(max(1, at_once)))


class StartsTasks(Protocol):
    """Where tasks are started: a task group, or `LoopTasks`."""

    def start_soon(self, func: Callable[[], Coroutine[Any, Any, Any]], /) -> object: ...


@dataclass(eq=False)
class _Task:
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    over: anyio.Event = field(default_factory=anyio.Event)
    handle: object = None  # an event loop holds its tasks weakly


class LoopTasks:
    """Tasks that live in the event loop itself, until they are done or `aclose` ends them.
    What they run may not raise."""

    def __init__(self) -> None:
        self._tasks: set[_Task] = set()
        self._closed = False

    def start_soon(self, func: Callable[[], Coroutine[Any, Any, Any]], /) -> None:
        if self._closed:
            raise RuntimeError("no task can be started in a session that is closed")
        task = _Task()
        self._tasks.add(task)
        task.handle = _start_task(partial(self._run, task, func))

    async def _run(self, task: _Task, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        try:
            with task.scope:
                await work()
        finally:
            self._tasks.discard(task)
            task.over.set()

    async def aclose(self) -> None:
        """Cancel what runs, and wait until all of it has ended."""
        self._closed = True
        for task in tuple(self._tasks):
            task.scope.cancel()
            await task.over.wait()


def _start_task(work: Callable[[], Any]) -> object:
    """A task of the event loop's own, outside every scope of the task that asks for it."""
    import asyncio

    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:  # pragma: no cover - trio is not among what the tests install
        trio: Any = import_module("trio")
        return trio.lowlevel.spawn_system_task(work, context=copy_context())
    return loop.create_task(work())


@dataclass
class _RunningJob:
    scope: anyio.CancelScope
    done: anyio.Event
    waiting: JobWork | None = None


class Jobs:
    """The background work of one session."""

    def __init__(
        self,
        tasks: StartsTasks,
        limit: AbstractAsyncContextManager[Any],
        say: Say,
        failed: Failure,
        *,
        now: Callable[[], float] = float,
        session: str = "",
    ) -> None:
        self._now, self._session = now, session
        self._tasks = tasks
        self._limit = limit
        self._say = say
        self._failed = failed
        self._running: dict[str, _RunningJob] = {}

    @property
    def running(self) -> tuple[str, ...]:
        return tuple(self._running)

    def start(self, name: str, work: JobWork) -> bool:
        """Run `work` in the background; False where it was kept for after the run under way."""
        under_way = self._running.get(name)
        if under_way is not None:
            under_way.waiting = work
            return False
        self._running[name] = _RunningJob(anyio.CancelScope(), anyio.Event())
        self._tasks.start_soon(partial(self._run, name, work))
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
        begun = self._now()
        _, error = await alone(work(), None)
        if is_watched():
            times = (begun, self._now())
            tell(lambda one: one.ran("job", name, self._session, times, error))
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
