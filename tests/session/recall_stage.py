"""A session with a memory and its recall, for tests of recall."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from reverie.recall import CLEAR
from reverie.session import MemoryIndex, RankedMemories, Recall, RecalledNotes, Session
from reverie.settings import DEFAULTS, Settings
from reverie.store import MemoryStore, Project, RecallHit
from reverie.testing import ManualClock
from reverie.topics import Origin, Trust, new
from reverie.transcript import Recalled
from reverie.wire import Request, user
from reverie.world import Notice

from .doors import opened

WEB = Origin("save", Trust.UNTRUSTED, tool="WebFetch")
LONG = 30.0  # seconds to wait for what will surely come


def hit(key: str, score: float = 2 * CLEAR) -> RecallHit:
    """A find, clear unless it is said to score less."""
    return RecallHit(key, score, "memory", why=(("words", score),), evidence=score)


@dataclass
class Fixed:
    """A finder that knows what it finds; `asked` is what it was asked."""

    hits: Sequence[RecallHit] = ()
    asked: list[tuple[str, frozenset[str]]] = field(default_factory=list)

    def look(self, text: str, now: float, without: frozenset[str]) -> RankedMemories:
        self.asked.append((text, without))
        return RankedMemories(len(self.hits), tuple(h for h in self.hits if h.file not in without))

    def rehearse(self, now: float) -> RankedMemories:
        return RankedMemories(0, tuple(self.hits))

    def settle(self) -> None:
        """Nothing to bring up to date."""

    def close(self) -> None:
        """Nothing is open."""


@dataclass
class Hanging(Fixed):
    """A finder that does not come back until it is let go."""

    entered: threading.Event = field(default_factory=threading.Event)
    let_go: threading.Event = field(default_factory=threading.Event)
    over: bool = False

    def look(self, text: str, now: float, without: frozenset[str]) -> RankedMemories:
        self.entered.set()
        self.let_go.wait(60)
        self.over = True
        return super().look(text, now, without)


@dataclass
class Stage:
    """One session's recall, driven the way a session drives it."""

    session: Session
    recall: Recall
    memories: MemoryStore
    clock: ManualClock
    notices: list[Notice]

    async def say(self, text: str) -> str:
        await self.session.add(user(text))
        self.recall.begin(self.session.view.leaf, text)
        return self.session.view.leaf

    async def prepare(self, seconds: float = LONG) -> Request:
        await self.session.flush()
        await self.session.append(*await self.recall.ready(seconds))
        return await self.session.prepare()

    async def settled(self) -> None:
        """Wait until the look under way has come to something."""
        look = self.recall._look
        assert look is not None
        with anyio.fail_after(LONG):
            await look.done.wait()

    async def end(self) -> None:
        await self.session.append(*self.recall.ended())
        await self.session.end_turn()

    async def turn(self, text: str, reply: Any) -> str:
        """A whole turn without tools; the text of its request's last message."""
        await self.say(text)
        sent = last_text(await self.prepare())
        await self.session.observe(reply)
        await self.end()
        return sent

    @property
    def ledger(self) -> Recalled:
        return self.session.view.recalled[-1]

    @property
    def injected(self) -> list[str]:
        return [c.file for c in self.ledger.candidates if c.outcome == "injected"]


def last_text(request: Request) -> str:
    return "\n".join(p.block.text for p in request.at(request.count - 1).pieces)


def write(memories: MemoryStore, key: str, body: str, **more: str) -> None:
    """A memory, as another program would put it there."""
    given = {"name": key.removesuffix(".md"), "description": "", "type": "project", **more}
    path = memories.folder.root / key
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(new(key, body=body, **given).data)


async def _alone(session: Session) -> None:
    """Take away the session's own recall: the stage drives one of its own."""
    own: Recall | None = getattr(session, "recall", None)
    if own is not None:
        setattr(session, "recall", None)  # noqa: B010
        await anyio.to_thread.run_sync(own.close)


@asynccontextmanager
async def stage(
    home: Path,
    project: Path,
    *,
    finder: Any = None,
    selector: Any = None,
    settings: Settings = DEFAULTS,
    **parts: Any,
) -> AsyncGenerator[Stage]:
    os.makedirs(project, exist_ok=True)
    clock, notices = ManualClock(), list[Notice]()
    with MemoryStore.of(
        Project.at(project, home=home, environ={}, settings=settings), now=clock.now
    ) as memories:
        async with (
            opened(
                home, project, memories=memories, settings=settings, clock=clock,
                say=notices.append, **parts,
            ) as session,
            anyio.create_task_group() as group,
        ):  # fmt: skip
            await _alone(session)
            index = MemoryIndex(memories.folder.root, session.library.path, say=notices.append)
            notes = RecalledNotes(memories, project, session.id, settings, index.alone)
            recall = Recall(session, group, finder=finder or index, notes=notes, selector=selector)
            try:
                yield Stage(session, recall, memories, clock, notices)
            finally:
                if isinstance(finder, Hanging):
                    finder.let_go.set()
                recall.ended()
                group.cancel_scope.cancel()
                recall.close()
                index.close()
