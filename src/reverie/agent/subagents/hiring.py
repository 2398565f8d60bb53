"""One agent of its own context, from its first words to its last: the same in every process.

It has the prompt, tools, model and memory of its type, a transcript beside its lead's, which is
compacted and collapsed like any other, and limits: rounds, a share of the day's budget, time. What
it stores lies among what its session stores. Its cost is counted before a request leaves. It has
no agents of its own and edits nobody else's conversation. What is said to it meanwhile joins at its
next tool round, or begins another turn.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import anyio

from reverie import __version__
from reverie.agent.memory import AgentMemory, open_agent_memory
from reverie.agent.place import SEALED_ROUNDS, head_context, thinking_options
from reverie.agent.subagents.types import AgentType
from reverie.session.budget import Budget, CountsRetries
from reverie.session.conversation import NoLog
from reverie.session.extraction.log import LoggingFiles
from reverie.session.fork import Worker, worker_world
from reverie.session.library import BegunSession, Library, NoDisk
from reverie.session.loop import TurnUnderWay
from reverie.session.options import Head
from reverie.session.reading import Transcript
from reverie.session.rules import ProjectRules, TurnRules
from reverie.session.turn import Inbox, OnEvent, Spend, TurnLimits, TurnResult, ignore_event
from reverie.settings import Settings
from reverie.store.project import Project
from reverie.tools import (
    PermissionPolicy,
    PermissionRoots,
    PermissionRule,
    Registry,
    StoredResults,
    Tool,
    Toolbox,
    ToolContext,
)
from reverie.tools.permissions import Verdict
from reverie.tools.runner import DENIED
from reverie.tools.sealed import SealedCalls
from reverie.transcript.records import HeadSet, Started, UserMessage
from reverie.transcript.tasks import Task
from reverie.wire.reply import ToolCall, tool_result
from reverie.world import Clock, FlagReader, Model, Say

SOURCE = "agent"
"""The query source of sub-agents, and the name of their task."""
LEADS_OWN = frozenset({"Agent", "SendMessage", "Snip", "Remember", "Forget"})
"""Tools that work on the lead's own conversation, agents and memory."""
OWN_TREE = (PermissionRule("Edit", "*"), PermissionRule("Write", "*"))
"""Its own worktree an agent may change unasked: nothing of it is anybody's until it is merged."""


@dataclass(frozen=True, slots=True)
class CrewGround:
    """What the agents of one session stand on."""

    session: str
    place: Project
    library: Library | None  # None in a private session
    registry: Registry
    roots: PermissionRoots
    rules: Sequence[PermissionRule]
    mode: Verdict
    clock: Clock
    flags: FlagReader
    say: Say
    budget: Budget | None = None
    held: ProjectRules | None = None  # the user's rules, that calls are held against

    @property
    def settings(self) -> Settings:
        return self.place.settings

    @property
    def limits(self) -> TurnLimits:
        most = self.settings.agent_budget_share * self.settings.background_tokens_per_day
        return TurnLimits(self.settings.agent_rounds, most)

    def turn_rules(self) -> TurnRules | None:
        """What a turn of an agent's is held against; nobody is asked there, so it reminds."""
        if self.held is None or not self.flags.get("rules"):
            return None
        return TurnRules(self.held, self.say, self.clock.now, self.session)

    def policy(self, root: Path | None = None) -> PermissionPolicy:
        """Who may do what where nobody is asked; `root` is a worktree."""
        roots, rules = replace(self.roots, writable=()), list(self.rules)
        if root is not None:
            roots, rules = replace(roots, root=root.resolve()), [*rules, *OWN_TREE]
        return PermissionPolicy(roots, mode=self.mode, rules=rules)


@dataclass(frozen=True, slots=True)
class Hire:
    """Who is wanted."""

    id: str
    name: str
    type: AgentType
    tree: Path | None = None  # its own worktree
    tools: tuple[Tool, ...] = ()  # beside those of its type
    policy: PermissionPolicy | None = None  # the lead's own, where its person can be asked


@dataclass
class Hired:
    """An agent that works."""

    worker: Worker
    model: Model
    tools: AllowedTools
    limits: TurnLimits
    rules: Callable[[], TurnRules | None]
    letters: Callable[[], Sequence[UserMessage]] = tuple
    on_event: OnEvent = ignore_event
    spend: Spend = field(default_factory=Spend)
    rounds: int = 0

    async def work(self, task: str = "") -> TurnResult:
        """Do a task, or go on with what was said, until nobody says more."""
        if task:
            await self.worker.instruct(task)
        result = await self._turn()
        while self.rounds < self.limits.rounds and (said := self.letters()):
            await self.hear(said)
            result = await self._turn()
        return result

    async def hear(self, said: Sequence[UserMessage]) -> None:
        for letter in said:
            await self.worker.add_messages(letter)

    async def _turn(self) -> TurnResult:
        worker = self.worker
        turn = TurnUnderWay(
            worker,
            CountsRetries(self.model, worker.budget, worker.world.settings),
            self.tools,
            limits=replace(self.limits, rounds=max(1, self.limits.rounds - self.rounds)),
            spend=self.spend,
            inbox=Inbox(self.letters),
            on_event=self.on_event,
            task=Task(SOURCE),
            meter=worker,
            rules=self.rules(),
        )
        result = await turn.run()
        self.rounds += result.rounds
        return result


@dataclass(frozen=True, slots=True)
class AllowedTools:
    """A toolbox of which some tools are refused at call time: their definitions stay."""

    box: Toolbox
    refused: Callable[[str], str] = lambda _: ""

    @property
    def registry(self) -> Registry:
        return self.box.registry

    async def run(self, call: ToolCall) -> UserMessage:
        why = self.refused(call.name)
        if why:
            return tool_result(call.id, why, is_error=True)
        return await self.box.run(call)


