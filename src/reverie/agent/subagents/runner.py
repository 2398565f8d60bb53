"""One agent in this process, and its status line.

The task of one agent in this process: begun afresh or as a fork, within its time, and watched.

One that begins afresh gets tools, a policy and a model by its type; a fork has those of the lead,
without what would let it fork. What it does is told in a few words, and what it took is counted.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio import get_cancelled_exc_class
from anyio.abc import TaskGroup

from reverie.agent.mail.mailbox import AgentInbox, InMemoryQueue
from reverie.agent.subagents.registry import AgentRecord, AgentType
from reverie.agent.subagents.spawn import (
    OWN_TREE,
    SOURCE,
    AgentSpec,
    AllowedTools,
    RunningAgent,
    Worktree,
    model_named,
    not_for_forks,
    spawn_agent,
)
from reverie.concurrency import alone
from reverie.errors import ReverieError
from reverie.providers.costs import price_of
from reverie.session import worker as forks
from reverie.session.budget import weight
from reverie.session.turn import ToolStarted, TurnEvent, TurnResult
from reverie.session.worker import AgentOutcome, Worker
from reverie.text.safety import clean
from reverie.toolbox.permissions import PermissionPolicy
from reverie.toolbox.read_back import SealedCalls
from reverie.toolbox.tool import NoTools, StoredResults
from reverie.toolbox.toolbox import Toolbox
from reverie.transcript.blocks import dump, text_block
from reverie.transcript.fold import apply
from reverie.transcript.records import Entry, HeadSet, Usage, UserMessage
from reverie.transcript.tasks import Task
from reverie.transcript.view import EMPTY, View
from reverie.wire.reply import Reply, ToolCall
from reverie.wire.request import Request, render
from reverie.world import ForkSpec, Model

if TYPE_CHECKING:
    from reverie.agent.subagents.pool import AgentPool, AgentRequest


class AgentRun:
    """An agent in this process: `scope` ends it, and `over` says that nothing of it runs."""

    def __init__(
        self,
        crew: AgentPool,
        member: AgentRecord,
        type_: AgentType,
        wanted: AgentRequest,
        tree: Worktree | None,
        tray: InMemoryQueue,
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
            result.append(await (self._run_fork() if self.wanted.mode == "fork" else self._fresh()))
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
            hire = AgentSpec(member.id, member.name, self.type, path, tools, policy)
            agent = await stack.enter_async_context(spawn_agent(crew.ground, hire, model))
            outcome: AgentOutcome = "failed"
            try:
                result = await self._at(agent).work(self.wanted.task)
                outcome = "completed"
                return result
            except get_cancelled_exc_class():
                outcome = "cancelled"
                raise
            finally:
                self._count_usage(agent)
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

    async def _run_fork(self) -> TurnResult:
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
                agent = RunningAgent(child, crew.model, tools, ground.limits, ground.turn_rules)
                try:
                    return await self._at(agent).work(self.wanted.task)
                finally:
                    self._count_usage(agent)

    def _at(self, agent: RunningAgent) -> RunningAgent:
        """The agent with its letters, watched."""
        agent.letters = AgentInbox(lambda: agent.worker.view, [self.tray]).letters
        agent.on_event = partial(self._saw, agent)
        return agent

    def _count_usage(self, agent: RunningAgent) -> None:
        member, tally = self.member, agent.worker.tally
        member.requests, member.tokens = tally.requests, agent.worker.view.tokens
        member.weighted = weight(tally.usage, self._crew.ground.settings)

    def _saw(self, agent: RunningAgent, event: TurnEvent) -> None:
        if isinstance(event, Reply):
            self._count_usage(agent)
        elif isinstance(event, ToolStarted):
            self.member.doing = doing(event.call)
            self._summarise(agent)

    def _summarise(self, agent: RunningAgent) -> None:
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


# --- What an agent does right now, in three to five words: "Reading validate.py".
#
# Without a model it is told from its last tool call. With one, every half minute a background
# agent's own model is asked on its cached prefix, or the model that writes summaries on the last
# few messages, whichever costs less; with all tools denied, counted before it leaves, and never
# where nothing happened since. An answer that is no such phrase is not shown.


STATUS_SOURCE = "agent_summary"
TAIL = 4_000
"""Characters of the last messages that another model is shown."""
OUTPUT = 20
"""Tokens that such an answer has, about."""
MAX_LETTERS = 60
ASK = """\
Say what you are doing right now in three to five words, in the present tense, beginning with a verb
that ends in -ing, and name the file or function: "Fixing null check in validate.py". Not vague, not
in the past tense. Answer with these words alone; call no tool."""
_VERBS: Mapping[str, tuple[str, str]] = {
    "Read": ("Reading", "file_path"),
    "ReadBack": ("Reading back", "reference"),
    "Edit": ("Editing", "file_path"),
    "Write": ("Writing", "file_path"),
    "Grep": ("Searching for", "pattern"),
    "Glob": ("Looking for files", "pattern"),
    "List": ("Listing", "path"),
    "Bash": ("Running", "command"),
    "SearchMemory": ("Searching memory for", "query"),
    "SearchSessions": ("Searching sessions for", "query"),
    "SendMessage": ("Writing to", "to"),
}
_PHRASE = re.compile(r"[A-Z][\w-]*ing\b[^\n]{2,}")


def doing(call: ToolCall) -> str:
    """What a call does, without a model."""
    verb, member = _VERBS.get(call.name, (f"Calling {call.name}", ""))
    value = str(call.arguments.get(member, "")) if member else ""
    if member in ("file_path", "path"):
        value = value.rstrip("/").rpartition("/")[2] or "the project"
    words = clean(value).split()
    return " ".join((verb, *words[: max(1, 5 - len(verb.split()))]))[:MAX_LETTERS]


def phrase(text: str) -> str:
    """An answer as it is shown; "" where it is no such phrase."""
    line = clean(text).strip().strip("\"'.").strip()
    fits = _PHRASE.fullmatch(line) and 2 <= len(line.split()) <= 7 and len(line) <= MAX_LETTERS
    return line if fits else ""


async def summary(worker: Worker, model: Model, cheap: Model | None) -> str:
    """The phrase that a model gives; "" where it gives none."""
    if worker.view.sent is None:
        return ""
    if cheap is not None and tail_is_cheaper(worker, model, cheap):
        request = _tail(worker.view, cheap.name)
        ask = worker.world.ask
        if ask is None:
            return ""
        reply = await ask(request, cheap)
        return phrase(reply.text)
    spec = ForkSpec(STATUS_SOURCE, ASK, Task(STATUS_SOURCE))
    try:
        async with worker.forked(STATUS_SOURCE) as child:
            return phrase((await forks.run(child, spec, model, NoTools())).text)
    except ReverieError:
        return ""


def tail_is_cheaper(worker: Worker, model: Model, cheap: Model) -> bool:
    """Whether another model on the last messages costs less than this one on its own prefix."""
    settings = worker.world.settings
    prefix = weight(Usage(len(ASK) // 4, worker.view.tokens, 0, OUTPUT), settings)
    tail = weight(Usage((TAIL + len(ASK)) // 4, 0, 0, OUTPUT), settings)
    one, other = price_of(model.name), price_of(cheap.name)
    if cheap.capabilities.free:
        return True
    if one is None or other is None:  # not to be compared: only by tokens
        return tail < prefix
    return tail * other.input < prefix * one.input


def _tail(view: View, model: str) -> Request:
    """A request of its own: the last messages as text, and what is asked."""
    texts: list[str] = []
    for item in view.items:
        for piece in item.pieces:
            found = piece.block.text or dump(piece.block.value.get("input", ""))
            texts.append(f"{item.role}: {found}")
    shown = "\n".join(texts)[-TAIL:]
    told = f"The end of what an agent has done so far:\n\n{shown}\n\n{ASK}"
    made = apply(EMPTY, Entry("head", "", 0.0, HeadSet(model)))
    message = UserMessage((text_block(told),))
    return render(apply(made, Entry("ask", "", 0.0, message)), STATUS_SOURCE, Task(STATUS_SOURCE))
