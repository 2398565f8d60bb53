"""Who lives in the world: agents that are processes of their own, their talks, and the way to the
team's server."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reverie.errors import BudgetExceeded, Held
from reverie.session import Session, start_session
from reverie.store import Changed, ConsolidationLock, land
from reverie.team import (
    EntryChange,
    EntryVersion,
    HttpRefusal,
    Offline,
    RemoteState,
    Stale,
    sync_memory,
)
from reverie.testing import ScriptedModel, call, reply
from reverie.topics import Origin, Trust
from reverie.transcript import Usage
from reverie.wire import tool_result
from tests.proxy.clients import unmarked
from tests.session.doors import LARGE, TOOLS
from tests.simulation.model import CALLS, KEYS, LIMIT, PLACE, REPO, STALE, Broken

if TYPE_CHECKING:
    from tests.simulation.world import World

SAVED = Origin("save", Trust.USER, agent="user")
DREAMT = Origin("dream", Trust.AGENT, agent="dream")
Steps = AsyncGenerator[None, None]


class Link:
    """The way to the server: it may be cut before or after, carry twice, or let others through."""

    def __init__(self, world: World, *, fails: bool = True) -> None:
        self.url, self.repo = "http://team.test", REPO
        self._world, self._fails = world, fails

    def _passes(self) -> None:
        if self._fails and self._world.chance.random() < 0.12:
            raise Offline("The link is cut")
        if self._fails and self._world.chance.random() < self._world.theme.others:
            self._world.disturb()

    def state(self, known: str = "") -> RemoteState | None:
        self._passes()
        found = self._world.store.contents(PLACE)
        return None if found.tag == known else found

    def hashes(self, known: str = "") -> RemoteState | None:
        self._passes()
        found = self._world.store.hashes(PLACE)
        return None if found.tag == known else found

    def put(self, drafts: Sequence[EntryChange], expected: str) -> str:
        self._passes()
        world = self._world
        try:
            tag = world.store.put(PLACE, drafts, expected, world.token)
        except HttpRefusal as error:
            raise Stale(str(error)) from error
        for one in drafts:
            world.model.remote[one.key, tag] = one.content or ""
        if self._fails and world.chance.random() < 0.1:  # the same request once more
            with contextlib.suppress(HttpRefusal):
                world.store.put(PLACE, drafts, expected, world.token)
                raise Broken("a write was taken twice")
        if self._fails and world.chance.random() < 0.1:
            raise Offline("The answer is lost")
        return tag

    def log(self, most: int = 100) -> list[EntryVersion]:
        return self._world.store.log(PLACE, most)


class Agent:
    """One process: its own handle on the memory, and what it is in the middle of."""

    def __init__(self, world: World, number: int) -> None:
        self.world, self.number = world, number
        self.memories = world.opened()
        self.doing: Steps | None = None

    async def step(self) -> None:
        """Go on with what it does, or begin something."""
        if self.doing is None:
            kind = self.world.chance.choice(self.world.kinds)
            self.world.trace.append(f"{self.number}:{kind.__name__}")
            self.doing = kind(self)
        try:
            await anext(self.doing)
        except StopAsyncIteration:
            self.doing = None

    async def die(self) -> None:
        """What it was in the middle of never ends; the next process begins anew."""
        if self.doing is not None:
            self.world.trace.append(f"{self.number}:dies")
            await self.doing.aclose()
            self.doing = None
        self.memories.close()
        self.memories = self.world.opened()

    # --- what an agent does, step by step

    async def saves(self) -> Steps:
        world = self.world
        key, data = world.chance.choice(world.theme.keys), world.text()
        self.memories.save(key, data, SAVED)
        world.model.wrote(key, data)
        yield

    async def removes(self) -> Steps:
        key = self.world.chance.choice(KEYS[:3])
        if key in self.world.model.files:
            self.memories.remove(key, SAVED)
            del self.world.model.files[key]
        yield

    async def dreams(self) -> Steps:
        world, model = self.world, self.world.model
        lock = ConsolidationLock(self.memories.root, now=world.clock.now, stale_seconds=STALE)
        try:
            taken = lock.take()
        except Held:
            return
        model.dreamers[self.number] = taken, world.clock.now()
        model.newest = taken
        world.one_dreamer()
        yield
        keys = [key for key in KEYS[:3] if key in model.files]
        here = {key: self.memories.folder.bytes_of(key) for key in keys}
        for _ in range(world.chance.randint(0, 2)):
            yield
        changes: dict[str, bytes | None] = {key: world.text() for key in keys[:2]}
        late = [key for key in changes if model.files.get(key) != here[key]]
        try:
            with lock.landing(taken):
                land(self.memories, changes, here, DREAMT)
        except Held:
            del model.dreamers[self.number]
            return
        except Changed:
            lock.give_back(taken)
            del model.dreamers[self.number]
            return
        if late:
            raise Broken(f"a dream wrote over what came later: {late}")
        if model.newest is not taken:
            raise Broken("a dream landed that had lost its lock")
        del model.dreamers[self.number]
        model.dreams += 1
        for key, data in changes.items():
            assert data is not None
            model.wrote(key, data)

    async def spends(self) -> Steps:
        world, model = self.world, self.world.model
        price = float(world.chance.randint(50, 400))
        day = world.day()
        try:
            known = world.budget.reserve("dream", price)
        except BudgetExceeded:
            return
        model.spent[day] = model.spent.get(day, 0.0) + price
        model.calls[day] = model.calls.get(day, 0) + 1
        if model.spent[day] > LIMIT or model.calls[day] > CALLS:
            raise Broken(f"the day's budget is passed: {model.spent[day]:.0f} of {LIMIT}")
        yield
        used = world.chance.randint(1, int(price))
        world.budget.settle(known, Usage(used))
        model.spent[day] += used - price

    async def syncs(self) -> Steps:
        world = self.world
        with contextlib.suppress(Offline, Stale, Changed):
            sync_memory(self.memories, Link(world), now=world.clock.now)
        world.take_over()
        yield

    async def mate(self) -> Steps:
        self.world.mate_writes()
        yield

    async def talks(self) -> Steps:
        talk = await Talk.begun(self.world, self.number)
        yield
        for _ in range(self.world.chance.randint(1, 2)):
            await talk.round()
            yield
        await talk.again()
        await talk.round()
        await talk.over()


class Talk:
    """A real session: what it sends only grows, also after it was opened again."""

    def __init__(self, world: World, session: Session, project: Path) -> None:
        self.world, self.session, self.project = world, session, project
        self.sent: list[Any] = []
        self.said = 0

    @classmethod
    async def begun(cls, world: World, number: int) -> Talk:
        project = world.base / f"work{number}"
        project.mkdir(exist_ok=True)
        return cls(world, await cls._opened(world, project), project)

    @staticmethod
    async def _opened(world: World, project: Path, **more: Any) -> Session:
        return await start_session(
            project,
            model=ScriptedModel([]),
            system="You help.",
            home=world.base / "home",
            environ={"HOME": str(world.base)},
            clock=world.clock,
            tools=TOOLS,
            **more,
        )

    async def round(self) -> None:
        name = f"t{self.said}"
        await self.session.add(f"words {self.said}")
        self._extends((await self.session.prepare()).body())
        await self.session.observe(reply("I look", call("Bash", name)))
        await self.session.add(tool_result(name, self.world.chance.choice(("short", LARGE))))
        self._extends((await self.session.prepare()).body())
        await self.session.observe(reply("done"))
        self.said += 1

    async def again(self) -> None:
        await self.session.aclose()
        self.session = await self._opened(self.world, self.project, resume=self.session.id)

    async def over(self) -> None:
        await self.session.aclose()

    def _extends(self, body: str) -> None:
        value = json.loads(body)
        blocks = [(m["role"], b) for m in unmarked(value["messages"]) for b in m["content"]]
        if blocks[: len(self.sent)] != self.sent:
            raise Broken("what was sent before is sent differently")
        self.sent = blocks
