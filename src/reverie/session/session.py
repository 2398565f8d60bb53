"""A session: one conversation, its layers, its background work.

What people use is `reverie.Session`, which opens one of these by its own arguments; the doors and
the agent open it here, by a `SessionWish`.

It never owns the loop. What is open twice is open once: a second opener is told who
holds the session, and may read it or go on in a copy of its own.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias

import anyio

import reverie
from reverie.alone import alone
from reverie.errors import InvalidInput, NotFound, PromptTooLong
from reverie.layers import session_memory
from reverie.layers.compaction import STOPPED, broken
from reverie.layers.dreaming import NAME as DREAM
from reverie.session.compaction import compacting
from reverie.session.dream.watch import DreamWatch
from reverie.session.fork import Fork, Parent
from reverie.session.jobs import Jobs, OwnTasks, process_limit
from reverie.session.library import BegunSession
from reverie.session.opening import Head, SessionParts, SessionWish, resumed_head
from reverie.session.turn import TurnEnding
from reverie.session.uncancelled import to_the_end
from reverie.transcript.records import Failed, Rewound, Started, TurnEnded
from reverie.transcript.tasks import MAIN, Task
from reverie.wire.reply import Addable, Observable, Reply
from reverie.wire.request import Request
from reverie.world import Notice

if TYPE_CHECKING:
    from reverie.session.recall.recall import Recall

P = ParamSpec("P")


def _starts(wish: Callable[P, SessionWish]) -> Callable[P, Awaitable[Session]]:
    async def start(*project: P.args, **options: P.kwargs) -> Session:
        """Start a session, or go on with one; the arguments are those of `SessionWish`."""
        return await Session.begun(wish(*project, **options))

    return start


def _opens(
    wish: Callable[P, SessionWish],
) -> Callable[P, AbstractAsyncContextManager[Session]]:
    @asynccontextmanager
    async def opened(*project: P.args, **options: P.kwargs) -> AsyncGenerator[Session]:
        """Start a session in a project, or go on with one (`resume=ID`), and close it."""
        session = await Session.begun(wish(*project, **options))
        try:
            yield session
        finally:
            await session.aclose()

    return opened


class Session(Parent):
    """An open session. Use `Session.open`, or `Session.start` and `aclose`."""

    def __init__(self, parts: SessionParts) -> None:
        super().__init__(parts.conversation)
        world = self.world
        self.id = parts.begun.id
        self.root = parts.root
        self.library = parts.library
        self.memories = parts.memories
        self.interactive = parts.interactive
        self.dreams = DreamWatch()
        ask = partial(compacting.ask_to_the_end, self)
        self.world = replace(world, fork=self.run_fork, wait=self._wait, ask=ask)
        self._summariser = parts.summariser
        self._holds_window = parts.holds_window
        self._tasks = OwnTasks()
        limit = process_limit(world.settings.background_processes)
        self.jobs = Jobs(
            self._tasks,
            limit,
            world.say,
            self._job_failed,
            now=world.clock.now,
            session=self.id,
        )
        self.recall = self._recall(parts)
        self._first_byte = anyio.Event()
        self._closed = False

    def _recall(self, parts: SessionParts) -> Recall | None:
        if parts.memories is None:
            return None
        from reverie.session.recall.recall import Recall

        return Recall.of(self, self._tasks, parts.cwd, selector=parts.selector)

    @staticmethod
    async def begun(wish: SessionWish) -> Session:
        """A session as it is wanted. Use and `aclose` it from any task."""
        parts = wish.parts()
        session: Session | None = None
        try:
            session = Session(parts)
            await session._begin(parts.begun, wish.head(session.world))
        except BaseException:
            if session is not None:
                session.close()
            else:
                parts.begun.log.close()
            raise
        if session.recall is not None:
            session.recall.warm()
        return session

    start = staticmethod(_starts(SessionWish))
    open = staticmethod(_opens(SessionWish))

    async def _begin(self, begun: BegunSession, head: Head) -> None:
        for fault in begun.transcript.faults:
            self.world.say(Notice("transcript", fault, "warning"))
        if self.view.started is None or begun.copied:
            root = str(self.root)
            policy = self.world.settings.context_policy
            version = reverie.__version__
            await self.append(Started(self.id, root, root, version, self.source, policy=policy))
        if broken(self.view, self.world):
            failures = self.view.compaction_failures
            self.world.say(Notice("compaction", STOPPED.format(failures=failures), "warning"))
        recorded = self.view.head
        if recorded is None:
            await self.append(head.record())
        else:
            changed = resumed_head(recorded, head)
            if changed is not None:
                self.world.say(Notice("transcript", f"resumed with another {changed.reason}"))
                await self.append(changed)

    async def aclose(self) -> None:
        """Wait a bounded time for background work, then close. A second time does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            with anyio.CancelScope(shield=True):
                await self._drained()
        finally:  # the event loop's own cancellation ends the waiting, and nothing else
            await to_the_end(self._let_go)

    async def _drained(self) -> None:
        if self.recall is not None:
            self.hand(*self.recall.ended())
        self.jobs.cancel(DREAM)  # nobody waits for one; the next session may dream again
        self._first_byte.set()  # to a request under way no answer comes any more: nobody waits
        left = await self.jobs.drain(self.world.settings.extract_drain_seconds)
        for name in left:
            self.world.say(Notice(name, "given up at exit; it may run again later", "warning"))

    async def _let_go(self) -> None:
        self._in_flight = False
        try:
            await self.flush()
            await self.sync()
        finally:
            async with self._lock:  # whoever is still writing has ended
                self.close()
            if self._summariser is not None:
                await self._summariser.aclose()
            await self._tasks.aclose()

    def close(self) -> None:
        """Give back the transcript's lock and every open folder."""
        super().close()
        self.library.close()
        if self.recall is not None:
            self.recall.close()
        if self.budget is not None:
            self.budget.close()

    def _job_failed(self, name: str, error: str) -> None:
        self.hand(Failed(name, error))

    async def _wait(self, name: str, seconds: float) -> bool:
        done = await self.jobs.wait(name, seconds)
        await self.flush()  # what it handed in reaches the next layer's view
        return done

    async def _consider(self, pieces: Sequence[tuple[str, Consider]]) -> None:
        """Let each piece of background work see whether it is due; one that fails, fails alone."""
        for name, consider in pieces:
            _, error = await alone(consider(self), None)
            if error:
                self.world.say(Notice(name, f"it could not be started: {error}", "warning"))
                self.hand(Failed(name, error))

    # --- turns

    async def end_turn(self, outcome: TurnEnding = "completed") -> None:
        """The turn is over: what was said is on the disk."""
        await self.settled()
        self._shortened = False
        if self.recall is not None:
            await self.append(*self.recall.ended())
        await self.append(TurnEnded(outcome))
        await self.sync()
        if outcome == "completed":
            await self._consider(AFTER_A_TURN)

    async def add(self, *said: Addable) -> None:
        """Something new for the model. What a user says begins a turn, and recall looks."""
        if self.recall is None:
            await super().add(*said)
            return
        from reverie.session.recall.select import begins_turn, spoken

        begins = begins_turn(self.view)
        await super().add(*said)
        text = spoken(self.view) if begins else ""
        if text:
            self.recall.begin(self.view.leaf, text)
        elif not begins:
            from reverie.session.recall.touched import touched

            self.recall.touch(self.view.leaf, touched(self.view))

    async def rewind(self, to: str) -> None:
        """Go back to behind a message; what came after stays in the transcript."""
        if self.view.entries.place(to) is None:
            raise NotFound("no such message in this session", where=to)
        await self.append_at(to, Rewound("asked for"))

    async def set_head(self, head: Head, reason: str) -> None:
        """Another system prompt, tool set or model: an announced change."""
        await self.append(head.record(reason))

    # --- compaction

    async def compact(self, instructions: str = "", **part: Any) -> compacting.Compacted:
        """Put a summary in the place of the conversation, or of a part of it; `part` as
        `compacting.compact` takes it: `from_`, `up_to`, `by_provider`."""
        if self._in_flight:
            raise InvalidInput("a request is on its way", do="Observe its answer first")
        return await compacting.compact(self, instructions, **part)

    async def settled(self) -> None:
        """No request is on its way any more; what was handed in is appended."""
        self._first_byte.set()
        await super().settled()

    # --- forks

    async def prepare(self, task: Task = MAIN) -> Request:
        self._first_byte.set()  # who waits for an answer that never came goes on
        self._first_byte = anyio.Event()
        if self.recall is not None:
            await self.flush()
            seconds = self.world.settings.selector_milliseconds / 1_000
            await self.append(*await self.recall.ready(seconds))
        try:
            return await super().prepare(task)
        except PromptTooLong as error:
            if self._shortened or not self._parts.before_a_request:
                raise
            return await self.too_long(error)

    def check(self, request: Request) -> None:
        """Refuse what no provider would take; where nobody else looks at it, also what is known
        to be too long."""
        super().check(request)
        if self._holds_window and request.tokens > self.world.window:
            raise PromptTooLong(
                "the conversation no longer fits the model's window",
                needed=request.tokens,
                allowed=self.world.window,
                where=self.world.model_name,
                do="Shorten what was added last, or choose a model with a larger window",
            )

    def responding(self) -> None:
        """The first byte of an answer is here: the prompt is in the provider's cache."""
        self._first_byte.set()

    async def observe(self, reply: Observable) -> Reply:
        found = await super().observe(reply)
        self._first_byte.set()
        await self._consider(AFTER_A_RESPONSE)
        return found

    async def fork(self, source: str) -> Fork:
        """A fork of the conversation, once its last request is in the provider's cache."""
        if self._in_flight and not self.view.is_fork:
            await self._first_byte.wait()
        return await super().fork(source)


# --- what runs unasked behind a conversation, and when: two tuples, and nowhere else

Consider: TypeAlias = "Callable[[Session], Awaitable[None]]"
"""Asks a piece of background work whether it is due. It answers at once, and does its work as one
of the session's jobs; one that raises fails alone."""


async def _note(session: Session) -> None:
    if not session_memory.due(session.view, session.world):
        return
    from reverie.session.notes import job

    await job.consider(session)


async def _extract(session: Session) -> None:
    if session.memories is None:
        return
    from reverie.session.extraction import run

    await run.consider(session)


async def _dream(session: Session) -> None:
    await session.dreams.consider(session)


AFTER_A_RESPONSE: tuple[tuple[str, Consider], ...] = (
    ("session_memory", _note),  # 3: notes, so that a summary is ready when it is needed
)
"""Asked by `observe`."""

AFTER_A_TURN: tuple[tuple[str, Consider], ...] = (
    ("extract_memories", _extract),  # 5: what is worth keeping, by a fork
    ("dream", _dream),  # 6: the memory is tidied, once a day at most
)
"""Asked by `end_turn`, where the turn was completed."""
