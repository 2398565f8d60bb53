"""A model that keeps what it was sent and what it answered, and one that answers from that.

An answer is found by its session, its source (main, extract_memories, …) and its place among
those, so that what runs beside the conversation may come in any order. Folders and session ids
differ from run to run: in what is kept, names stand for them. Keys are never seen here.

A session whose background work is over before its conversation goes on.

So one run of a course is like another, however long an answer takes; what is sent is what a
session in a hurry would send too, in one of the orders it may happen in.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from reverie.apps.replay import Meter
from reverie.errors import BudgetExceeded, PromptTooLong, ProviderError
from reverie.session import Session, TurnEnding, weight
from reverie.settings import DEFAULTS
from reverie.store import slug
from reverie.transcript import MAIN, Entry, HeadSet, Record, Task, Usage, View, block_of
from reverie.wire import Addable, Delta, Observable, Reply, Request
from reverie.world import Capabilities, Event, Model, World

_MARK = re.compile(r"\[[0-9a-f]{8}\]")  # heads the files of a session; made from their paths
_DREAM = re.compile(r"/dreams/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/")
STEP = 20.0  # seconds of the course's own time between two requests


@dataclass
class Names:
    """What stands for the folders and session ids of one run."""

    root: Path
    _known: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        self._known[str(self.root)] = "{root}"
        self._known[slug(self.root)] = "{slug}"

    def session(self, ident: str, number: int) -> None:
        self._known[ident] = f"{{session-{number}}}"

    def learn(self, text: str) -> None:
        """A dream works in a folder of its own, which only its requests name."""
        for ident in _DREAM.findall(text):
            dreams = sum(name.startswith("{dream-") for name in self._known.values())
            self._known.setdefault(ident, f"{{dream-{dreams + 1}}}")

    def out(self, text: str) -> str:
        """A text of this run with the names in it."""
        for real, name in self._known.items():
            text = text.replace(real, name)
        return _MARK.sub("[mark]", text)

    def back(self, text: str) -> str:
        """A text with names as it is in this run."""
        for real, name in self._known.items():
            text = text.replace(name, real)
        return text


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer."""

    session: int
    turn: int  # 0 outside a turn
    source: str
    request: str  # as it is sent, with names for what differs
    reply: Reply
    cost: float  # by the simulated cache, in input tokens
    read: int
    sent: int

    def answer(self, names: Names) -> dict[str, Any]:
        """What a replay needs of it."""
        content = json.loads(names.out(json.dumps([b.value for b in self.reply.blocks])))
        used = asdict(self.reply.usage) if self.reply.usage else None
        return {
            "session": self.session,
            "source": self.source,
            "content": content,
            "stop_reason": self.reply.stop_reason,
            "usage": used,
        }


@dataclass
class CourseTime:
    """A clock that a course moves; sleeping takes real time and moves nothing."""

    time: float = 0.0

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        import anyio

        await anyio.sleep(seconds)


