"""One session played to its end under one policy, and what was counted on the way.

Cost is in units of one input token, output included. Beside it stands what a policy's
savings would cost later: `recovery` for names that have to be read back or asked for
again, `refind` for those that are gone. Every figure follows from the course and the
policy alone; the same replay gives the same figures on any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from reverie.apps.replay.background import Background, BackgroundFigures
from reverie.apps.replay.binding import Bindings
from reverie.apps.replay.course import Course, CourseStep
from reverie.apps.replay.meter import Meter, rules_of
from reverie.apps.replay.needs import FAR, Need, words
from reverie.apps.replay.policies import ReplayPolicy
from reverie.apps.replay.stage import ReplayStage
from reverie.simulator.cache import Charge
from reverie.transcript.blocks import TEXT_BYTES, Block
from reverie.transcript.messages import Message
from reverie.transcript.names import REFERENCE
from reverie.wire.request import Request

Tick: TypeAlias = Callable[[], None]
Moved: TypeAlias = Literal["", "announced", "unannounced"]

ANSWERING = 2.0  # seconds that an answer takes
SLICE = 600  # tokens of a result that reading back by reference brings
CALL = 80  # output tokens of the call that gets something again
LONG_AGO = -(10**9)
NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PlayedRound:
    """One request, and what it cost."""

    tokens: int
    read: int
    written: int
    plain: int
    output: int
    cost: float
    moved: Moved = ""
    why: str = ""  # what announced the move


@dataclass(slots=True)
class NeedsMet:
    """How the needs of one distance were met."""

    here: int = 0
    by_reference: int = 0
    rerun: int = 0
    lost: int = 0

    @property
    def total(self) -> int:
        return self.here + self.by_reference + self.rerun + self.lost


@dataclass(slots=True)
class Played:
    """A session under a policy, counted."""

    policy: ReplayPolicy
    rounds: list[PlayedRound] = field(default_factory=list[PlayedRound])
    near: NeedsMet = field(default_factory=NeedsMet)
    far: NeedsMet = field(default_factory=NeedsMet)
    recovery: float = 0.0
    refind: float = 0.0
    facts: int = 0
    facts_here: int = 0
    results: int = 0
    shown: int = 0  # results that the model was shown whole
    faults: int = 0  # requests in which a call and its result do not stand together
    refused: int = 0  # requests whose thinking is bound to another prefix
    stripped: int = 0
    summaries: int = 0
    background: BackgroundFigures = field(default_factory=BackgroundFigures)
    tokens: int = 0  # of results
    shown_tokens: int = 0  # of these, what the model was shown

    @property
    def cost(self) -> float:
        return sum(r.cost for r in self.rounds)

    @property
    def peak(self) -> int:
        return max((r.tokens for r in self.rounds), default=0)

    @property
    def hit(self) -> float:
        total = sum(r.tokens for r in self.rounds)
        return sum(r.read for r in self.rounds) / total if total else 0.0

    @property
    def shown_whole(self) -> float:
        return round(self.shown / self.results, 4) if self.results else 1.0

    def sums(self) -> tuple[int, int, int, int]:
        """Tokens read, written, not cached, and put out."""
        each = [(r.read, r.written, r.plain, r.output) for r in self.rounds]
        read, written, plain, output = (sum(column) for column in zip(*each, strict=True))
        return read, written, plain, output

    def count(self, moved: Moved) -> int:
        return sum(r.moved == moved for r in self.rounds)

    def over(self, window: int) -> int:
        return sum(r.tokens > window for r in self.rounds)


def _still() -> None:
    """A `Tick` for where nobody watches."""


async def play(
    course: Course, policy: ReplayPolicy, *, thinking: bool = False, tick: Tick = _still
) -> Played:
    """The whole course under a policy. With `thinking`, the recorded thinking is sent, billed
    and bound, on a provider that checks it; without, it is left out."""
    run = _Run(course, policy, thinking)
    for number, step in enumerate(course.steps):
        await run.take(number, step)
        tick()
    return run.done()


class _Run:
    def __init__(self, course: Course, policy: ReplayPolicy, thinking: bool) -> None:
        self.course = course
        self.stage = ReplayStage(course.head, policy, binds=thinking)
        self.meter = Meter(course.head)
        self.rules = rules_of(policy.prices)
        self.background = Background(policy)
        self.bindings = Bindings() if thinking else None
        self.sight = Sight()
        self.wanted = course.needs
        self.played = Played(policy)
        self.last: Request | None = None
        self.recovered: dict[int, int] = {}

    async def take(self, number: int, step: CourseStep) -> None:
        clock = self.stage.clock
        clock.time += step.gap
        if step.role != "assistant":
            await self.stage.add(step.blocks)
            return
        blocks = [b for b in step.blocks if self.bindings or not b.thinking]
        request = await self.stage.prepare()
        charge = self._bill(request, blocks)
        if self.bindings is not None:
            self.played.refused += self.bindings.refuses(request)
            self.bindings.answered(blocks)
        self.played.faults += not paired(self.sight.each(request))
        self._judge(number, self.wanted.get(number, ()), request, charge.total)
        before = self.course.steps[number - 1]
        if before.role == "tool":
            self._expose(before.blocks, request)
        self.last = request
        self.stage.observe(blocks)
        record = self.background.after(self.stage.view, self.stage.world, charge.total)
        if record is not None:
            self.stage.append(record)
        clock.time += ANSWERING

    def _bill(self, request: Request, answer: Iterable[Block]) -> Charge:
        stage = self.stage
        charge = self.meter.charge(request, stage.policy.marks(request), stage.clock.time)
        output = sum(self.meter.tokens(b) for b in answer)
        cost = charge.cost(self.rules, output)
        moved = movement(self.last, request, stage.moved)
        why = ", ".join(dict.fromkeys(stage.moved)) if moved else ""
        found = PlayedRound(
            charge.total, charge.read, charge.written, charge.plain, output, cost, moved, why
        )
        self.played.rounds.append(found)
        return charge

    def _judge(self, at: int, wanted: Sequence[Need], request: Request, size: int) -> None:
        """Which names of this step are at hand, and what getting the others would cost."""
        if not wanted:
            return
        seen = self.sight.of(request)
        live = [text for ref in seen.references if (text := self.stage.stored.get(ref))]
        fetched: dict[int, int] = {}
        gone: dict[int, int] = {}
        for need in wanted:
            met = self.played.far if at - need.seen > FAR else self.played.near
            source = self.course.steps[need.given].blocks
            again = self.recovered.get(need.given, LONG_AGO) > at - 2 * FAR
            whole = sum(self.meter.tokens(b) for b in source)
            if again or seen.holds(need.name):
                met.here += 1
            elif any(need.name in text for text in live):
                met.by_reference += 1
                fetched[need.given] = min(SLICE, whole)
            elif any(b.get("tool_use_id") in seen.calls for b in source):
                met.rerun += 1
                fetched[need.given] = whole
            else:
                met.lost += 1
                gone[need.given] = whole
        self.recovered.update(dict.fromkeys(fetched, at))
        self.played.recovery += sum(self._again(size, one) for one in fetched.values())
        self.played.refind += sum(self._again(size, one) for one in gone.values())

    def _again(self, context: int, size: int) -> float:
        """One more request: it reads the context, writes what it gets, and makes a call."""
        rules = self.rules
        return context * rules.read + size * rules.write["5m"] + CALL * rules.output

    def _expose(self, given: Sequence[Block], request: Request) -> None:
        """Whether the model is shown these new results whole."""
        newest = request.at(request.count - 1)
        sent = {
            p.block.get("tool_use_id"): len(words(p.block))
            for p in newest.pieces
            if p.block.type == "tool_result"
        }
        for block in given:
            if block.type == "tool_result":
                whole, seen = len(words(block)), sent.get(block.get("tool_use_id"), -1)
                self.played.results += 1
                self.played.shown += seen >= whole
                self.played.tokens += whole // TEXT_BYTES
                self.played.shown_tokens += min(whole, max(0, seen)) // TEXT_BYTES

    def done(self) -> Played:
        played = self.played
        played.stripped = self.stage.stripped
        played.background = self.background.figures
        played.facts = len(self.course.facts)
        if self.last is not None:
            seen = self.sight.of(self.last)
            played.facts_here = sum(seen.holds(fact) for fact in self.course.facts)
        return played


def movement(before: Request | None, request: Request, reasons: Sequence[str]) -> Moved:
    """Whether a request leaves the one before it, and whether anything said that it would."""
    if before is None or request.extends(before):
        return ""
    return "announced" if reasons else "unannounced"


def paired(messages: Iterable[Seen]) -> bool:
    """Whether each message holds the results of the calls in the one before, and no other."""
    waiting = NONE
    for message in messages:
        if message.results != waiting:
            return False
        waiting = message.calls
    return not waiting


# --- what a request shows


@dataclass(frozen=True, slots=True)
class Seen:
    """What a message says, or all of a request's."""

    texts: tuple[str, ...]
    references: frozenset[str]
    calls: frozenset[str]
    results: frozenset[str] = NONE

    def holds(self, name: str) -> bool:
        return any(name in text for text in self.texts)


class Sight:
    """Reads requests, each message once."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, int], Seen] = {}

    def of(self, request: Request) -> Seen:
        parts = self.each(request)
        return Seen(
            tuple(p.texts[0] for p in parts),
            NONE.union(*(p.references for p in parts)),
            NONE.union(*(p.calls for p in parts)),
        )

    def each(self, request: Request) -> list[Seen]:
        return [self._message(m) for m in request.messages()]

    def _message(self, message: Message) -> Seen:
        key = (message.chain, len(message.pieces))
        found = self._known.get(key)
        if found is None:
            text = "\n".join(words(p.block) for p in message.pieces)
            calls, results = _ids(message, "tool_use", "id"), NONE
            if message.role == "user":
                results = _ids(message, "tool_result", "tool_use_id")
            found = Seen((text,), frozenset(REFERENCE.findall(text)), calls, results)
            self._known[key] = found
        return found


def _ids(message: Message, kind: str, key: str) -> frozenset[str]:
    return frozenset(p.block.get(key) for p in message.pieces if p.block.type == kind)
