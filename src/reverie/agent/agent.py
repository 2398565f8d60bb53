"""The ready agent: a session with the loop, tools, permissions and hooks.

    async with reverie.Agent.open(".", model="claude-opus-5-5") as agent:
        turn = await agent.run("Why does the build fail?")

What it is made of is put together in `builder`, once for every door. One turn runs at a time;
others wait for it. Nothing here prints.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec

import anyio

from reverie.concurrency import OpenState
from reverie.errors import NotAvailable
from reverie.session.jobs import LoopTasks
from reverie.session.loop import run_turn
from reverie.session.options import SessionOptions
from reverie.session.recall.selection import replaced_ids
from reverie.session.rules import TurnRules
from reverie.session.turn import (
    Event,
    Inbox,
    OnEvent,
    Turn,
    TurnEvent,
    TurnLimits,
    TurnResult,
    TurnUsage,
    ignore_event,
)
from reverie.toolbox.toolset import check_arguments, takes
from reverie.wire.reply import Addable

if TYPE_CHECKING:
    from reverie import Memory
    from reverie.agent.builder import AgentBuilder as InnerAgent
    from reverie.agent.subagents.pool import AgentPool
    from reverie.agent.subagents.registry import AgentRecord
    from reverie.session.attachments import Attachments
    from reverie.session.hooks import Hooks
    from reverie.session.recall.project_index import MemoryIndex
    from reverie.session.report import Report
    from reverie.session.rules import ProjectRules
    from reverie.session.session import Session
    from reverie.store.memory_store import MemoryStore
    from reverie.toolbox.permissions import PermissionAnswer, Question, Verdict
    from reverie.toolbox.shell import BackgroundShells
    from reverie.toolbox.tool import Tool
    from reverie.toolbox.toolbox import Toolbox

P = ParamSpec("P")
ARGUMENTS = (
    "project model tools mode ask limits system resume private layers home settings on_notice"
)
"""The options that are a caller's to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions(SessionOptions):
    """What somebody wants an agent to be; of a session's options, those that an agent has."""

    tools: Sequence[str | Tool] | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
    """Names of ours, or tools of one's own; None is all of ours."""
    system: str = ""
    """A text in place of the beginning of its own system prompt."""
    mode: Verdict = "ask"
    """What becomes of calls that no rule names: `ask`, `allow` or `deny`."""
    ask: Callable[[Question], bool | Awaitable[bool | PermissionAnswer]] | None = None
    """Is asked before such a call; without it `ask` denies."""
    limits: TurnLimits | None = None
    """Rounds and cost of a turn."""
    bare: bool = False
    """Whether nothing is loaded that a project or a person added."""
    agents: bool = False
    """Whether it may have agents of its own."""
    agent: str = ""
    """The type of agent it is, where it is one of those."""


class TurnTaker:
    """A session that takes turns, with its tools, hooks and agents; the builder fills it."""

    _session: Session
    toolbox: Toolbox
    hooks: Hooks
    attachments: Attachments
    holding: OpenState

    def __init__(self, inner: InnerAgent) -> None:
        self.model = inner.model
        self.limits = inner.options.limits or TurnLimits()
        self.spend = TurnUsage()
        self.inbox = Inbox()
        self.rules: ProjectRules | None = None  # of the user's, that calls are held against
        self.crew: AgentPool | None = None

    def begin(self, session: Session) -> None:
        """Take the session that is open now."""
        self._session = session
        self.holding = OpenState("agent", session.id)

    @property
    def session(self) -> Session:
        """The conversation, on record."""
        return self._session

    async def turn(
        self, said: str | Sequence[Addable], on_event: OnEvent = ignore_event
    ) -> TurnResult:
        return await run_turn(
            self.session,
            self.model,
            self.toolbox,
            said,
            on_event=on_event,
            limits=self.limits,
            spend=self.spend,
            hooks=self.hooks,
            attachments=self.attachments,
            inbox=self.inbox,
            rules=self._turn_rules(),
        )

    def _turn_rules(self) -> TurnRules | None:
        session = self.session
        if self.rules is None or not session.world.flags.get("rules"):
            return None
        world = session.world
        return TurnRules(self.rules, world.say, world.clock.now, session.id, can_ask=True)

    @property
    def memories(self) -> MemoryStore | None:
        """None where memory is off, private or not to be had."""
        return self.session.memories

    @property
    def index(self) -> MemoryIndex:
        """The index that the search tools look in: that of the session's recall."""
        recall = self.session.recall
        found = recall.index if recall is not None else None
        if found is None:
            raise NotAvailable("this session has no memory to search", where=self.session.id)
        return found

    @property
    def sealed(self) -> frozenset[str]:
        """The messages that are out of its context."""
        return replaced_ids(self.session.view)

    @property
    def led_crew(self) -> AgentPool:
        """Its agents; NotAvailable where it has none."""
        if self.crew is None:
            raise NotAvailable("this session has no agents", where=self.session.id)
        return self.crew

    async def attach_skill(self, name: str) -> None:
        """A skill's text joins the next message."""
        await self.session.append(self.attachments.invoke(name))

    @property
    def tasks(self) -> tuple[str, ...]:
        """What runs in the background: agents, the session's own jobs, then commands."""
        shells = self._shells()
        agents = (one.name for one in self.at_work)
        return (*agents, *self.session.jobs.running, *(shells.running if shells else ()))

    @property
    def at_work(self) -> tuple[AgentRecord, ...]:
        """Its agents that are not over."""
        return () if self.crew is None else self.crew.running

    @property
    def over(self) -> tuple[AgentRecord, ...]:
        """Its agents that are."""
        known = () if self.crew is None else self.crew.members.values()
        return tuple(one for one in known if not one.is_open)

    def _shells(self) -> BackgroundShells | None:
        from reverie.toolbox.shell import BackgroundShells

        found = self.toolbox.context.shells
        return found if isinstance(found, BackgroundShells) else None

    async def kill(self, name: str) -> bool:
        """End an agent, a background job or command; False where there is none of that name."""
        shells = self._shells()
        if self.crew is not None and await self.crew.kill(name):
            return True
        if self.session.jobs.cancel(name):
            return True
        if shells is not None and name in shells.running:
            await shells.kill(name)
            return True
        return False