class RecordingModel:
    """`world.Model` around another: keeps every exchange, and stops at a budget."""

    def __init__(self, inner: Model, names: Names, time: CourseTime, budget: float) -> None:
        self.inner = inner
        self.names = names
        self.time = time
        self.budget = budget
        self.spent = 0.0
        self.session = self.turn = 0
        self.exchanges: list[Exchange] = []
        self._meters: dict[tuple[int, HeadSet], Meter] = {}

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def capabilities(self) -> Capabilities:
        return self.inner.capabilities

    async def look_up(self) -> None:
        look_up = getattr(self.inner, "look_up", None)
        if look_up is not None:
            await look_up()

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        if self.spent >= self.budget:
            raise BudgetExceeded(
                f"the course has used {self.spent:,.0f} of {self.budget:,.0f} weighted tokens",
                do="Raise --budget",
            )
        self.time.time += STEP
        self.names.learn(request.body())
        session, turn, at = self.session, self.turn, self.time.now()
        async for event in self.inner.stream(request):
            if isinstance(event, Reply):
                self._keep(request, event, session, turn, at)
            yield event

    def _keep(self, request: Request, reply: Reply, session: int, turn: int, at: float) -> None:
        used = reply.usage or Usage(uncached=request.tokens)
        self.spent += weight(used, DEFAULTS)
        meter = self._meters.setdefault((session, request.head), Meter(request.head))
        charge = meter.charge(request, request.marks, at)
        output = used.output or sum(b.tokens for b in reply.blocks)
        cost = weight(
            Usage(charge.plain, charge.read, charge.written, output, charge.written_1h), DEFAULTS
        )
        body = self.names.out(request.body())
        self.exchanges.append(
            Exchange(session, turn, request.source, body, reply, cost, charge.read, charge.total)
        )

    def answers(self) -> Iterator[str]:
        """The lines of a recording."""
        told = {"model": self.name, "capabilities": asdict(self.capabilities)}
        yield json.dumps(told, ensure_ascii=False)
        for one in self.exchanges:
            yield json.dumps(one.answer(self.names), ensure_ascii=False)

    def requests(self) -> Iterator[str]:
        """Every exchange whole, a line each."""
        for one in self.exchanges:
            whole = one.answer(self.names) | {"request": json.loads(one.request)}
            yield json.dumps(whole, ensure_ascii=False)


class ReplayedModel:
    """`world.Model` that answers from a recording."""

    def __init__(self, lines: Iterator[str], names: Names) -> None:
        told: dict[str, Any] = json.loads(next(lines))
        known: dict[str, Any] = told["capabilities"]
        known |= {name: tuple(known[name]) for name in ("lifetimes", "thinking")}
        self.name: str = told["model"]
        self.capabilities = Capabilities(**known)
        self.session = 0
        self._names = names
        self._left: dict[tuple[int, str], list[Mapping[str, Any]]] = defaultdict(list)
        for line in lines:
            one: dict[str, Any] = json.loads(line)
            self._left[one["session"], one["source"]].append(one)

    @property
    def unused(self) -> int:
        """Answers that nobody asked for."""
        return sum(map(len, self._left.values()))

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        import anyio

        await anyio.lowlevel.checkpoint()
        waiting = self._left[self.session, request.source]
        if not waiting:
            raise ProviderError("no answer was recorded for this request", where=request.source)
        one = waiting.pop(0)
        content = json.loads(self._names.back(json.dumps(one["content"])))
        used = Usage(**one["usage"]) if one["usage"] else None
        reply = Reply(
            tuple(block_of(b) for b in content), used, one["stop_reason"], self.name, "recorded"
        )
        if reply.text:
            yield Delta("text", reply.text)
        yield reply


# A session whose background work is over before its conversation goes on


LONGEST = 4 * 3_600.0  # seconds for one piece of background work: somebody may be typing


async def jobs_over(session: Session) -> None:
    """Wait until nothing runs behind a conversation."""
    while running := session.jobs.running:
        await session.jobs.wait(running[0], LONGEST)
    await session.flush()


@dataclass(frozen=True, slots=True)
class OneAtATime:
    """`turn.Talk` over a session."""

    session: Session

    @property
    def view(self) -> View:
        return self.session.view

    @property
    def world(self) -> World:
        return self.session.world

    async def add_messages(self, *said: Addable) -> None:
        await self.session.add_messages(*said)

    async def append(self, *records: Record) -> tuple[Entry, ...]:
        return await self.session.append(*records)

    async def render_request(self, task: Task = MAIN) -> Request:
        return await self.session.render_request(task)

    async def record_reply(self, reply: Observable) -> Reply:
        found = await self.session.record_reply(reply)
        await jobs_over(self.session)
        return found

    def responding(self) -> None:
        self.session.responding()

    async def shorten_request(self, error: PromptTooLong) -> Request:
        return await self.session.shorten_request(error)

    async def record_turn_end(self, outcome: TurnEnding = "completed") -> None:
        await self.session.record_turn_end(outcome)
