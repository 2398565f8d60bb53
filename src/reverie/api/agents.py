"""The ready agent: a session with the loop, tools, permissions and hooks.

    async with reverie.Agent.open(".", model="claude-opus-5-5") as agent:
        turn = await agent.run("Why does the build fail?")

What it is made of is put together in `reverie.agent`; here are its arguments, and its turns as
plain values. One turn runs at a time; others wait for it.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ParamSpec

from reverie.tools.toolset import takes

if TYPE_CHECKING:
    from reverie.agent.agent import Agent as InnerAgent
    from reverie.api.memory import Memory
    from reverie.api.turns import Event, Turn
    from reverie.layers.own import OwnLayer
    from reverie.session.report import Report
    from reverie.session.session import Session
    from reverie.session.turn import TurnLimits
    from reverie.settings import Settings
    from reverie.tools.permissions import PermissionAnswer, Question, Verdict
    from reverie.tools.tool import Tool
    from reverie.world import Model, Notice

P = ParamSpec("P")
ARGUMENTS = (
    "project model tools mode ask limits system resume private layers home settings on_notice"
)


@dataclass(frozen=True, slots=True)
class AgentArguments:
    """What `Agent.open` takes."""

    project: str | os.PathLike[str] = "."
    _: KW_ONLY
    model: str | Model  # a name, whose key is in the environment; `embedded`; or a model
    tools: Sequence[str | Tool] | None = None  # names of ours, or one's own; None is all of ours
    mode: Verdict = "ask"  # what becomes of calls that no rule names: ask, allow or deny
    ask: Callable[[Question], bool | Awaitable[bool | PermissionAnswer]] | None = None
    limits: TurnLimits | None = None
    system: str = ""
    resume: str = ""
    private: bool = False
    layers: Sequence[OwnLayer] | None = None
    home: str | os.PathLike[str] | None = None
    settings: Settings | Mapping[str, object] | None = None
    on_notice: Callable[[Notice], object] | None = None


def _opens(given: Callable[P, AgentArguments]) -> Callable[P, AbstractAsyncContextManager[Agent]]:
    @takes(given, "AbstractAsyncContextManager[Agent]", ARGUMENTS)
    @asynccontextmanager
    async def opened(*project: P.args, **options: P.kwargs) -> AsyncGenerator[Agent]:
        """An agent in a project, new or gone on with (`resume=`).

        - `model`: a name, whose key is in the environment; `embedded`; or a model.
        - `tools`: names of ours, or tools of your own; None is all of ours.
        - `mode`: what becomes of a call that no rule names: `ask`, `allow` or `deny`.
        - `ask`: is asked before such a call; without it `ask` denies.
        - `limits`: rounds and cost of a turn.
        - `system`: a text in place of the beginning of its own system prompt.
        - `layers`, `private`, `home`, `settings`, `on_notice`: as for `Session`.
        """
        from reverie.api.hiring import hired

        wanted = given(*project, **options)
        async with hired(wanted) as (inner, memory):
            agent = Agent(inner, memory)
            try:
                yield agent
            finally:
                agent._left()  # pyright: ignore[reportPrivateUsage]

    return opened


class Agent:
    """A session that takes turns. Use `Agent.open`."""

    open = staticmethod(_opens(AgentArguments))

    def __init__(self, inner: InnerAgent, memory: Memory | None) -> None:
        import anyio

        from reverie.concurrency import Holding

        self._inner = inner
        self._memory = memory
        self._session = inner.session
        self._holding = Holding("agent", inner.session.id)
        self._line = anyio.Semaphore(1)  # a stream may be read on in another task

    @property
    def session(self) -> Session:
        """The conversation, on record. It closes with the agent."""
        return self._session

    @property
    def memory(self) -> Memory | None:
        """The long-term memory of the project; None where there is none."""
        return self._memory

    async def run(self, prompt: str) -> Turn:
        """One turn, to its end."""
        from reverie.api.turns import Turn

        self._holding.check()
        async with self._line:
            free = self._inner.model.capabilities.free
            return Turn.of(await self._inner.turn(prompt), free=free)

    async def stream(self, prompt: str) -> AsyncGenerator[Event | Turn]:
        """One turn as it happens: events, and last the `Turn`. Leaving early ends the turn."""
        from reverie.api.hiring import streamed

        self._holding.check()
        async with self._line, aclosing(streamed(self._inner, prompt)) as events:
            async for event in events:
                yield event

    def _left(self) -> None:
        self._holding.closed = True
        self._session.holding.closed = True

    def __repr__(self) -> str:
        return f"<Agent {self._session.id}{' (closed)' if self._holding.closed else ''}>"

    def __report__(self, since: float) -> Report:
        """What `reverie.report` tells of it."""
        reports: Any = self._session
        return reports.__report__(since)
