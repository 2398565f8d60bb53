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
another in order. What is written here hands on; how a session is opened stands in `beginning`,
which is loaded when one is.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ParamSpec

from reverie.api.signatures import takes
from reverie.errors import NotAvailable

if TYPE_CHECKING:
    from reverie.api.beginning import Begun
    from reverie.api.memory import Memory
    from reverie.api.report import Report
    from reverie.api.toolset import Toolset
    from reverie.api.values import MatchedRule
    from reverie.layers.own import OwnLayer
    from reverie.session.compaction.compacting import Compacted
    from reverie.session.turn import TurnEnding
    from reverie.settings import Settings
    from reverie.transcript.records import UserMessage
    from reverie.wire.reply import Addable, Reply, ToolCall
    from reverie.wire.request import Request
    from reverie.world import Model, Notice

P = ParamSpec("P")
READS = 20
"""Times in a row that the model may only read back before its answer is handed out."""


@dataclass(frozen=True, slots=True)
class SessionArguments:
    """What `Session.open` and `Session.start` take."""

    project: str | os.PathLike[str] = "."
    _: KW_ONLY
    model: str | Model = ""  # a name, or a model
    client: Any = None  # an SDK's client, or a function of one request: does background work, `ask`
    memory: bool | Memory | None = None  # True is the whole memory of this project and user
    system: str | Sequence[Mapping[str, Any]] = ""
    tools: Sequence[object] | Toolset = ()  # described for any of the three APIs
    roles: Mapping[str, str] | None = None  # what tools are for, by name; else it is guessed
    policy: str = ""  # collapse, classic or off; else what the settings say
    layers: Sequence[OwnLayer] | None = None  # a policy of one's own
    options: Mapping[str, Any] | None = None  # of each request: max_tokens, thinking, ...
    resume: str = ""
    user: str = ""
    private: bool = False
    home: str | os.PathLike[str] | None = None
    settings: Settings | Mapping[str, object] | None = None
    on_notice: Callable[[Notice], object] | None = None


def _starts(given: Callable[P, SessionArguments]) -> Callable[P, Awaitable[Session]]:
    @takes(given, "Session")
    async def start(*project: P.args, **options: P.kwargs) -> Session:
        """Start a session, or go on with one (`resume=`). Use and `aclose` it from any task.

        It takes what `open` takes.
        """
        return await _begun(given(*project, **options))

    return start


async def _begun(arguments: SessionArguments) -> Session:
    from reverie.api.beginning import begun

    return Session(await begun(arguments))


def _opens(
    given: Callable[P, SessionArguments],
) -> Callable[P, AbstractAsyncContextManager[Session]]:
    @takes(given, "AbstractAsyncContextManager[Session]")
    @asynccontextmanager
    async def opened(*project: P.args, **options: P.kwargs) -> AsyncGenerator[Session]:
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
        session = await _begun(given(*project, **options))
        try:
            yield session
        finally:
            await session.aclose()

    return opened


