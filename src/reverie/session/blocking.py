"""Sessions for code without an event loop of its own.

    with blocking.open(project, model="claude-opus-5-5") as s:
        s.add("Fix the failing test")
        reply = s.observe(my_client.send(s.prepare()))

A bridge and nothing more: every call is handed to the one `Session` in the one event loop
of a thread beside this one, and waited for. An interrupt in the waiting thread cancels the
work, waits until it has ended well, and then goes on as an interrupt.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from reverie.session.loop import run_turn
from reverie.session.opening import Head
from reverie.session.session import Session
from reverie.session.turn import Tools, TurnEnding, TurnResult
from reverie.transcript.request import MAIN, Request, Task
from reverie.transcript.view import View
from reverie.wire.given import Addable
from reverie.wire.replies import Observable
from reverie.world import Model, Reply

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


class BlockingSession:
    """A `Session`, call by call. Use `open`."""

    def __init__(self, portal: BlockingPortal, session: Session) -> None:
        self.portal = portal
        self.session = session

    @property
    def id(self) -> str:
        return self.session.id

    @property
    def view(self) -> View:
        return self.session.view

    def start(self, work: Callable[[], Awaitable[T]]) -> UnderWay[T]:
        """Start anything in the session's loop."""
        return UnderWay(self.portal, work)

    def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run anything in the session's loop, and wait for it."""
        return self.start(work).result()

    def add(self, *said: Addable) -> None:
        self.call(partial(self.session.add, *said))

    def prepare(self, task: Task = MAIN) -> Request:
        return self.call(partial(self.session.prepare, task))

    def observe(self, reply: Observable) -> Reply:
        return self.call(partial(self.session.observe, reply))

    def end_turn(self, outcome: TurnEnding = "completed") -> None:
        self.call(partial(self.session.end_turn, outcome))

    def rewind(self, to: str) -> None:
        self.call(partial(self.session.rewind, to))

    def set_head(self, head: Head, reason: str) -> None:
        self.call(partial(self.session.set_head, head, reason))

    def run_turn(
        self, model: Model, tools: Tools, said: str | Sequence[Addable], **options: Any
    ) -> TurnResult:
        """A whole turn; `options` are those of `reverie.session.loop.run_turn`."""
        return self.call(partial(run_turn, self.session, model, tools, said, **options))


@contextmanager
def open(project: str | Path = ".", **options: Any) -> Generator[BlockingSession]:  # noqa: A001
    """`Session.open` for a `with` statement."""
    with (
        start_blocking_portal("asyncio") as portal,
        portal.wrap_async_context_manager(Session.open(project, **options)) as session,
    ):
        yield BlockingSession(portal, session)