def not_for_forks(tool: str) -> str:
    """Why a fork may not call a tool of its lead's list, or ""."""
    return DENIED if tool in LEADS_OWN and tool != "SendMessage" else ""


@asynccontextmanager
async def hired(ground: CrewGround, wanted: Hire, model: Model) -> AsyncGenerator[Hired]:
    """An agent, new or as its transcript left it; leaving closes all that is its own."""
    place = ground.place
    if wanted.tree is not None:
        place = replace(place, cwd=wanted.tree)
    memory = _memory(ground, wanted.type)
    try:
        registry = Registry(_tools(ground, wanted))
        worker = await _worker(ground, wanted, place, model, registry, memory)
        try:
            policy = wanted.policy or ground.policy(wanted.tree)
            if memory is not None:
                policy = _with_memory(policy, memory)
            context = _context(ground, place, worker, memory)
            async with Toolbox(registry, policy, context) as box:
                yield Hired(worker, model, AllowedTools(box), ground.limits, ground.turn_rules)
        finally:
            with anyio.CancelScope(shield=True):
                try:
                    await worker.settled()
                finally:
                    worker.close()
    finally:
        if memory is not None:
            memory.close()


def _tools(ground: CrewGround, wanted: Hire) -> list[Tool]:
    known = (tool for tool in ground.registry if tool.name not in LEADS_OWN)
    return [*(tool for tool in known if wanted.type.allows(tool.name)), *wanted.tools]


def _memory(ground: CrewGround, type_: AgentType) -> AgentMemory | None:
    if type_.memory is None or ground.library is None:
        return None
    return open_agent_memory(
        type_.name, type_.memory, ground.place, now=ground.clock.now, say=ground.say
    )


def _with_memory(policy: PermissionPolicy, memory: AgentMemory) -> PermissionPolicy:
    """The same policy, for an agent whose own memory is its to write."""
    return policy.on(replace(policy.ground, writable=(Path(os.path.realpath(memory.folder)),)))


async def _worker(
    ground: CrewGround,
    wanted: Hire,
    place: Project,
    model: Model,
    registry: Registry,
    memory: AgentMemory | None,
) -> Worker:
    """Its conversation, begun or resumed."""
    library, session = ground.library, ground.session
    policy = ground.settings.context_policy if registry.get("ReadBack") else "classic"
    world = worker_world(
        model,
        replace(ground.settings, context_policy=policy),
        ground.flags,
        ground.clock,
        home=None if library is None else place.home,
        say=ground.say,
        tool_limits=registry.limits(),
    )

    def first() -> tuple[Started, HeadSet]:
        source, root = f"{SOURCE}:{wanted.type.name}", str(place.root)
        cwd = str(place.cwd)
        started = Started(session, root, cwd, __version__, source, wanted.id, policy=policy)
        return started, _head(ground, wanted, place, model, registry, memory, policy)

    if library is None:
        begun = BegunSession(wanted.id, NoLog(), NoDisk(), Transcript(wanted.id))
        return await Worker.open(begun, world, first, source=SOURCE, budget=ground.budget)
    begun = library.begin_agent(session, wanted.id)
    try:
        return await Worker.open(
            begun,
            world,
            first,
            source=SOURCE,
            budget=ground.budget,
            agent_log=partial(library.agent_log, session),
            home=place.home,
        )
    except BaseException:
        begun.log.close()
        raise


def _head(
    ground: CrewGround,
    wanted: Hire,
    place: Project,
    model: Model,
    registry: Registry,
    memory: AgentMemory | None,
    policy: str,
) -> HeadSet:
    parts = [wanted.type.prompt.rstrip()]
    parts += [SEALED_ROUNDS.rstrip()] if policy == "collapse" else []
    parts += [memory.section] if memory is not None else []
    context = head_context(place, ground.clock, None, ground.say)
    options = thinking_options(ground.settings, model.capabilities)
    return Head(model.name, "\n\n".join(parts), registry.definitions(), context, options).record()


def _context(
    ground: CrewGround, place: Project, worker: Worker, memory: AgentMemory | None
) -> ToolContext:
    stored: StoredResults | None = None
    sources: tuple[SealedCalls, ...] = ()
    if ground.library is not None:
        folder, session = ground.library.folder, ground.session
        stored = StoredResults(folder, session, lambda: worker.view)
        sources = (SealedCalls(lambda: worker.view, folder, session),)
    if memory is None:
        files = LoggingFiles(place.cwd, place.user_home, session=ground.session, daily=bool)
    else:
        files = memory.files(place.cwd, place.user_home, ground.session)
    return ToolContext(
        place.worktree,
        place.cwd,
        files,
        ground.clock,
        settings=worker.world.settings,
        say=ground.say,
        environ=place.environ,
        stored=stored,
        sources=sources,
    )


def model_named(name: str, ground: CrewGround) -> Model:
    """The model that a type names; ReverieError says what is missing for it."""
    from reverie.embedded import EmbeddedModel
    from reverie.providers.choose import model_for

    found = model_for(name, ground.place.environ, ground.settings, clock=ground.clock)
    return found or EmbeddedModel(ground.settings)


def outcome_text(result: TurnResult) -> str:
    """What an agent brings, with a word where it did not come to its end."""
    if result.outcome == "completed":
        return result.text or "(it ended without a word)"
    why = {"limit": "It was stopped at a limit", "refused": "The model refused"}.get(
        result.outcome, "Its answer is not whole"
    )
    return f"[{why}: {result.reason}]\n\n{result.text}".rstrip()
