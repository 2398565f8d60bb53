"""Several agents of one memory folder, a team's server behind a link that fails, and one seed.

Everything is real but time, the disk's slowness and the network: agents open the same folder, each
as a process would; their work is cut into steps, and the seed says who goes next, who dies, when
the clock jumps, and what the link loses or sends twice. What must hold is judged by a model that
knows only what was acknowledged, and shares no code with the store.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from reverie.errors import ReverieError
from reverie.session import Budget
from reverie.settings import DEFAULTS
from reverie.store import Folder, MemoryStore, digest
from reverie.team import EntryChange, TeamStore, Token, open_database, sha256_of, sync_memory
from reverie.testing import ManualClock
from reverie.topics import check, new
from tests.simulation.agents import SAVED, Agent, Link, Steps
from tests.simulation.model import CALLS, KEYS, LIMIT, PLACE, STALE, Broken, Model


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

    def opened(self) -> MemoryStore:
        base = self.base / "p"
        return MemoryStore(base / "memory", base / "history", base, now=self.clock.now)

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
        draft = EntryChange(key, text, sha256_of(text))
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
            sync_memory(memories, Link(self, fails=False), now=self.clock.now)
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

    def _index(self, memories: MemoryStore, files: dict[str, bytes]) -> None:
        found = memories.folder.index()
        own = [key for key in files if not key.startswith("team/")]
        faults = check(found, own)
        pointed = {one.key for one in found.pointers if not one.key.startswith("team/")}
        if faults or pointed != set(own):
            raise Broken(f"the index is not that of the folder: {faults}, {pointed ^ set(own)}")

    def _team(self, files: dict[str, bytes]) -> None:
        there = dict(self.store.contents(PLACE).contents)
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
