"""One agent and one terminal: the agent in a loop of its own, the terminal in this thread.

The terminal's thread reads and prints; nothing else does. What the agent has to show or
ask comes to it through one queue, and is shown as it comes, also while a person types.
Ctrl-C while a turn runs cancels the turn, waits until its end is recorded, and leaves the
program running; a request to terminate does the same and then leaves. Nothing here decides
what is shown: that is the screen's.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Awaitable, Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Protocol, TypeAlias, TypeVar

from anyio import to_thread
from anyio.from_thread import BlockingPortal, start_blocking_portal

from reverie.agent.agent import Agent, AgentOptions
from reverie.agent.builder import open_agent
from reverie.concurrency import UnderWay
from reverie.session.turn import TurnEvent, TurnResult
from reverie.tools import PermissionAnswer, Question, Registry
from reverie.world import Model, Notice

T = TypeVar("T")
GLANCE = 0.1  # seconds between two looks at what was typed during a turn
TERMINATED = 128 + signal.SIGTERM
LOOK = signal.SIGUSR1  # sent to ourselves: it interrupts the wait for a key, and nothing else


class Cancelled(Exception):
    """The user cancelled the turn; its end is recorded."""


class _Sign:
    """Something the pump is told that no screen shows."""


OVER, INTERRUPT, LEAVE = _Sign(), _Sign(), _Sign()
_Asked: TypeAlias = "tuple[Question, Future[PermissionAnswer]]"
_Item: TypeAlias = "TurnEvent | Notice | _Asked | _Sign"


class Screen(Protocol):
    """What a person or a program sees."""

    def event(self, event: TurnEvent) -> None: ...
    def notice(self, notice: Notice) -> None: ...
    def ask(self, question: Question) -> PermissionAnswer:
        """Ask a person; in the terminal's thread."""
        ...

    def read(self) -> str:
        """What a person types at the prompt."""
        ...

    def interject(self, show: Callable[[], None]) -> None:
        """Show something while a person types; what they typed stays."""
        ...

    def typed(self) -> str | None:
        """A line typed while a turn runs; None where there is none."""
        ...

    def idle(self, seconds: float, agents: Sequence[str] = ()) -> None:
        """A turn runs, and nothing has come for so long; a line for each agent at work."""
        ...

    @property
    def asks(self) -> bool: ...


class Desk:
    """An open agent, as the terminal's thread sees it."""

    agent: Agent
    _portal: BlockingPortal

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self._queue: SimpleQueue[_Item] = SimpleQueue()
        self._busy = False
        self._reading = False  # the person is at a prompt

    # --- called in the agent's loop

    def say(self, notice: Notice) -> None:
        self._queue.put(notice)
        if self._reading:
            signal.pthread_kill(threading.main_thread().ident or 0, LOOK)

    async def _ask(self, question: Question) -> PermissionAnswer:
        reply: Future[PermissionAnswer] = Future()
        self._queue.put((question, reply))
        return await to_thread.run_sync(reply.result, abandon_on_cancel=True)

    # --- called in the terminal's thread

    def read(self) -> str:
        """What the person types next; notices that come meanwhile are shown above it."""
        self._reading = True
        try:
            self.show_waiting()
            return self.screen.read()
        finally:
            self._reading = False

    @contextmanager
    def open(
        self, wanted: AgentOptions, model: Model, *, registry: Registry | None = None
    ) -> Generator[Desk]:
        """The desk with its agent; leaving closes the agent."""
        asker = self._ask if self.screen.asks else None
        opening = open_agent(wanted, model, registry=registry, asker=asker, say=self.say)
        close: Callable[[], Awaitable[None]] | None = getattr(model, "aclose", None)
        try:
            with self._signals(), start_blocking_portal("asyncio") as self._portal:
                try:
                    with self._portal.wrap_async_context_manager(opening) as self.agent:
                        self.show_waiting()
                        yield self
                finally:
                    if close is not None:
                        self.call(close)
        finally:
            self.show_waiting()

    def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Anything of the session's, run in its loop and waited for."""
        return UnderWay(self._portal, work).result()

    def turn(self, said: str) -> TurnResult:
        """One turn, shown as it goes. Raises Cancelled where the user ended it."""
        self._busy = True
        work = UnderWay(self._portal, partial(self.agent.turn, said, self._queue.put))
        work.when_over(partial(self._queue.put, OVER))
        sign = INTERRUPT
        try:
            sign = self._pump()
        finally:
            if sign is not OVER:
                work.cancel()
            work.wait()
            self._busy = False
        self.show_waiting()
        if sign is LEAVE:
            raise SystemExit(TERMINATED)
        if sign is INTERRUPT:
            raise Cancelled
        return work.result()

    def _pump(self) -> _Sign:
        """Show what comes until the turn is over or is to end."""
        while True:
            item = self._next()
            if isinstance(item, _Sign):
                return item
            try:
                self._show(item)
            except KeyboardInterrupt:
                return INTERRUPT

    def _next(self) -> _Item:
        if not self.screen.asks:
            return self._queue.get()
        quiet = 0.0
        while True:
            try:
                return self._queue.get(timeout=GLANCE)
            except Empty:
                quiet += GLANCE
                self.screen.idle(quiet, [one.live for one in self.agent.at_work])
                line = self.screen.typed()
                if line and line.strip():
                    self.agent.inbox.put(line)

    def _show(self, item: TurnEvent | Notice | _Asked) -> None:
        if isinstance(item, Notice):
            self.screen.notice(item)
        elif isinstance(item, tuple):
            self._answer(*item)
        else:
            self.screen.event(item)

    def _answer(self, question: Question, reply: Future[PermissionAnswer]) -> None:
        answer = PermissionAnswer(False, reason="the user did not answer")
        self._busy = False  # an interrupt ends the reading of a line
        try:
            answer = self.screen.ask(question)
        finally:
            self._busy = True
            reply.set_result(answer)

    def show_waiting(self) -> None:
        """What came while nobody looked."""
        while True:
            try:
                item = self._queue.get_nowait()
            except Empty:
                return
            if isinstance(item, tuple):
                item[1].set_result(PermissionAnswer(False, reason="the user ended the turn"))
            elif not isinstance(item, _Sign):
                self._show(item)

    # --- signals

    @contextmanager
    def _signals(self) -> Generator[None]:
        """Interrupts go to the turn while there is one."""

        def interrupted(number: int, frame: FrameType | None) -> None:
            del frame
            leave = number != signal.SIGINT
            if self._busy:
                self._queue.put(LEAVE if leave else INTERRUPT)
            elif leave:
                raise SystemExit(128 + number)
            else:
                raise KeyboardInterrupt

        def look(number: int, frame: FrameType | None) -> None:
            del number, frame
            if self._reading and not self._queue.empty():
                self.screen.interject(self.show_waiting)

        before = {n: signal.signal(n, interrupted) for n in (signal.SIGINT, signal.SIGTERM)}
        before[LOOK] = signal.signal(LOOK, look)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
