"""A conversation with work behind it: recall at a turn's start, jobs after answers and turns.

It never owns the loop, and belongs to no caller's task. `Session` is one; background work is given
one, and asks it for no more than stands here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio

import reverie
from reverie.concurrency import OpenState, alone, to_the_end
from reverie.errors import InvalidInput, PromptTooLong
from reverie.layers.compaction import STOPPED, is_breaker_open
from reverie.layers.session_memory.compaction import due
from reverie.session import compaction
from reverie.session.conversation import NoLog
from reverie.session.jobs import Jobs, LoopTasks, process_limit
from reverie.session.options import Begun, resumed_head
from reverie.session.turn import TurnEnding
from reverie.session.worker import Fork, ForkParent
from reverie.transcript.records import Failed, Started, TurnEnded
from reverie.transcript.tasks import MAIN, Task
from reverie.wire.reply import Addable, Observable, Reply
from reverie.wire.request import Request
from reverie.world import Notice

if TYPE_CHECKING:
    from reverie.session.dream.schedule import DreamSchedule
    from reverie.session.recall.recall import Recall

DREAM = "dream"


class JobContext(ForkParent):
    """A conversation that is open, and the background work of its session."""

    def __init__(self, begun: Begun) -> None:
        options, transcript, world = begun.options, begun.transcript, begun.world
        session, library = transcript.id, begun.library
        super().__init__(
            transcript.log,
            transcript.disk,
            transcript.transcript.view,
            world,
            when_added=options.when_added,
            before_a_request=options.before_a_request,
            new_id=options.new_id,
            budget=begun.budget,
            guards=options.guards,
            agent_log=_no_log if options.private else partial(library.agent_log, session),
            home=None if options.private else begun.project.home,
        )
        self.options = options
        self.project = begun.project
        self.root = begun.project.root
        self.library = library
        self.memories = None if options.private else options.memories
        self.interactive = options.interactive
        ask = partial(compaction.ask_to_the_end, self)
        self.world = replace(world, fork=self.run_fork, wait=self._wait, ask=ask)
        self._session = session
        self._summariser = begun.summariser
        self._tasks = LoopTasks()
        limit = process_limit(world.settings.background_processes)
        self.jobs = Jobs(
            self._tasks,
            limit,
            world.say,
            self._job_failed,
            now=world.clock.now,
            session=session,
        )
        self.recall = self._recall()
        self._first_byte = anyio.Event()
        self.holding = OpenState("session", session)
        self._is_drained = False

    @property
    def id(self) -> str:
        return self._session

    @cached_property
    def dreams(self) -> DreamSchedule:
        """What it knows of its dreams."""
        from reverie.session.dream.schedule import DreamSchedule

        return DreamSchedule()

    def _recall(self) -> Recall | None:
        if self.memories is None:
            return None
        from reverie.session.recall.recall import Recall

        selector = self.options.selector
        return Recall.of(self, self._tasks, self.project.cwd, selector=selector)

    async def begin(self, begun: Begun) -> None:
        """Record how the session begins, or what is another since it was recorded."""
        if self.recall is not None:
            self.recall.warm()
        for fault in begun.transcript.transcript.faults:
            self.world.say(Notice("transcript", fault, "warning"))
        if self.view.started is None or begun.transcript.copied:
            root = str(self.root)
            policy = self.world.settings.context_policy
            version = reverie.__version__
            await self.append(Started(self.id, root, root, version, self.source, policy=policy))
        if is_breaker_open(self.view, self.world):
            failures = self.view.compaction_failures
            self.world.say(Notice("compaction", STOPPED.format(failures=failures), "warning"))
        recorded, head = self.view.head, self.options.head(self.world)
        if recorded is None:
            await self.append(head.record())
        else:
            changed = resumed_head(recorded, head)
            if changed is not None:
                self.world.say(Notice("transcript", f"resumed with another {changed.reason}"))
                await self.append(changed)

    # --- its end

    async def drain(self) -> None:
        """Wait a bounded time for background work, then close. A second time does nothing."""
        if self._is_drained:
            return
        self._is_drained = True
        try:
            with anyio.CancelScope(shield=True):
                await self._drained()
        finally:  # the event loop's own cancellation ends the waiting, and nothing else
            await to_the_end(self._let_go)

    async def _drained(self) -> None:
        if self.recall is not None:
            self.hand(*self.recall.ended())
        self.jobs.cancel(DREAM)  # nobody waits for one; the next session may dream again
        await alone(self.settled(), None)  # no answer comes any more to a request under way
        await self._consider(AT_THE_END)
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

    # --- work behind it

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

    def when_idle(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do something after a pause that nobody speaks in, while the cache is still warm."""
        leaf = self.view.leaf

        async def wait() -> None:
            await anyio.sleep(self.world.settings.extract_idle_seconds)
            if self.view.leaf == leaf:
                await alone(work(), None)

        self._tasks.start_soon(wait)

    # --- a turn

    async def add_messages(self, *said: Addable) -> None:
        """Something new for the model. What a user says begins a turn, and recall looks."""
        if self.recall is None:
            await super().add_messages(*said)
            return
        from reverie.session.recall.selection import begins_turn, latest_user_text

        begins = begins_turn(self.view)
        await super().add_messages(*said)
        text = latest_user_text(self.view) if begins else ""
        if text:
            self.recall.begin(self.view.leaf, text)
        elif not begins:
            self._look_for_calls()

    def _look_for_calls(self) -> None:
        """Let recall look for what the last answer's calls touch, and for errors of theirs."""
        from reverie.session.recall.query import read_last_round

        if self.recall is not None:
            self.recall.touch(self.view.leaf, read_last_round(self.view))

    async def render_request(self, task: Task = MAIN) -> Request:
        self._first_byte.set()  # who waits for an answer that never came goes on
        self._first_byte = anyio.Event()
        if self.recall is not None:
            await self.flush()
            seconds = self.world.settings.selector_milliseconds / 1_000
            await self.append(*await self.recall.ready(seconds))
        try:
            return await super().render_request(task)
        except PromptTooLong as error:
            if self._shortened or not self._before_a_request:
                raise
            return await self.shorten_request(error)

    def check(self, request: Request) -> None:
        """Refuse what no provider would take; where nobody else looks at it, also what is known
        to be too long."""
        super().check(request)
        if self.options.holds_window and request.tokens > self.world.window:
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

    async def record_reply(self, reply: Observable) -> Reply:
        found = await super().record_reply(reply)
        self._first_byte.set()
        if found.tool_calls:
            self._look_for_calls()
        await self._consider(AFTER_A_RESPONSE)
        return found

    async def record_turn_end(self, outcome: TurnEnding = "completed") -> None:
        """The turn is over: what was said is on the disk."""
        await self.settled()
        self._shortened = False
        if self.recall is not None:
            await self.append(*self.recall.ended())
        await self.append(TurnEnded(outcome))
        await self.sync()
        if outcome == "completed":
            await self._consider(AFTER_A_TURN)

    async def settled(self) -> None:
        """No request is on its way any more; what was handed in is appended."""
        self._first_byte.set()
        await super().settled()

    async def open_fork(self, source: str) -> Fork:
        """A fork of the conversation, once its last request is in the provider's cache."""
        if self._in_flight and not self.view.is_fork:
            await self._first_byte.wait()
        return await super().open_fork(source)

    async def summarize(self, instructions: str = "", **part: Any) -> compaction.Compacted:
        """Put a summary in the place of the conversation, or of a part of it; `part` as
        `compaction.compact` takes it: `from_`, `up_to`, `by_provider`, `must_gain`."""
        if self._in_flight:
            raise InvalidInput("a request is on its way", do="Observe its answer first")
        return await compaction.compact(self, instructions, **part)


