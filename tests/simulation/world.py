"""Several agents of one memory folder, a team's server behind a link that fails, and one seed.

Everything is real but time, the disk's slowness and the network: agents open the same folder, each
as a process would; their work is cut into steps, and the seed says who goes next, who dies, when
the clock jumps, and what the link loses or sends twice. What must hold is judged by a model that
knows only what was acknowledged, and shares no code with the store.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from reverie.errors import BudgetExceeded, Held, ReverieError
from reverie.memory.format import index
from reverie.memory.format.entry import new
from reverie.memory.trust import Trust
from reverie.memory.versions import Origin
from reverie.session.budget import Budget
from reverie.session.session import Session
from reverie.settings import DEFAULTS
from reverie.store import landing
from reverie.store.consolidation import Consolidation, Taken
from reverie.store.files import Changed, Folder
from reverie.store.memories import Memories
from reverie.store.plain import digest
from reverie.team.client import Offline, Stale
from reverie.team.database import open_database
from reverie.team.round import sync
from reverie.team.store import TeamStore
from reverie.team.tokens import Token
from reverie.team.values import Draft, HttpRefusal, KeptVersion, RemoteState, sha256_of
from reverie.testing import ManualClock, ScriptedModel, call, reply
from reverie.transcript.records import Usage
from reverie.wire.given import tool_result
from tests.proxy.clients import unmarked
from tests.session.doors import LARGE, TOOLS

SAVED = Origin("save", Trust.USER, agent="user")
DREAMT = Origin("dream", Trust.AGENT, agent="dream")
REPO = "acme/reader"
PLACE = ("acme", REPO)
KEYS = ("a.md", "b.md", "c.md", "team/s.md", "team/t.md")
LIMIT, CALLS = 1_000, 6
STALE = 3_600.0
Steps = AsyncGenerator[None, None]


class Broken(AssertionError):
    """Something that must hold does not."""


@dataclass(slots=True)
class Model:
    """What was acknowledged, as whoever was told would remember it."""

    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    ever: list[tuple[str, bytes]] = field(default_factory=list[tuple[str, bytes]])
    remote: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    spent: dict[str, float] = field(default_factory=dict[str, float])
    calls: dict[str, int] = field(default_factory=dict[str, int])
    dreamers: dict[int, tuple[Taken, float]] = field(default_factory=dict[int, tuple[Taken, float]])
    newest: Taken | None = None
    dreams: int = 0

    def wrote(self, key: str, data: bytes) -> None:
        self.files[key] = data
        self.ever.append((key, data))


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

    def put(self, drafts: Sequence[Draft], expected: str) -> str:
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

    def log(self, most: int = 100) -> list[KeptVersion]:
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
        lock = Consolidation(self.memories.root, now=world.clock.now, stale_seconds=STALE)
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
                landing.land(self.memories, changes, here, DREAMT)
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
            sync(self.memories, Link(world), now=world.clock.now)
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
        return await Session.start(
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


@dataclass(frozen=True, slots=True)
class Theme:
    """What agents of a seed do most: everything at once would seldom meet."""

    steps: int
    kinds: tuple[tuple[Callable[[Agent], Steps], int], ...]
    keys: tuple[str, ...] = KEYS
    most: int = 8  # agents
    jumps: float = 0.06
    others: float = 0.3  # how often somebody else goes on while one waits for the server


THEMES = (
    Theme(12, ((Agent.saves, 4), (Agent.removes, 1), (Agent.dreams, 2), (Agent.syncs, 2))),
    Theme(22, ((Agent.saves, 2), (Agent.dreams, 5)), KEYS[:1], 4, jumps=0.2),
    Theme(50, ((Agent.spends, 1),)),
    Theme(10, ((Agent.saves, 1), (Agent.syncs, 2), (Agent.mate, 1)), KEYS[3:4], 4, others=0.6),
    Theme(14, ((Agent.saves, 1), (Agent.spends, 4), (Agent.dreams, 2), (Agent.removes, 1))),
    Theme(5, ((Agent.talks, 4), (Agent.saves, 1)), most=3),
)


class World:
    """All of it, by one seed."""

    def __init__(self, base: Path, seed: int) -> None:
        self.base, self.seed = base, seed
        self.chance = Random(f"simulation:{seed}")
        self.clock = ManualClock()
        self.model = Model()
        self.trace: list[str] = []
        self._texts = 0
        self._disturbing = False
        self.store = TeamStore(open_database(str(base / "team.sqlite3")), now=self.clock.now)
        self.token: Token = self.store.create_token(org="acme", repo="*", author="us")[1]
        self.mate: Token = self.store.create_token(org="acme", repo="*", author="mate")[1]
        settings = replace(
            DEFAULTS, background_tokens_per_day=LIMIT, background_calls_per_day=CALLS
        )
        self.budget = Budget(Folder(base / "home"), settings, self.clock)
        self.theme = self.chance.choice(THEMES)
        self.kinds = [kind for kind, weight in self.theme.kinds for _ in range(weight)]
        self.agents = [Agent(self, n) for n in range(self.chance.randint(3, self.theme.most))]

    def opened(self) -> Memories:
        base = self.base / "p"
        return Memories(base / "memory", base / "history", base, now=self.clock.now)

    def text(self) -> bytes:
        self._texts += 1
        body = f"text {self._texts} of seed {self.seed}"
        return new("t.md", name="T", description="about it", type="project", body=body).data

    def day(self) -> str:
        return str(int(self.clock.now() // 86_400))

    def one_dreamer(self) -> None:
        """Whoever holds the lock longer than a dream may has lost it."""
        now = self.clock.now()
        awake = [n for n, (_, since) in self.model.dreamers.items() if now - since < STALE]
        if len(awake) > 1:
            raise Broken(f"{len(awake)} dream at once: agents {awake}")

    def disturb(self) -> None:
        """While somebody waits for the server, others go on: a teammate, or one of ours."""
        if self._disturbing:
            return
        self._disturbing = True
        if self.chance.random() < 0.5:
            self.mate_writes()
        else:
            key, data = self.chance.choice(self.theme.keys), self.text()
            self.agents[0].memories.save(key, data, SAVED)
            self.model.wrote(key, data)
        self._disturbing = False

    def mate_writes(self) -> None:
        key, text = self.chance.choice(("s.md", "s.md", "t.md", "u.md")), self.text().decode()
        draft = Draft(key, text, sha256_of(text))
        tag = self.store.put(PLACE, [draft], self.store.tag(PLACE), self.mate)
        self.model.remote[key, tag] = text

    def take_over(self) -> None:
        """What a sync landed is what the server was given by somebody."""
        with self.opened() as memories:
            for key in memories.folder.all_keys():
                if not key.startswith("team/") or key == "team/MEMORY.md":
                    continue
                data = memories.folder.bytes_of(key)
                known = self.model.files.get(key)
                if data == known:
                    continue
                texts = [t for (k, _), t in self.model.remote.items() if f"team/{k}" == key]
                if data.decode() not in texts:
                    raise Broken(f"nobody wrote what {key} holds")
                if known is not None and known.decode() not in texts and known not in self.lost():
                    raise Broken(f"{key} was written over, and there is no copy of it")
                self.model.wrote(key, data)

    def lost(self) -> list[bytes]:
        """What conflicts cost, as it was put aside."""
        return [one.read_bytes() for one in self.base.glob("p/history/team-lost/*/*")]

    # --- a run

    async def run(self) -> None:
        for _ in range(self.theme.steps):
            agent = self.chance.choice(self.agents)
            turn = self.chance.random()
            if turn < 0.04:
                await agent.die()
            elif turn < 0.04 + self.theme.jumps:
                self.clock.time += self.chance.choice((1.0, 60.0, 2 * STALE, 86_400.0, -30.0))
            else:
                await agent.step()
        for agent in self.agents:
            if agent.doing is not None:
                async for _ in agent.doing:
                    pass
            agent.memories.close()
        self.check()

    def close(self) -> None:
        for agent in self.agents:
            with contextlib.suppress(ReverieError):
                agent.memories.close()
        self.budget.close()
        self.store.close()

    def check(self) -> None:
        """When all is quiet: nothing acknowledged is lost, and everything fits together."""
        with self.opened() as memories:
            sync(memories, Link(self, fails=False), now=self.clock.now)
            self.take_over()
            files = {
                key: memories.folder.bytes_of(key)
                for key in memories.folder.all_keys()
                if key.endswith(".md") and not key.endswith("MEMORY.md")
            }
            if files != self.model.files:
                wrong = {
                    k for k in files | self.model.files if files.get(k) != self.model.files.get(k)
                }
                raise Broken(f"the folder holds something else: {sorted(wrong)}")
            self._index(memories, files)
            for key, data in self.model.ever:
                if memories.history.content(digest(data)) != data:
                    raise Broken(f"a version of {key} is lost")
            self._team(files)

    def _index(self, memories: Memories, files: dict[str, bytes]) -> None:
        found = memories.folder.index()
        own = [key for key in files if not key.startswith("team/")]
        faults = index.check(found, own)
        pointed = {one.key for one in found.pointers if not one.key.startswith("team/")}
        if faults or pointed != set(own):
            raise Broken(f"the index is not that of the folder: {faults}, {pointed ^ set(own)}")

    def _team(self, files: dict[str, bytes]) -> None:
        there = self.store.contents(PLACE).contents
        here = {k.removeprefix("team/"): v.decode() for k, v in files.items() if k[:5] == "team/"}
        there.pop("MEMORY.md", None)
        if there != here:
            raise Broken(f"the team's server holds something else: {set(there) ^ set(here)}")
        for (key, tag), text in self.model.remote.items():
            version = int(tag.strip('"').split("-")[1])
            if self.store.version(PLACE, key, version) != text:
                raise Broken(f"the server lost version {version} of {key}")


@contextlib.contextmanager
def virtual_disk() -> Generator[None]:
    """A disk in memory has nothing to wait for: whether bytes outlive a power cut is asked
    elsewhere."""
    real = os.fsync, os.fdatasync
    os.fsync = os.fdatasync = lambda fd: None
    try:
        yield
    finally:
        os.fsync, os.fdatasync = real