def _opens(given: Callable[P, AgentOptions]) -> Callable[P, AbstractAsyncContextManager[Agent]]:
    @takes(given, "AbstractAsyncContextManager[Agent]", ARGUMENTS, required="model")
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
        from reverie.agent.builder import open_for_caller

        if "model" not in options:
            raise TypeError("Agent.open() misses a required keyword-only argument: 'model'")
        check_arguments(options, ARGUMENTS)
        async with open_for_caller(given(*project, **options)) as agent:
            yield agent

    return opened


class Agent(TurnTaker):
    """A session that takes turns. Use `Agent.open`."""

    open = staticmethod(_opens(AgentOptions))

    def __init__(self, inner: InnerAgent, memory: Memory | None) -> None:
        super().__init__(inner)
        self._memory = memory
        self._line = anyio.Semaphore(1)  # a stream may be read on in another task

    @property
    def session(self) -> Session:
        """The conversation, on record. It closes with the agent."""
        return self._session

    @property
    def memory(self) -> Memory | None:
        """The long-term memory of the project; None where there is none."""
        return self._memory if self.memories is not None else None

    async def run(self, prompt: str) -> Turn:
        """One turn, to its end."""
        self.holding.check()
        async with self._line:
            return Turn.of(await self.turn(prompt), free=self.model.capabilities.free)

    async def stream(self, prompt: str) -> AsyncGenerator[Event | Turn]:
        """One turn as it happens: events, and last the `Turn`. Leaving early ends the turn."""
        self.holding.check()
        async with self._line, aclosing(_stream_turn(self, prompt)) as events:
            async for event in events:
                yield event

    def __repr__(self) -> str:
        return f"<Agent {self.session.id}{' (closed)' if self.holding.closed else ''}>"

    def __report__(self, since: float) -> Report:
        """What `reverie.report` tells of it."""
        reports: Any = self.session
        return reports.__report__(since)


async def _stream_turn(agent: Agent, prompt: str) -> AsyncGenerator[Event | Turn]:
    """A turn in a task of its own, told as it happens; closing this ends it."""
    put, take = anyio.create_memory_object_stream[Event | Turn](math.inf)
    failed: list[BaseException] = []
    tasks = LoopTasks()

    def heard(event: TurnEvent) -> None:
        shown = Event.of(event)
        if shown is not None:
            put.send_nowait(shown)

    async def work() -> None:
        with put:
            try:
                done = await agent.turn(prompt, heard)
                put.send_nowait(Turn.of(done, free=agent.model.capabilities.free))
            except Exception as error:  # noqa: BLE001 - it goes on where the events are read
                failed.append(error)

    tasks.start_soon(work)
    try:
        with take:
            async for event in take:
                yield event
        if failed:
            raise failed[0]
    finally:
        with anyio.CancelScope(shield=True):
            await tasks.aclose()