def _no_log(agent: str) -> NoLog:
    del agent
    return NoLog()


# --- what runs unasked behind a conversation, and when: three tuples, and nowhere else

Consider: TypeAlias = "Callable[[JobContext], Awaitable[None]]"
"""Asks a piece of background work whether it is due. It answers at once, and does its work as one
of the session's jobs; one that raises fails alone."""


async def _note(host: JobContext) -> None:
    if not due(host.view, host.world):
        return
    from reverie.session import notes as job

    await job.consider(host)


async def _extract(host: JobContext, *, last: bool = False) -> None:
    if host.memories is None or (last and host.view.open_calls):
        return  # a turn that waits for results goes on when the session is resumed
    from reverie.session.extraction import run

    await run.consider(host, last=last)


async def _dream(host: JobContext) -> None:
    if host.memories is None:
        return
    await host.dreams.consider(host)


AFTER_A_RESPONSE: tuple[tuple[str, Consider], ...] = (
    ("session_memory", _note),  # 3: notes, so that a summary is ready when it is needed
)
"""Asked by `record_reply`."""

AFTER_A_TURN: tuple[tuple[str, Consider], ...] = (
    ("extract_memories", _extract),  # 5: what is worth keeping, by a fork
    (DREAM, _dream),  # 6: the memory is tidied, once a day at most
)
"""Asked by `record_turn_end`, where the turn was completed."""

AT_THE_END: tuple[tuple[str, Consider], ...] = (
    ("extract_memories", partial(_extract, last=True)),  # turns that were not worth a call alone
)
"""Asked by `drain`, before it waits for what is under way."""
