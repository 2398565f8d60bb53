"""The agents of one session: who they are, how each stands, and that none outlives it.

An agent in the foreground runs inside the call that asked for it and ends with it; one in the
background, a fork among them, is a task of the crew's own; a teammate is a process of its own
(`teammates`). How many run at once is limited for the whole process. What one in the background
brings is a letter to the lead, which joins its next tool round or turn: the lead's context gets
results, never transcripts. Leaving the crew ends all of them. A fork cannot be told to fork: the
first record of its transcript says what it is, and no text can.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import anyio
from anyio import CapacityLimiter, WouldBlock, get_cancelled_exc_class
from anyio.lowlevel import RunVar

from reverie.agent.mail.mailbox import (
    AgentInbox,
    InMemoryQueue,
    LeaderMailboxes,
    MessageQueue,
    is_there,
)
from reverie.agent.mail.messages import (
    EVERYBODY,
    LEAD,
    AgentMessage,
    check_name,
    delivered_numbers,
    truncate_result,
)
from reverie.agent.mail.remote import BRIDGE_SENDER, SESSION_SENDER
from reverie.agent.subagents import spawn
from reverie.agent.subagents.registry import (
    LOST,
    AgentMode,
    AgentRecord,
    AgentRecords,
    AgentType,
    AgentTypes,
)
from reverie.agent.subagents.runner import AgentRun
from reverie.agent.subagents.spawn import AgentContext, Worktree, outcome_text
from reverie.concurrency import alone
from reverie.errors import InvalidInput, NotAvailable, NotFound, ReverieError
from reverie.session.jobs import LoopTasks
from reverie.session.session import Session
from reverie.text.format import plural
from reverie.toolbox.tool import Tool, ToolFailed
from reverie.toolbox.toolbox import Toolbox
from reverie.transcript.records import UserMessage
from reverie.world import Model, Notice

if TYPE_CHECKING:
    from reverie.agent.mail.remote import RemoteMail
    from reverie.agent.subagents.teammates import Teammates

MAX_KEPT = 100
"""Agents that are over and still listed."""
LETTING_GO = 5.0
"""Seconds that cancelled agents have to leave a whole transcript."""
_limits: RunVar[CapacityLimiter] = RunVar("reverie.agents")


def agents_limit(at_once: int) -> CapacityLimiter:
    """The one limit for agents in this process."""
    try:
        return _limits.get()
    except LookupError:
        _limits.set(CapacityLimiter(at_once))
        return _limits.get()


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """What somebody asks of an agent."""

    task: str
    about: str
    type: str = "general"
    name: str = ""
    mode: AgentMode = "foreground"
    worktree: bool = False
    plan: bool = False  # a teammate that may change nothing until its plan is approved


class AgentPool:
    """All agents of one session."""

    def __init__(
        self,
        session: Session,
        model: Model,
        box: Callable[[], Toolbox],
        ground: AgentContext,
        types: Callable[[], AgentTypes],
        send_tool: Callable[[AgentPool, str], Tool],
    ) -> None:
        self.session = session
        self.model = model
        self.ground = ground
        self.types = types
        self.members: dict[str, AgentRecord] = {}
        self.teammates: Teammates | None = None
        self.abroad: RemoteMail | None = None
        newest = max(delivered_numbers(session.view.entries).values(), default=0)
        self._numbers = count(newest + 1)  # one series for all: none comes twice, resumed or forked
        self.inbox = InMemoryQueue(LEAD, self._next_number)
        self.box = box
        self.send_tool = send_tool
        self.tasks = LoopTasks()
        folder = None if ground.library is None else ground.library.folder
        self._roster = AgentRecords(folder, session.id)
        self._at_work: dict[str, AgentRun] = {}
        self._limit = agents_limit(ground.settings.agents_at_once)
        self._counts: dict[str, int] = {}
        self._boxes: list[MessageQueue] = [self.inbox]
        self._mail: LeaderMailboxes | None = None
        self._post = AgentInbox(lambda: session.view, self._boxes)

    # --- how they stand

    @property
    def running(self) -> tuple[AgentRecord, ...]:
        return tuple(one for one in self.members.values() if one.is_open)

    def find(self, name: str) -> AgentRecord:
        found = self.members.get(name)
        if found is None:
            known = ", ".join(one.name for one in self.running) or "none"
            raise NotFound("there is no such agent", where=name[:80], do=f"There are: {known}")
        return found

    def resume(self) -> tuple[AgentRecord, ...]:
        """What became of the agents that an earlier process of this session had: those that
        worked when it ended are lost, since none outlives it. Gives the lost ones."""
        library = self.ground.library
        if library is not None and is_there(library.path / self.session.id):
            self._opened_mail()  # letters of an earlier process may wait
        lost: list[AgentRecord] = []
        for member in self._roster.read():
            if member.is_open:
                member.state, member.reason = "lost", LOST
                member.ended = self.ground.clock.now()
                self.changed(member)
                lost.append(member)
            self.members[member.name] = member
        for member in lost:
            self.tell(member, f"This agent is lost: {LOST}. {_where(member)}".strip())
            self._say(f"{member.name} is lost: {LOST}", "warning")
        return tuple(lost)

    def stands(self, name: str) -> str:
        """A name, and how who has it stands."""
        member = self.members.get(name)
        if member is None:
            return name
        return f"{name} ({member.state}{f': {member.doing}' if member.doing else ''})"

    def listed(self) -> str:
        """All of them in lines, for the lead's model."""
        return "\n".join(one.line for one in self.members.values())

    def letters(self) -> list[UserMessage]:
        """What waits for the lead."""
        return self._post.letters()

    @property
    def waiting(self) -> int:
        """How many letters wait for the lead."""
        return len(self._post.waiting())

    def deliver(self, letter: AgentMessage) -> AgentMessage:
        """A letter to the lead that came from outside: it is on the disk when this returns."""
        if self.ground.library is None:
            return self.inbox.put(letter)
        return self._opened_mail().put(letter)

    def _opened_mail(self) -> LeaderMailboxes:
        if self._mail is None:
            library = self.ground.library
            if library is None:
                raise NotAvailable(
                    "a private session has no teammates", do="Use an agent in the background"
                )
            self._mail = LeaderMailboxes(library.path / self.session.id, self.ground.say)
            self._mail.own.clear(self._post.delivered)
            self._boxes.append(self._mail.own)
        return self._mail

    # --- a new one

    async def start(self, wanted: AgentRequest) -> str:
        """Let an agent work: its result, or where it is not waited for, its name."""
        if not wanted.task.strip():
            raise InvalidInput("an agent needs a task", do="Give a prompt")
        type_ = self.types().get(wanted.type)
        member = self._member(wanted)
        self._take_place(member)
        try:
            if wanted.mode == "teammate":
                return await self._start_teammate(member, type_, wanted)
            tree = await self._tree(member, wanted)
            begun = self._begin(member, type_, wanted, tree)
        except BaseException:
            self._limit.release_on_behalf_of(member.id)
            self.members.pop(member.name, None)
            raise
        work = partial(self._run, begun)
        if wanted.mode == "foreground":
            return await work()
        self.tasks.start_soon(partial(self._behind, member, work))
        return (
            f"{member.name} works in the background. What it brings comes to you as a message; "
            f"SendMessage to {member.name} reaches it."
        )

    def _next_number(self) -> int:
        return next(self._numbers)

    def _take_place(self, member: AgentRecord) -> None:
        try:
            self._limit.acquire_on_behalf_of_nowait(member.id)
        except WouldBlock:
            most = int(self._limit.total_tokens)
            raise ToolFailed(
                f"{plural(most, 'agent')} already run", do="Wait for one, or do it yourself"
            ) from None
        self.members.pop(member.name, None)
        self.members[member.name] = member

    def _member(self, wanted: AgentRequest) -> AgentRecord:
        name = check_name(wanted.name) if wanted.name else self._name(wanted.type)
        before = self.members.get(name)
        reserved = name == LEAD or name.startswith((SESSION_SENDER, BRIDGE_SENDER))
        if reserved or (before is not None and before.is_open):
            raise InvalidInput("this name is taken", where=name, do="Choose another")
        for old in [one.name for one in self.members.values() if not one.is_open][:-MAX_KEPT]:
            del self.members[old]
        now = self.ground.clock.now()
        return AgentRecord(str(uuid4()), name, wanted.type, wanted.about, wanted.mode, began=now)

    def _name(self, type_: str) -> str:
        base = type_.replace(":", "-")
        while True:
            self._counts[base] = self._counts.get(base, 0) + 1
            name = f"{base}-{self._counts[base]}"
            if name not in self.members:
                return name

    async def _tree(self, member: AgentRecord, wanted: AgentRequest) -> Worktree | None:
        if not wanted.worktree:
            return None
        place = self.ground.place
        tree = await spawn.make(place.worktree, member.name, place.environ)
        member.worktree = str(tree.path)
        return tree

    def _begin(
        self, member: AgentRecord, type_: AgentType, wanted: AgentRequest, tree: Worktree | None
    ) -> AgentRun:
        tray = InMemoryQueue(member.name, self._next_number)
        begun = AgentRun(self, member, type_, wanted, tree, tray)
        self._at_work[member.name] = begun
        self._roster.write(member)
        return begun

    # --- its work

    async def _behind(self, member: AgentRecord, work: Callable[[], Awaitable[str]]) -> None:
        text, fault = await alone(work(), "")
        told = text or f"[It failed: {fault}]"
        self.tell(member, told)
        self._say(f"{member.name} {member.state}: {member.about}", "info")

    async def _run(self, at_work: AgentRun) -> str:
        member = at_work.member
        member.state, result = "running", ""
        try:
            with at_work.scope:
                ended = await at_work.run()
                member.state = "completed" if ended.outcome == "completed" else "limit"
                member.reason, result = ended.reason, outcome_text(ended)
            if at_work.scope.cancelled_caught:
                member.state = "cancelled"
                result = f"[It was ended: {member.reason or 'somebody cancelled it'}]"
        except get_cancelled_exc_class():
            member.state = "cancelled"
            raise
        except BaseException as error:
            member.state, member.reason = "failed", str(error)
            raise
        finally:
            with anyio.CancelScope(shield=True):
                result = await self._over(member, at_work.tree, result)
            at_work.over.set()
        return result

    async def _over(self, member: AgentRecord, tree: Worktree | None, result: str) -> str:
        """It is over, however it ended: what stays of it is written down."""
        del self._at_work[member.name]
        self._limit.release_on_behalf_of(member.id)
        if tree is not None:
            kept, fault = await alone(spawn.settle(tree, self.ground.place.environ), None)
            member.worktree = kept.path if kept else str(tree.path)
            result = f"{result}\n\n{kept or f'Its worktree {tree.path} stays: {fault}'}".strip()
        member.ended, member.result = self.ground.clock.now(), result
        self.changed(member)
        return result

    # --- teammates

    async def _start_teammate(
        self, member: AgentRecord, type_: AgentType, wanted: AgentRequest
    ) -> str:
        from reverie.agent.subagents.teammates import Teammates

        if self.teammates is None:
            self.teammates = Teammates(self, self._opened_mail())
        tree = await self._tree(member, wanted)
        await self.teammates.start(member, type_, wanted, tree)
        return (
            f"{member.name} works in a process of its own, until it is shut down. What it brings "
            f"comes to you as a message; SendMessage to {member.name} reaches it."
        )

    # --- letters

    def send(self, letter: AgentMessage) -> tuple[str, ...]:
        """Send to one agent, to the lead, or to all; gives the names it went to."""
        if letter.to == EVERYBODY:
            others = [one.name for one in self.running if one.name != letter.sender]
            others += [LEAD] if letter.sender != LEAD else []
            for name in others:
                self.send(replace(letter, to=name))
            return tuple(others)
        if letter.to == LEAD:
            self.inbox.put(letter)
            return (LEAD,)
        member = self.find(letter.to)
        at_work = self._at_work.get(letter.to)
        if at_work is not None:
            at_work.tray.put(letter)
        elif member.mode == "teammate" and member.is_open and self.teammates is not None:
            self.teammates.send(letter)
        else:
            raise NotFound(
                f"this agent is {member.state}", where=letter.to, do="Start another with its task"
            )
        return (letter.to,)

    def tell(self, member: AgentRecord, text: str) -> None:
        """A letter to the lead in the name of one of its agents."""
        now = self.ground.clock.now()
        letter = AgentMessage(
            member.name, LEAD, truncate_result(text), member.about, "result", at=now
        )
        self.inbox.put(letter)

    def _say(self, text: str, level: Any) -> None:
        self.ground.say(Notice("agents", text, level))

    # --- the end

    async def kill(self, name: str) -> bool:
        """End one agent; False where none of that name works."""
        member = self.members.get(name)
        if member is None or not member.is_open:
            return False
        member.reason = member.reason or "it was killed"
        if member.mode == "teammate":
            if self.teammates is not None:
                await self.teammates.end(name)
            return True
        at_work = self._at_work.get(name)
        if at_work is None:
            return False
        at_work.scope.cancel()
        await at_work.over.wait()
        return True

    def ended(self, member: AgentRecord) -> None:
        """A teammate is over."""
        self._limit.release_on_behalf_of(member.id)
        member.ended = self.ground.clock.now()
        self.changed(member)

    def changed(self, member: AgentRecord) -> None:
        """How an agent stands is written down; where that fails it is said, and work goes on."""
        try:
            self._roster.write(member)
        except ReverieError as error:
            self._say(f"how {member.name} stands could not be written: {error}", "warning")

    async def aclose(self) -> None:
        """End all of them, the newest first, and wait until they are gone."""
        with anyio.CancelScope(shield=True):
            for member in reversed(self.running):
                member.reason = member.reason or "its session ended"
                if member.mode != "teammate" and member.name in self._at_work:
                    self._at_work[member.name].scope.cancel()
            if self.teammates is not None:
                await self.teammates.aclose()
            with anyio.move_on_after(LETTING_GO):
                for at_work in tuple(self._at_work.values()):
                    await at_work.over.wait()
            await self.tasks.aclose()
            if self._mail is not None:
                self._mail.close()


def _where(member: AgentRecord) -> str:
    return f"Its worktree is {member.worktree}." if member.worktree else ""
