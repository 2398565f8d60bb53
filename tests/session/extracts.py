"""An agent whose background forks follow a script, and ways to look at what they did."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from reverie.agent import Agent, AgentOptions, open_agent
from reverie.session import NAME as EXTRACTION_NAME
from reverie.session import Session, asks_now, consider
from reverie.settings import Settings
from reverie.store import MemoryStore, Project
from reverie.testing import ManualClock, ScriptedModel, reply
from reverie.transcript import Block, Extracted, ExtractTask, Failed, text_block
from reverie.wire import Reply, Request
from reverie.world import Capabilities, Notice, Prices

NAME = EXTRACTION_NAME
Answer = Any
Rounds = Callable[[ExtractTask, int], Answer]


def topic(
    body: str, *, name: str = "A note", about: str = "about it", kind: str = "feedback"
) -> str:
    return f"---\nname: {name}\ndescription: {about}\ntype: {kind}\n---\n\n{body}\n"


@dataclass
class Script:
    """The main agent answers from a list, then with `ok`; forks answer by round."""

    rounds: Rounds
    main: list[Answer] = field(default_factory=list)
    forks: list[Request] = field(default_factory=list)
    told: list[Request] = field(default_factory=list)
    asked: anyio.Event = field(default_factory=anyio.Event)  # a fork was
    _count: int = 0

    def __call__(self, request: Request) -> Answer:
        if request.source != NAME:
            self.told.append(request)
            return self.main.pop(0) if self.main else "ok"
        if not self.forks or request.count < self.forks[-1].count or _fresh(request):
            self._count = 0
        self.forks.append(request)
        self.asked.set()
        self._count += 1
        assert isinstance(request.task, ExtractTask)
        return self.rounds(request.task, self._count)

    @property
    def model(self) -> ScriptedModel:
        return ScriptedModel(self)

    @property
    def free_reads(self) -> ScriptedModel:
        """The same where reading a cached prefix costs nothing, so that a fork reads it."""
        return ScriptedModel(self, capabilities=Capabilities(prices=Prices(read=0.0)))


def _fresh(request: Request) -> bool:
    """Whether a request is a fork's first: its last words are the instruction."""
    last = request.at(request.count - 1).pieces[-1].block
    return last.type == "text" and "You keep the long-term memory of a coding agent" in last.get(
        "text"
    )


def said_last(request: Request) -> str:
    return request.at(request.count - 1).pieces[-1].block.text


def results(request: Request) -> list[dict[str, Any]]:
    """What came back from the calls of the round before."""
    content = json.loads(request.body())["messages"][-1]["content"]
    return [block for block in content if block.get("type") == "tool_result"]


def writes(files: dict[str, str], then: str = "done") -> Rounds:
    """A fork that writes these files, by name, and stops."""

    def rounds(task: ExtractTask, number: int) -> Answer:
        if number > 1:
            return then
        return reply(*(write(name, text) for name, text in files.items()))

    return rounds


def write(name: str, text: str) -> Block:
    """A file as an answer gives it."""
    return text_block(f'<memory file="{name}">\n{text.rstrip()}\n</memory>\n')


def read(name: str) -> str:
    """An answer that asks for a file."""
    return f'<read file="{name}"/>'


def calls(blocks: Sequence[Block], then: str = "done") -> Rounds:
    return lambda _, number: reply(*blocks) if blocks and number == 1 else then


@dataclass
class Stage:
    """One project and home."""

    base: Path
    notices: list[Notice] = field(default_factory=list)
    clock: ManualClock = field(default_factory=ManualClock)

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def project(self) -> Path:
        folder = self.base / "work"
        folder.mkdir(exist_ok=True, parents=True)
        return folder

    def agent(
        self, script: Script | ScriptedModel, **parts: Any
    ) -> AbstractAsyncContextManager[Agent]:
        environ = {"HOME": str(self.base), **parts.pop("environ", {})}
        model = script.model if isinstance(script, Script) else script
        wanted = AgentOptions(self.project, home=self.home, environ=environ, mode="allow", **parts)
        return open_agent(wanted, model, clock=self.clock, say=self.notices.append)

    @asynccontextmanager
    async def memories(self) -> AsyncIterator[MemoryStore]:
        with MemoryStore.of(
            Project.at(self.project, home=self.home, environ={}, settings=Settings()),
            now=self.clock.now,
        ) as found:
            yield found

    def said(self, level: str = "") -> list[str]:
        return [n.text for n in self.notices if n.layer == NAME and level in ("", n.level)]


async def turn(agent: Agent, *said: str) -> None:
    """Turns, each looked through to the end."""
    for text in said:
        await agent.turn(text)
        await looked(agent)


async def considered(session: Session) -> None:
    """What an idle pause does by itself: turns that were not worth a call alone are looked at."""
    if not asks_now(session.view):
        await consider(session, last=True)


async def looked(agent: Agent) -> None:
    await considered(agent.session)
    assert await agent.session.jobs.wait(NAME, 60)
    await agent.session.flush()


def cursor(agent: Agent) -> Extracted | None:
    return agent.session.view.extracted


def failures(agent: Agent) -> list[Failed]:
    found: Iterable[Any] = (e.record for e in agent.session.view.entries)
    return [r for r in found if isinstance(r, Failed) and r.layer == NAME]


def final(*content: Any) -> Reply:
    return reply(*content)
