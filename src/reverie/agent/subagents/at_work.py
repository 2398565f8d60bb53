"""The task of one agent in this process: begun afresh or as a fork, within its time, and watched.

One that begins afresh gets tools, a policy and a model by its type; a fork has those of the lead,
without what would let it fork. What it does is told in a few words, and what it took is counted.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio import get_cancelled_exc_class
from anyio.abc import TaskGroup

from reverie.agent.mail.post import Post, Tray
from reverie.agent.subagents.doing import doing, summary
from reverie.agent.subagents.hiring import (
    OWN_TREE,
    SOURCE,
    AllowedTools,
    Hire,
    Hired,
    hired,
    model_named,
    not_for_forks,
)
from reverie.agent.subagents.roster import Member
from reverie.agent.subagents.types import AgentType
from reverie.agent.subagents.worktree import Worktree
from reverie.concurrency import alone
from reverie.session.budget import weight
from reverie.session.fork import AgentOutcome
from reverie.session.turn import ToolStarted, TurnEvent, TurnResult
from reverie.tools import Toolbox
from reverie.tools.permissions import PermissionPolicy
from reverie.tools.sealed import SealedCalls
from reverie.tools.tool import StoredResults
from reverie.wire.reply import Reply
from reverie.world import Model

if TYPE_CHECKING:
    from reverie.agent.subagents.crew import Crew, Wanted


class AgentAtWork:
    """An agent in this process: `scope` ends it, and `over` says that nothing of it runs."""

    def __init__(
        self,
        crew: Crew,
        member: Member,
        type_: AgentType,
        wanted: Wanted,
        tree: Worktree | None,
        tray: Tray,
    ) -> None:
        self.member = member
        self.type = type_
        self.wanted = wanted
        self.tree = tree
        self.tray = tray
        self.scope = anyio.CancelScope()
        self.over = anyio.Event()
        self._crew = crew

    async def run(self) -> TurnResult:
        """Its turn, which ends when its time is over."""
        member, clock = self.member, self._crew.ground.clock
        seconds = self._crew.ground.settings.agent_minutes * 60
        result: list[TurnResult] = []

        async def watch(scope: anyio.CancelScope) -> None:
            await clock.sleep(seconds)
            member.reason = f"it took over {seconds / 60:g} minutes"
            scope.cancel()

        async with _tasks() as group:
            group.start_soon(watch, group.cancel_scope)
            result.append(await (self._forked() if self.wanted.mode == "fork" else self._fresh()))
            group.cancel_scope.cancel()
        return result[0] if result else TurnResult("limit", reason=member.reason)

    async def _fresh(self) -> TurnResult:
        crew, member = self._crew, self.member
        behind = self.wanted.mode == "background"
        tools = (crew.send_tool(crew, member.name),) if behind else ()
        policy = None if behind else self._policy()
        path = self.tree.path if self.tree else None
        async with AsyncExitStack() as stack:
            model = await self._model(stack)
            hire = Hire(member.id, member.name, self.type, path, tools, policy)
            agent = await stack.enter_async_context(hired(crew.ground, hire, model))
            outcome: AgentOutcome = "failed"
            try:
                result = await self._at(agent).work(self.wanted.task)
                outcome = "completed"
                return result
            except get_cancelled_exc_class():
                outcome = "cancelled"
                raise
            finally:
                self._counted(agent)
                crew.session.hand(agent.worker.ended(outcome))

    def _policy(self) -> PermissionPolicy:
        """The lead's, for the project, or for the tree of its own, which it changes unasked."""
        policy = self._crew.box().policy
        if self.tree is None:
            return policy.on(replace(policy.ground, writable=()))
        roots = replace(policy.ground, root=self.tree.path.resolve(), writable=())
        return policy.on(roots, *OWN_TREE)

    async def _model(self, stack: AsyncExitStack) -> Model:
        wanted, leads = self.type.model, self._crew.model
        if not wanted or wanted == leads.name:
            return leads
        model = model_named(wanted, self._crew.ground)
        close: Callable[[], Awaitable[None]] | None = getattr(model, "aclose", None)
        if close is not None:
            stack.push_async_callback(close)
        return model

    async def _forked(self) -> TurnResult:
        crew, ground = self._crew, self._crew.ground
        async with crew.session.forked(SOURCE) as child:
            self.member.taken["transcript"] = child.agent
            lead = crew.box()
            context = replace(lead.context, reads=lead.context.reads.copy(), shells=None)
            if ground.library is not None:
                folder, session = ground.library.folder, crew.session.id
                stored = StoredResults(folder, session, lambda: child.view)
                sources = (SealedCalls(lambda: child.view, folder, session),)
                context = replace(context, stored=stored, sources=sources)
            async with Toolbox(lead.registry, ground.policy(), context) as box:
                tools = AllowedTools(box, not_for_forks)
                agent = Hired(child, crew.model, tools, ground.limits, ground.turn_rules)
                try:
                    return await self._at(agent).work(self.wanted.task)
                finally:
                    self._counted(agent)

    def _at(self, agent: Hired) -> Hired:
        """The agent with its letters, watched."""
        agent.letters = Post(lambda: agent.worker.view, [self.tray]).letters
        agent.on_event = partial(self._saw, agent)
        return agent

    def _counted(self, agent: Hired) -> None:
        member, tally = self.member, agent.worker.tally
        member.requests, member.tokens = tally.requests, agent.worker.view.tokens
        member.weighted = weight(tally.usage, self._crew.ground.settings)

    def _saw(self, agent: Hired, event: TurnEvent) -> None:
        if isinstance(event, Reply):
            self._counted(agent)
        elif isinstance(event, ToolStarted):
            self.member.doing = doing(event.call)
            self._summarise(agent)

    def _summarise(self, agent: Hired) -> None:
        """Ask for better words, where it is time and somebody may be asked."""
        member, ground = self.member, self._crew.ground
        settings, now = ground.settings, ground.clock.now()
        due = now - member.taken.get("summary", member.began) >= settings.agent_summary_seconds
        behind = member.mode == "background"
        if not due or not behind or settings.simple or agent.model.capabilities.free:
            return
        member.taken["summary"] = now

        async def ask() -> None:
            cheap = await self._cheap()
            text, _ = await alone(summary(agent.worker, agent.model, cheap), "")
            if text and member.is_open:
                member.doing = text

        self._crew.tasks.start_soon(ask)

    async def _cheap(self) -> Model | None:
        """The model that a setting names for summaries."""
        make = self._crew.session.world.summariser
        model, _ = await alone(make(), None) if make is not None else (None, "")
        return model


@asynccontextmanager
async def _tasks() -> AsyncGenerator[TaskGroup]:
    """A task group whose one error comes out as it is."""
    try:
        async with anyio.create_task_group() as group:
            yield group
    except BaseExceptionGroup as many:
        raise many.exceptions[0] from None
