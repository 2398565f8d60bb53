"""One agent and one terminal; offers.

One agent and one terminal: the agent in a loop of its own, the terminal in this thread.

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
from reverie.apps.cli.recall import by_user
from reverie.concurrency import BackgroundCall
from reverie.memory.check import set_level
from reverie.session.rules import ProjectRules
from reverie.session.turn import TurnEvent, TurnResult
from reverie.store.memory_store import MemoryStore
from reverie.store.rules_ledger import DECLINED, RuleSuggestion, offers
from reverie.toolbox.permissions import PermissionAnswer, Question
from reverie.toolbox.tool import Registry
from reverie.world import Model, Notice

T = TypeVar("T")
GLANCE = 0.1  # seconds between two looks at what was typed during a turn
TERMINATED = 128 + signal.SIGTERM
LOOK = signal.SIGUSR1  # sent to ourselves: it interrupts the wait for a key, and nothing else


class TurnCancelled(Exception):
    """The user cancelled the turn; its end is recorded."""


class _ControlMessage:
    """Something the pump is told that no screen shows."""


OVER, INTERRUPT, LEAVE = _ControlMessage(), _ControlMessage(), _ControlMessage()
_Asked: TypeAlias = "tuple[Question, Future[PermissionAnswer]]"
_Item: TypeAlias = "TurnEvent | Notice | _Asked | _ControlMessage"


class TurnDisplay(Protocol):
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


class ChatController:
    """An open agent, as the terminal's thread sees it."""

    agent: Agent
    _portal: BlockingPortal

    def __init__(self, screen: TurnDisplay) -> None:
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
    ) -> Generator[ChatController]:
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
        return BackgroundCall(self._portal, work).result()

    def turn(self, said: str) -> TurnResult:
        """One turn, shown as it goes. Raises Cancelled where the user ended it."""
        self._busy = True
        work = BackgroundCall(self._portal, partial(self.agent.turn, said, self._queue.put))
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
            raise TurnCancelled
        return work.result()

    def _pump(self) -> _ControlMessage:
        """Show what comes until the turn is over or is to end."""
        while True:
            item = self._next()
            if isinstance(item, _ControlMessage):
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
            elif not isinstance(item, _ControlMessage):
                self._show(item)

    # --- signals

    @contextmanager
    def _signals(self) -> Generator[None]:
        """Interrupts go to the turn while there is one."""

        def on_signal(number: int, frame: FrameType | None) -> None:
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

        before = {n: signal.signal(n, on_signal) for n in (signal.SIGINT, signal.SIGTERM)}
        before[LOOK] = signal.signal(LOOK, look)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


# --- Asking, between two turns, whether a rule that had to be said too often may do more.
#
# A rule is asked about once a session; a no is kept, and then it is not asked about again.


class InteractiveScreen(Protocol):
    """A screen with a person before it."""

    def line(self, text: str, style: str = "") -> None: ...
    def confirm(self, question: str) -> bool | str: ...


class RuleSuggestions:
    """What was asked in one session."""

    def __init__(self, screen: InteractiveScreen) -> None:
        self._screen = screen
        self._asked: set[str] = set()

    def ask(self, desk: ChatController) -> None:
        """One question, where there is one to ask."""
        agent = desk.agent
        rules, memories = agent.rules, agent.memories
        if rules is None or memories is None or not agent.session.world.flags.get("rules"):
            return
        waiting = desk.call(lambda: to_thread.run_sync(_waiting, rules))
        offer = next((one for one in waiting if one.file not in self._asked), None)
        if offer is None:
            return
        self._asked.add(offer.file)
        wanted = self._screen.confirm(offer.question)
        if isinstance(wanted, str):
            if wanted:  # typed ahead: it is for the agent
                agent.inbox.put(wanted)
            return
        now = agent.session.world.clock.now()
        done = (
            partial(_raise_level, memories) if wanted else partial(_decline_offer, rules, now=now)
        )
        self._screen.line(desk.call(lambda: to_thread.run_sync(done, offer)), "dim")


def _waiting(rules: ProjectRules) -> list[RuleSuggestion]:
    book = rules.store.book()
    if not any(offers(book.rules, {})):  # most turns: the ledger is not read
        return []
    return offers(book.rules, rules.store.counts())


def _raise_level(memories: MemoryStore, offer: RuleSuggestion) -> str:
    set_level(memories, offer.file, offer.level, by_user("edit", "the level of a rule"))
    return (
        f"{offer.file}: {offer.level}. `reverie memory rules level {offer.file} remind` undoes it"
    )


def _decline_offer(rules: ProjectRules, offer: RuleSuggestion, *, now: float) -> str:
    rules.store.count([(offer.file, DECLINED)], now)
    return f"{offer.file} stays as it is: `reverie memory rules level` changes it at any time"
