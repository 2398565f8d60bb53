"""Work of an event loop, for code that has none: started from another thread, and waited for.

An interrupt in the waiting thread cancels the work, waits until it has ended well, and then goes on
as an interrupt.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from anyio.from_thread import BlockingPortal

T = TypeVar("T")


class UnderWay(Generic[T]):
    """Work that runs in the session's loop while this thread does something else."""

    def __init__(self, portal: BlockingPortal, work: Callable[[], Awaitable[T]]) -> None:
        self._over = threading.Event()
        self._future: Future[T] = portal.start_task_soon(self._watched, work)

    async def _watched(self, work: Callable[[], Awaitable[T]]) -> T:
        try:
            return await work()
        finally:
            self._over.set()

    def cancel(self) -> None:
        """Ask it to end; it may still have to tidy up."""
        self._future.cancel()

    def when_over(self, tell: Callable[[], None]) -> None:
        self._future.add_done_callback(lambda _: tell())

    def wait(self) -> None:
        """Wait until it has ended, in whatever way."""
        self._over.wait()

    def result(self) -> T:
        """What it gives, or what it raised. An interrupt cancels it first."""
        try:
            return self._future.result()
        except BaseException:
            self.cancel()
            self.wait()
            raise