class Session:
    """One conversation, on record. Use `Session.open`, or `Session.start` and `aclose`."""

    start = staticmethod(_starts(SessionArguments))
    open = staticmethod(_opens(SessionArguments))

    def __init__(self, begun: Begun) -> None:
        import anyio

        from reverie.api import beginning
        from reverie.api.holding import Holding

        self._begun = begun
        self._inner = begun.session
        self._tools = beginning.toolset(begun)
        self._line = anyio.Lock()
        self._holding = Holding("session", begun.session.id)

    # --- what it is

    @property
    def id(self) -> str:
        """What `resume=` takes."""
        return self._inner.id

    @property
    def memory(self) -> Memory | None:
        """The long-term memory of this session; None where there is none."""
        return self._begun.memory if self._begun.memories is not None else None

    @property
    def tools(self) -> Toolset:
        """The tools that the session answers itself (`handle`)."""
        return self._tools

    # --- a turn

    async def add(self, *said: Addable) -> None:
        """Something new for the model: texts, results of its calls, messages of any of the three
        APIs. On disk when it returns; words of the user's end the turn before."""
        async with self._in_turn():
            from reverie.api import speaking

            message = speaking.told(self._inner.view, said)
            if speaking.begins(self._inner.view, message):
                await self._inner.end_turn()
            await self._inner.add(message)

    async def adopt(self, messages: Sequence[object]) -> None:
        """Take a conversation in that was held elsewhere, in any of the three APIs' forms."""
        async with self._in_turn():
            from reverie.api import speaking

            await speaking.adopted(self._inner, messages)

    async def prepare(self) -> Request:
        """The exact request to send now. One that is known to be too long is never given."""
        async with self._in_turn():
            return await self._prepared()

    async def observe(self, reply: object) -> Reply:
        """What came back: the SDK's object, its dict, or its stream, of any of the three APIs.
        With `client=`, calls that only read back are answered, and the model is asked again."""
        async with self._in_turn():
            from reverie.api.clients import finished

            return await self._observed(await finished(reply))

    async def ask(self) -> Reply:
        """`prepare`, send and `observe` in one, through `client=` or the model."""
        async with self._in_turn():
            return await self._asked()

    async def end_turn(self, outcome: TurnEnding = "completed") -> None:
        """The turn is over. Who forgets it loses nothing."""
        async with self._in_turn():
            await self._inner.end_turn(outcome)

    async def handle(self, call: object) -> Any:
        """The result of a call for one of `tools`, in the form the call came in; else None."""
        self._holding.check()
        from anyio import to_thread

        return await to_thread.run_sync(self._tools.handle, call)

    async def rules(self, call: ToolCall) -> list[MatchedRule]:
        """The rules of memory that a call goes against, looked at before it runs; the call is
        still the caller's to make."""
        self._holding.check()
        from reverie.api import ruling

        return await ruling.matched(self._begun, call)

    # --- the conversation

    async def too_long(self, error: Exception) -> Request:
        """The provider refused the last request as too long: what to send instead, once."""
        async with self._in_turn():
            from reverie.api import asking

            return await asking.shortened(self._begun, error)

    async def compact(self, instructions: str = "") -> Compacted:
        """Put a summary in the place of the conversation so far."""
        async with self._in_turn():
            from reverie.api import asking

            return await asking.compacted(self._inner, instructions)

    async def rewind(self, to: str) -> None:
        """Go back to behind a message; what came after stays on record."""
        async with self._in_turn():
            await self._inner.rewind(to)

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
            from reverie.api import speaking

            head = speaking.head(self._inner.view, system, tools, options, reason)
            await self._inner.append(head)

    async def fork(self, prompt: str) -> Reply:
        """Ask something beside the conversation, on its cached prefix; it stays as it is."""
        async with self._in_turn():
            from reverie.api import asking

            self._sender()
            return await asking.forked(self._inner, self._begun.worker, prompt)

    # --- its end

    async def aclose(self) -> None:
        """End the turn, wait a bounded time for background work, close. Again: nothing."""
        if self._holding.closed or not self._holding.is_here:
            return
        self._holding.check_loop()
        self._holding.closed = True
        async with self._line:
            from reverie.api import asking

            await asking.closed(self._begun)

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(self, *ended: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<Session {self.id}{' (closed)' if self._holding.closed else ''}>"

    def __report__(self, since: float) -> Report:
        """What `reverie.report` tells of it."""
        from reverie.api.session_report import of_session

        return of_session(self._inner, self._begun.worker, since)

    # --- inside

    async def _prepared(self) -> Request:
        from reverie.api import asking

        return await asking.prepared(self._begun)

    async def _asked(self) -> Reply:
        from reverie.api import asking

        self._sender()
        return await self._observed(await asking.asked(self._begun))

    async def _observed(self, answer: object) -> Reply:
        """The answer, recorded; calls that only read back are seen to where a client is there."""
        from reverie.api import asking

        reply = await asking.observed(self._begun, answer)
        for _ in range(READS if self._begun.added and self._begun.client else 0):
            own = [call for call in reply.tool_calls if call.name == self._begun.via]
            if not own:
                break
            results: list[UserMessage] = [self._tools.handle(call) for call in own]
            await self._inner.add(*results)
            if len(own) < len(reply.tool_calls):
                return asking.without(reply, own)
            answer = await asking.asked(self._begun)
            reply = await asking.observed(self._begun, answer)
        return reply

    def _sender(self) -> None:
        from reverie.api.clients import RulesModel

        if isinstance(self._begun.worker, RulesModel):
            raise NotAvailable(
                "this session has no client to ask with",
                where=self.id,
                do="Open it with client=, or send what prepare gives and observe the answer",
            )

    @asynccontextmanager
    async def _in_turn(self) -> AsyncGenerator[None]:
        """One call at a time, in order; none on a session that is not there any more."""
        self._holding.check()
        async with self._line:
            self._holding.check()
            yield


def left(session: Session) -> None:
    """Whoever it belongs to has closed it."""
    session._holding.closed = True  # pyright: ignore[reportPrivateUsage]
