"""One conversation, on record, in the caller's own loop.

    async with reverie.Session.open(".", model="claude-opus-5-5", client=client, memory=True) as s:
        await s.add("Fix the failing test")
        while True:
            request = await s.prepare()
            reply = await s.observe(await client.messages.create(**request.anthropic()))
            if not reply.tool_calls:
                break
            await s.add(*[call.result(run(call)) for call in reply.tool_calls])

A turn is ended by the next words of the user, by closing, or by `end_turn`. Calls wait for one
another in order. What is open twice is open once: a second opener is told who holds the session,
and may read it or go on in a copy of its own.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, ParamSpec

import anyio
from anyio import to_thread

from reverie.errors import NotFound
from reverie.layers.compaction.summary import CompactionFailed
from reverie.models import whole_answer
from reverie.session import exchange
from reverie.session.host import JobContext
from reverie.session.options import Begun, SessionOptions
from reverie.session.turn import TurnEnding
from reverie.toolbox.toolset import Toolset, check_arguments, takes
from reverie.transcript.records import Rewound
from reverie.wire.reply import Addable, Reply, ToolCall
from reverie.wire.request import Request

if TYPE_CHECKING:
    from reverie import Memory
    from reverie.session.compaction import Compacted
    from reverie.session.report import Report
    from reverie.session.rules import MatchedRule

P = ParamSpec("P")
ARGUMENTS = (
    "project model client memory system tools roles policy layers options resume user private "
    "home settings on_notice"
)
"""The options that are a caller's to say; the others follow from them."""


async def begin_session(options: SessionOptions) -> Session:
    """Open a session as it is wanted. Use and `aclose` it from any task."""
    begun = options.begin()
    session: Session | None = None
    try:
        session = Session(begun)
        await session.begin(begun)
    except BaseException:
        if session is not None:
            session.close()
        else:
            begun.transcript.log.close()
        raise
    return session


def _starts_as_said(said: Callable[P, SessionOptions]) -> Callable[P, Awaitable[Session]]:
    async def start(*project: P.args, **options: P.kwargs) -> Session:
        """Start a session, or go on with one, by options of which none is found out."""
        return await begin_session(said(*project, **options))

    return start


def _opens_as_said(
    said: Callable[P, SessionOptions],
) -> Callable[P, AbstractAsyncContextManager[Session]]:
    @asynccontextmanager
    async def opened(*project: P.args, **options: P.kwargs) -> AsyncGenerator[Session]:
        """Start a session in a project, or go on with one (`resume=ID`), and close it."""
        session = await begin_session(said(*project, **options))
        try:
            yield session
        finally:
            session.holding.closed = True
            await session.drain()

    return opened


start_session = _starts_as_said(SessionOptions)
open_session = _opens_as_said(SessionOptions)


async def _begin_for_caller(wanted: SessionOptions) -> Session:
    options = wanted.resolve()
    try:
        return await begin_session(options)
    except BaseException:
        if options.memories is not None:
            options.memories.close()
        raise


def _starts(given: Callable[P, SessionOptions]) -> Callable[P, Awaitable[Session]]:
    @takes(given, "Session", ARGUMENTS)
    async def start(*project: P.args, **options: P.kwargs) -> Session:
        """Start a session, or go on with one (`resume=`). Use and `aclose` it from any task.

        It takes what `open` takes.
        """
        check_arguments(options, ARGUMENTS)
        return await _begin_for_caller(given(*project, **options))

    return start


def _opens(
    given: Callable[P, SessionOptions],
) -> Callable[P, AbstractAsyncContextManager[Session]]:
    @takes(given, "AbstractAsyncContextManager[Session]", ARGUMENTS)
    @asynccontextmanager
    async def open_session(*project: P.args, **options: P.kwargs) -> AsyncGenerator[Session]:
        """A session for an `async with`: started, or gone on with, and closed.

        - `project`: the folder whose sessions and memory it belongs to; `user` a part of it.
        - `model`: a name, or a model. A name alone tells window and prices and never bills.
        - `client`: an SDK's client, or a function of one request. It does the background work,
          and what `ask` sends.
        - `memory`: True is the whole memory of this project and user; or a `Memory`.
        - `system`, `tools`, `options`: of each request; tools as any of the three APIs describes
          them, options such as `max_tokens`.
        - `roles`: what your tools are for, such as `{"fetch": "read_back"}`; else it is guessed.
        - `policy`: `collapse`, `classic` or `off`; `layers` is a policy of your own.
        - `resume`: the id of a session to go on with. `private` records nothing.
        - `home`, `settings`, `on_notice`: as for `Memory`.
        """
        check_arguments(options, ARGUMENTS)
        session = await _begin_for_caller(given(*project, **options))
        try:
            yield session
        finally:
            await session.aclose()

    return open_session


