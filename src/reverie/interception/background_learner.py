"""Memory behind wrapped clients: the engine of the proxy, in an event loop beside the caller's.

One loop serves a process. It ends with the main thread, after what is under way is finished.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from reverie.concurrency import LoopThread
from reverie.interception.decisions import OutgoingRequest
from reverie.interception.engine import EngineOptions, InterceptionEngine
from reverie.interception.mirror import MirrorOptions
from reverie.memory.memory import Memory
from reverie.models import BackgroundModel
from reverie.session.open_memory import OpenMemory
from reverie.wire.reply import Reply
from reverie.world import Say

if TYPE_CHECKING:
    from reverie.wire.lists import Format

DRAIN_SECONDS = 30.0
ALWAYS = 1 << 60
"""Characters of a result that stays: here results are fitted in the list itself."""


class LearnerLoop(LoopThread):
    """The loop of wrapped clients; it ends with the main thread."""

    def __init__(self) -> None:
        super().__init__("reverie")
        self.loop.set_default_executor(ThreadPoolExecutor(thread_name_prefix="reverie"))
        self.open: set[BackgroundLearner] = set()
        _before_the_end(self._end)

    def _end(self) -> None:
        if self not in _beside:  # a child that was forked has the callback, but not the thread
            return
        try:
            for learning in list(self.open):
                learning.close()
        finally:  # whatever it was that failed: a process must be able to end
            self.stop()


def _before_the_end(work: Callable[[], None]) -> None:
    """Call this when the main thread ends. `atexit` is too late: Python waits for our thread before
    that, and pools of threads take no work by then. So it goes where they have themselves called,
    and is called first, being registered later."""
    register = cast("Callable[[Callable[[], None]], None]", vars(threading)["_register_atexit"])
    register(work)


_beginning = threading.Lock()
_beside: list[LearnerLoop] = []


def _begin_anew() -> None:
    """A child that was forked has neither the thread, nor anybody who would give back the lock."""
    global _beginning  # noqa: PLW0603 - a fork has its own
    _beginning = threading.Lock()
    _beside.clear()


os.register_at_fork(after_in_child=_begin_anew)


def beside() -> LearnerLoop:
    """The loop of this process; begun when it is first needed."""
    with _beginning:
        if not _beside:
            _beside.append(LearnerLoop())
        return _beside[0]


class BackgroundLearner:
    """One memory, behind the conversations of a wrapped client."""

    def __init__(self, memory: Memory, say: Say, *, learns: bool) -> None:
        self._loop = beside()
        self._going: set[Future[Any]] = set()
        self._rest: set[Future[Any]] = set()
        self._resting = threading.Lock()
        self._closed = False
        self._engine = self._loop.start(_engine(memory, say, learns=learns)).result()
        self._loop.open.add(self)

    def asked(self, form: Format, headers: Mapping[str, str], data: bytes) -> OutgoingRequest:
        """A request, with what memory says to it."""
        return self._loop.start(self._engine.outgoing(form, headers, data)).result()

    def answered(self, out: OutgoingRequest, reply: Reply | None) -> None:
        """The answer; it is taken in beside the caller."""
        going = self._loop.start(self._engine.answered(out, reply))
        self._going.add(going)
        going.add_done_callback(self._going.discard)
        if reply is not None:
            going.add_done_callback(lambda _: self._rests(out))

    def _rests(self, out: OutgoingRequest) -> None:
        """Wait whether the caller goes on; not behind the end, which ends every turn itself."""
        with self._resting:
            if self._closed:
                return
            self._rest.add(rest := self._loop.start(self._engine.rested(out)))
        rest.add_done_callback(self._rest.discard)

    def settle(self) -> None:
        """Wait for what is being taken in."""
        wait(list(self._going), DRAIN_SECONDS)

    def close(self) -> None:
        self._loop.open.discard(self)
        with self._resting:
            self._closed = True
        self.settle()
        for rest in list(self._rest):
            rest.cancel()
        self._loop.start(self._engine.aclose()).result(DRAIN_SECONDS)


async def _engine(memory: Memory, say: Say, *, learns: bool) -> InterceptionEngine:
    project = memory.__project__
    project = replace(project, cwd=project.root)
    folder = str(project.root)
    shadows = MirrorOptions(
        project,
        BackgroundModel,
        say,
        memory=not project.settings.memory_off(),
        learns=learns,
        is_alone=True,
        memories=lambda _: OpenMemory.of(project, say=say).store,
    )
    project.claim()
    return InterceptionEngine(
        EngineOptions(shadows, characters=ALWAYS, scope=f"{folder}\0", folder=folder)
    )
