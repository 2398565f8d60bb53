"""An agent opened by the worker factory, in its worktree.

One agent of its own context, from its first words to its last: the same in every process.

It has the prompt, tools, model and memory of its type, a transcript beside its lead's, which is
compacted and collapsed like any other, and limits: rounds, a share of the day's budget, time. What
it stores lies among what its session stores. Its cost is counted before a request leaves. It has
no agents of its own and edits nobody else's conversation. What is said to it meanwhile joins at its
next tool round, or begins another turn.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread

from reverie import __version__
from reverie.agent.subagents.registry import AgentType
from reverie.errors import InvalidInput, NotAvailable, StoreError
from reverie.memory.agent_memory import AgentMemory, open_agent_memory
from reverie.session.budget import Budget, MeteredRetries
from reverie.session.conversation import NoLog
from reverie.session.extraction.daily_log import LoggingFiles
from reverie.session.library import NoDisk, OpenTranscript, SessionLibrary
from reverie.session.loop import TurnState
from reverie.session.options import RequestHead
from reverie.session.request_head import SEALED_ROUNDS, head_context, thinking_options
from reverie.session.rules import ProjectRules, TurnRules
from reverie.session.summaries import Transcript
from reverie.session.turn import Inbox, OnEvent, TurnLimits, TurnResult, TurnUsage, ignore_event
from reverie.session.worker import Worker, worker_world
from reverie.settings.catalog import Settings
from reverie.store.files import Folder
from reverie.store.project import Project
from reverie.text.format import plural
from reverie.toolbox.permissions import PermissionPolicy, PermissionRoots, PermissionRule, Verdict
from reverie.toolbox.process import Command, OutputBuffer, run
from reverie.toolbox.read_back import SealedCalls
from reverie.toolbox.tool import DENIED, Registry, StoredResults, Tool, ToolContext
from reverie.toolbox.toolbox import Toolbox
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
class AgentContext:
    """What the agents of one session stand on."""

    session: str
    place: Project
    library: SessionLibrary | None  # None in a private session
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
class AgentSpec:
    """Who is wanted."""

    id: str
    name: str
    type: AgentType
    tree: Path | None = None  # its own worktree
    tools: tuple[Tool, ...] = ()  # beside those of its type
    policy: PermissionPolicy | None = None  # the lead's own, where its person can be asked


@dataclass
class RunningAgent:
    """An agent that works."""

    worker: Worker
    model: Model
    tools: AllowedTools
    limits: TurnLimits
    rules: Callable[[], TurnRules | None]
    letters: Callable[[], Sequence[UserMessage]] = tuple
    on_event: OnEvent = ignore_event
    spend: TurnUsage = field(default_factory=TurnUsage)
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
        turn = TurnState(
            worker,
            MeteredRetries(self.model, worker.budget, worker.world.settings),
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
async def spawn_agent(
    ground: AgentContext, wanted: AgentSpec, model: Model
) -> AsyncGenerator[RunningAgent]:
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
                yield RunningAgent(
                    worker, model, AllowedTools(box), ground.limits, ground.turn_rules
                )
        finally:
            with anyio.CancelScope(shield=True):
                try:
                    await worker.settled()
                finally:
                    worker.close()
    finally:
        if memory is not None:
            memory.close()


def _tools(ground: AgentContext, wanted: AgentSpec) -> list[Tool]:
    known = (tool for tool in ground.registry if tool.name not in LEADS_OWN)
    return [*(tool for tool in known if wanted.type.allows(tool.name)), *wanted.tools]


def _memory(ground: AgentContext, type_: AgentType) -> AgentMemory | None:
    if type_.memory is None or ground.library is None:
        return None
    return open_agent_memory(
        type_.name, type_.memory, ground.place, now=ground.clock.now, say=ground.say
    )


def _with_memory(policy: PermissionPolicy, memory: AgentMemory) -> PermissionPolicy:
    """The same policy, for an agent whose own memory is its to write."""
    return policy.on(replace(policy.ground, writable=(Path(os.path.realpath(memory.folder)),)))


async def _worker(
    ground: AgentContext,
    wanted: AgentSpec,
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
        begun = OpenTranscript(wanted.id, NoLog(), NoDisk(), Transcript(wanted.id))
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
    ground: AgentContext,
    wanted: AgentSpec,
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
    return RequestHead(
        model.name, "\n\n".join(parts), registry.definitions(), context, options
    ).record()


def _context(
    ground: AgentContext, place: Project, worker: Worker, memory: AgentMemory | None
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


def model_named(name: str, ground: AgentContext) -> Model:
    """The model that a type names; ReverieError says what is missing for it."""
    from reverie.embedded.model import EmbeddedModel
    from reverie.providers.selection import model_for

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


# --- A git worktree of an agent's own: made at the commit of the lead's checkout, on a new branch.
#
# It lies in the project's `.reverie/worktrees/NAME`, which git ignores, on the branch
# `agent/NAME`. One that was not changed is removed with its branch; one that was stays, and is
# named. Hooks of the repository do not run. Nothing here commits, merges, or touches the lead's
# own files.


FOLDER = ".reverie/worktrees"
BRANCHES = "agent/"
SECONDS = 120.0
OUTPUT = 1024 * 1024
MAX_SHOWN = 20
_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class Worktree:
    """A worktree that was made for one agent."""

    top: Path  # of the lead's checkout
    path: Path
    branch: str
    base: str  # the commit it began at


@dataclass(frozen=True, slots=True)
class WorktreeResult:
    """What became of a worktree: nothing of it where it was not changed."""

    path: str = ""
    branch: str = ""
    changed: tuple[str, ...] = ()
    commits: int = 0

    def __str__(self) -> str:
        if not self.path:
            return "Its worktree was not changed, and is removed."
        more = len(self.changed) - MAX_SHOWN
        files = ", ".join(self.changed[:MAX_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
        parts = [f"branch {self.branch}"]
        parts += [plural(self.commits, "commit")] if self.commits else []
        parts += [f"not committed: {files}"] if self.changed else []
        return f"Its worktree is kept: {self.path} ({'; '.join(parts)})."


async def make(top: Path, name: str, environ: Mapping[str, str]) -> Worktree:
    """A new worktree; InvalidInput says why there can be none."""
    if not _NAME.fullmatch(name):
        raise InvalidInput("this cannot name a worktree", where=name[:80], do="Use a-z 0-9 _ -")
    if not await to_thread.run_sync(os.path.lexists, top / ".git"):
        raise InvalidInput("a worktree needs a git repository", where=str(top))
    code, base = await _git(top, environ, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if code:
        raise InvalidInput(
            "the repository has no commit yet that a worktree could begin at",
            where=str(top),
            do="Commit something first, or let the agent work without a worktree",
        )
    branch, path = f"{BRANCHES}{name}", top / FOLDER / name
    code, _ = await _git(top, environ, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
    if not code or await to_thread.run_sync(os.path.lexists, path):
        raise InvalidInput(
            "a worktree or branch of this name is there already",
            where=f"{path} ({branch})",
            do="Give the agent another name; or merge what is there, then remove both",
        )
    _write_gitignore(top)
    code, said = await _git(top, environ, "worktree", "add", "-b", branch, str(path), base.strip())
    if code:
        raise StoreError("git could not make a worktree", where=said.strip()[-300:])
    return Worktree(top, path, branch, base.strip())


async def settle(tree: Worktree, environ: Mapping[str, str]) -> WorktreeResult:
    """Remove a worktree that was not changed; of one that was, say what is in it."""
    code, said = await _git(tree.path, environ, "status", "--porcelain", "-z", "-uall")
    changed = tuple(row[3:] for row in said.split("\0") if len(row) > 3)
    _, count = await _git(tree.path, environ, "rev-list", "--count", f"{tree.base}..HEAD")
    commits = int(count) if count.strip().isdecimal() else 0
    if code or changed or commits:  # what cannot be looked at is not removed
        return WorktreeResult(str(tree.path), tree.branch, changed, commits)
    code, said = await _git(tree.top, environ, "worktree", "remove", str(tree.path))
    if code:
        return WorktreeResult(str(tree.path), tree.branch)
    await _git(tree.top, environ, "branch", "-D", tree.branch)
    return WorktreeResult()


def _write_gitignore(top: Path) -> None:
    with Folder(top / FOLDER) as folder:
        if not folder.exists(".gitignore"):
            folder.write(".gitignore", b"*\n")


async def _git(cwd: Path, environ: Mapping[str, str], *words: str) -> tuple[int, str]:
    sink = OutputBuffer(OUTPUT)
    known = {**environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    known.setdefault("PATH", os.defpath)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        known.pop(name, None)
    ended = await run(Command(["git", *_QUIET, *words], cwd, known), sink, SECONDS)
    if ended.cause != "itself":
        raise NotAvailable(f"git did not end ({ended.cause})", where=" ".join(words)[:200])
    return ended.code, sink.data.decode("utf-8", "replace")