class Session(JobContext):
    """One conversation, on record. Use `Session.open`, or `Session.start` and `aclose`."""

    start = staticmethod(_starts(SessionOptions))
    open = staticmethod(_opens(SessionOptions))

    def __init__(self, begun: Begun) -> None:
        super().__init__(begun)
        self._line = anyio.Lock()
        self._tools: Toolset | None = None

    # --- what it is

    @property
    def id(self) -> str:
        """What `resume=` takes."""
        return super().id

    @property
    def memory(self) -> Memory | None:
        """The long-term memory of this session; None where there is none."""
        found = self.options.memory
        return found if self.memories is not None and not isinstance(found, bool) else None

    @property
    def tools(self) -> Toolset:
        """The tools that the session answers itself (`handle`)."""
        if self._tools is None:
            self._tools = exchange.read_back_tools(self)
        return self._tools

    # --- a turn

    async def add(self, *said: Addable) -> None:
        """Something new for the model: texts, results of its calls, messages of any of the three
        APIs. On disk when it returns; words of the user's end the turn before."""
        async with self._in_turn():
            message = exchange.message_of(self.view, said)
            if self.options.ends_turns and exchange.begins_turn(self.view, message):
                await self.record_turn_end()
            await self.add_messages(message)

    async def adopt(self, messages: Sequence[object]) -> None:
        """Take a conversation in that was held elsewhere, in any of the three APIs' forms."""
        async with self._in_turn():
            await exchange.adopt_messages(self, messages)

    async def prepare(self) -> Request:
        """The exact request to send now. One that is known to be too long is never given."""
        async with self._in_turn():
            return await exchange.next_request(self)

    async def observe(self, reply: object) -> Reply:
        """What came back: the SDK's object, its dict, or its stream, of any of the three APIs.
        With `client=`, calls that only read back are answered, and the model is asked again."""
        async with self._in_turn():
            return await exchange.take_answer(self, await whole_answer(reply))

    async def ask(self) -> Reply:
        """`prepare`, send and `observe` in one, through `client=` or the model."""
        async with self._in_turn():
            return await exchange.take_answer(self, await exchange.send_request(self))

    async def end_turn(self, outcome: TurnEnding = "completed") -> None:
        """The turn is over. Who forgets it loses nothing."""
        async with self._in_turn():
            await self.record_turn_end(outcome)

    async def handle(self, call: object) -> Any:
        """The result of a call for one of `tools`, in the form the call came in; else None."""
        self.holding.check()
        return await to_thread.run_sync(self.tools.handle, call)

    async def rules(self, call: ToolCall) -> list[MatchedRule]:
        """The rules of memory that a call goes against, looked at before it runs; the call is
        still the caller's to make."""
        self.holding.check()
        if self.memories is None or not self.world.flags.get("rules"):
            return []
        from reverie.session.rules import ProjectRules, matched_rule

        known = ProjectRules(self.memories, self.root, self.root)
        found = await to_thread.run_sync(lambda: known.look(call.name, call.arguments))
        return [matched_rule(rule) for rule in found]

    # --- the conversation

    async def too_long(self, error: Exception) -> Request:
        """The provider refused the last request as too long: what to send instead, once."""
        async with self._in_turn():
            return await exchange.shorter_request(self, error)

    async def compact(self, instructions: str = "") -> Compacted:
        """Put a summary in the place of the conversation so far; InvalidInput where writing one
        would cost more than it saves."""
        async with self._in_turn():
            try:
                return await self.summarize(instructions, must_gain=True)
            except CompactionFailed as error:
                do = "Nothing was changed; the conversation goes on as it is"
                raise CompactionFailed(error.what, where=error.where, do=do) from error

    async def rewind(self, to: str) -> None:
        """Go back to behind a message; what came after stays on record."""
        async with self._in_turn():
            if self.view.entries.place(to) is None:
                raise NotFound("no such message in this session", where=to)
            await self.append_at(to, Rewound("asked for"))

    async def set_head(
        self,
        *,
        system: str | Sequence[Mapping[str, Any]] | None = None,
        tools: Sequence[object] | Toolset | None = None,
        options: Mapping[str, Any] | None = None,
        reason: str = "asked for",
    ) -> None:
        """Another system prompt, other tools or options from the next request on."""
        async with self._in_turn():
            await self.append(exchange.changed_head(self.view, system, tools, options, reason))

    async def fork(self, prompt: str) -> Reply:
        """Ask something beside the conversation, on its cached prefix; it stays as it is."""
        async with self._in_turn():
            return await exchange.ask_beside(self, prompt)

    # --- its end

    async def aclose(self) -> None:
        """End the turn, wait a bounded time for background work, close. Again: nothing."""
        if self.holding.closed or not self.holding.is_here:
            return
        self.holding.check_loop()
        self.holding.closed = True
        if not self.options.ends_turns:
            await self.drain()
            return
        async with self._line:
            await self._end_and_drain()

    async def _end_and_drain(self) -> None:
        """End the turn where nobody did, then close; a cancelled task closes all the same."""
        try:
            if exchange.is_turn_open(self.view):
                with anyio.CancelScope(shield=True):
                    waiting = bool(self.view.open_calls)
                    await self.record_turn_end("cancelled" if waiting else "completed")
        finally:
            try:
                await self.drain()
            finally:
                if self.memories is not None:
                    self.memories.close()

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(self, *ended: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<Session {self.id}{' (closed)' if self.holding.closed else ''}>"

    def __report__(self, since: float) -> Report:
        """What `reverie.report` tells of it."""
        from reverie.session.report import of_session

        return of_session(self, since)

    # --- inside

    @asynccontextmanager
    async def _in_turn(self) -> AsyncGenerator[None]:
        """One call at a time, in order; none on a session that is not there any more."""
        self.holding.check()
        async with self._line:
            self.holding.check()
            yield
