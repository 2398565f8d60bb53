"""One session played under one policy, background cost included.

One session played to its end under one policy, and what was counted on the way.

Costs are in units of one input token, output included, and all of them are in the `SessionBill`:
requests, `recovery` for names that have to be read back or asked for again, `refind` for
those that are gone, and the model calls behind the conversation. Every figure follows from the
course and the policy alone; the same replay gives the same figures on any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from reverie.apps.replay.course import FAR, CourseStep, NameNeed, RecordedCourse, words
from reverie.apps.replay.policies import BoundThinking, Meter, ReplayPolicy
from reverie.layers import collapse
from reverie.layers.collapse.folds import blocks_of, covered
from reverie.layers.session_memory import compaction
from reverie.providers.costs import SessionBill, fork_usage
from reverie.session.abridgement import abridge
from reverie.session.extraction import trigger
from reverie.simulator.prompt_cache import Charge
from reverie.testing import ManualClock, ScriptedModel, world
from reverie.transcript.blocks import TEXT_BYTES, Block, estimate, text_block
from reverie.transcript.fold import apply, expecting
from reverie.transcript.mentions import REFERENCE, part_reference, reference
from reverie.transcript.messages import Message
from reverie.transcript.records import (
    AssistantMessage,
    Entry,
    Extracted,
    HeadSet,
    NotesTaken,
    Record,
    Replaced,
    ResultDecided,
    Sent,
    Usage,
    UserMessage,
    by_speaker,
    speaker,
)
from reverie.transcript.view import EMPTY
from reverie.wire.request import Request, render
from reverie.world import Capabilities, Layer

Tick: TypeAlias = Callable[[], None]
Moved: TypeAlias = Literal["", "announced", "unannounced"]

ANSWERING = 2.0  # seconds that an answer takes
SLICE = 600  # tokens of a result that reading back by reference brings
CALL = 80  # output tokens of the call that gets something again
LONG_AGO = -(10**9)
NONE: frozenset[str] = frozenset()
# How long an answer is no replay can know. Extraction: the mean of the recorded course (`bench
# live`), where most answers are "Nothing". Notes, whose prompt has the notes so far: assumed.
NOTES_PROMPT, NOTES_ANSWER = 1_500, 900
EXTRACTION_ANSWER = 52


@dataclass(frozen=True, slots=True)
class ReplayedRound:
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
class NeedCounts:
    """How the needs of one distance were met."""

    here: int = 0
    by_reference: int = 0
    rerun: int = 0
    lost: int = 0

    @property
    def total(self) -> int:
        return self.here + self.by_reference + self.rerun + self.lost


@dataclass(slots=True)
class ReplayRun:
    """A session under a policy, counted."""

    policy: ReplayPolicy
    rounds: list[ReplayedRound] = field(default_factory=list[ReplayedRound])
    near: NeedCounts = field(default_factory=NeedCounts)
    far: NeedCounts = field(default_factory=NeedCounts)
    bill: SessionBill = field(default_factory=SessionBill)
    extractions: int = 0  # calls
    notes: int = 0
    facts: int = 0
    facts_here: int = 0
    results: int = 0
    shown: int = 0  # results that the model was shown whole
    faults: int = 0  # requests in which a call and its result do not stand together
    refused: int = 0  # requests whose thinking is bound to another prefix
    stripped: int = 0
    summaries: int = 0
    tokens: int = 0  # of results
    shown_tokens: int = 0  # of these, what the model was shown

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
    course: RecordedCourse, policy: ReplayPolicy, *, thinking: bool = False, tick: Tick = _still
) -> ReplayRun:
    """The whole course under a policy. With `thinking`, the recorded thinking is sent, billed
    and bound, on a provider that checks it; without, it is left out."""
    run = _Run(course, policy, thinking)
    for number, step in enumerate(course.steps):
        await run.take(number, step)
        tick()
    return run.done()


class _Run:
    def __init__(self, course: RecordedCourse, policy: ReplayPolicy, thinking: bool) -> None:
        self.course = course
        head = policy.head(course)
        self.stage = ReplayStage(head, policy, binds=thinking)
        self.meter = Meter(head)
        self.prices = policy.prices
        self.bindings = BoundThinking() if thinking else None
        self.sight = RequestReader()
        self.wanted = course.needs
        self.played = ReplayRun(policy)
        self.last: Request | None = None
        self.context = 0, 0  # tokens of the last request, and of its answer
        self.recovered: dict[int, int] = {}

    async def take(self, number: int, step: CourseStep) -> None:
        clock = self.stage.clock
        if step.role == "user" and step.gap > self.stage.policy.settings.extract_idle_seconds:
            self._extract(last=True)  # in the pause, while the cache was warm
        clock.time += step.gap
        if step.role != "assistant":
            await self.stage.add(step.blocks)
            return
        blocks = [b for b in step.blocks if self.bindings or not b.thinking]
        request = await self.stage.prepare()
        self._bill_folds()
        charge = self._bill(request, blocks)
        if self.bindings is not None:
            self.played.refused += self.bindings.refuses(request)
            self.bindings.answered(blocks)
        self.played.faults += not is_paired(self.sight.each(request))
        self._judge(number, self.wanted.get(number, ()), request, charge.total)
        before = self.course.steps[number - 1]
        if before.role == "tool":
            self._expose(before.blocks, request)
        self.last = request
        self.stage.observe(blocks)
        self.context = charge.total, self.played.rounds[-1].output
        self._work_behind()
        clock.time += ANSWERING

    def _bill(self, request: Request, answer: Iterable[Block]) -> Charge:
        stage = self.stage
        charge = self.meter.charge(request, stage.policy.marks(request), stage.clock.time)
        output = sum(self.meter.tokens(b) for b in answer)
        used = Usage(charge.plain, charge.read, charge.written, output, charge.written_1h)
        cost = self.prices.cost(used)
        moved = movement(self.last, request, stage.moved)
        why = ", ".join(dict.fromkeys(stage.moved)) if moved else ""
        found = ReplayedRound(
            charge.total, charge.read, charge.written, charge.plain, output, cost, moved, why
        )
        self.played.rounds.append(found)
        self.played.bill.requests += cost
        return charge

    def _judge(self, at: int, wanted: Sequence[NameNeed], request: Request, size: int) -> None:
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
        self.played.bill.recovery += sum(self._again(size, one) for one in fetched.values())
        self.played.bill.refind += sum(self._again(size, one) for one in gone.values())

    def _again(self, context: int, size: int) -> float:
        """One more request: it reads the context, writes what it gets, and makes a call."""
        return self.prices.cost(Usage(0, context, size, CALL))

    # --- what runs behind the conversation, by the product's own rules of when

    def _work_behind(self) -> None:
        """What starts after an answer: notes, and at a turn's end the extraction."""
        view = self.stage.view
        if not self.stage.policy.is_session:
            return
        if not view.open_calls:
            self._extract()
        if compaction.due(view, self.stage.world):
            self.played.notes += 1
            self.played.bill.notes += self._fork(NOTES_PROMPT, NOTES_ANSWER)
            self.stage.append(NotesTaken(view.leaf, view.estimated))

    def _bill_folds(self) -> None:
        """Bill the summaries of lines that folded, where a model is set to write them."""
        folded, self.stage.folded = self.stage.folded, []
        if self.stage.policy.is_session and self.stage.policy.settings.summary_model:
            for lines in folded:
                self.played.bill.folds += self.prices.cost(Usage(lines, output=collapse.TOKENS))

    def _extract(self, *, last: bool = False) -> None:
        """Bill an extraction, where the product would ask for one now."""
        policy, view = self.stage.policy, self.stage.view
        off = not policy.is_session or policy.settings.memory_off()
        if off or self.last is None or not trigger.asks_now(view, last=last):
            return
        fresh = trigger.fresh(view)
        dates = trigger.dates(trigger.user_words(view, fresh.items))
        given = text_block(trigger.extraction_prompt(fresh, (), dates=dates)).tokens
        apart = Usage(given + estimate(abridge(view, fresh.items)), output=EXTRACTION_ANSWER)
        there = self._fork(given, EXTRACTION_ANSWER)
        self.played.extractions += 1
        self.played.bill.extraction += min(there, self.prices.cost(apart))
        self.stage.append(Extracted(view.leaf, "nothing"))

    def _fork(self, prompt: int, answer: int) -> float:
        context, answered = self.context
        return self.prices.cost(fork_usage(context, answered + prompt, answer))

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

    def done(self) -> ReplayRun:
        played = self.played
        played.stripped = self.stage.stripped
        self._extract(last=True)
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


def is_paired(messages: Iterable[MessageText]) -> bool:
    """Whether each message holds the results of the calls in the one before, and no other."""
    waiting = NONE
    for message in messages:
        if message.results != waiting:
            return False
        waiting = message.calls
    return not waiting


# --- what a request shows


@dataclass(frozen=True, slots=True)
class MessageText:
    """What a message says, or all of a request's."""

    texts: tuple[str, ...]
    references: frozenset[str]
    calls: frozenset[str]
    results: frozenset[str] = NONE

    def holds(self, name: str) -> bool:
        return any(name in text for text in self.texts)


class RequestReader:
    """Reads requests, each message once."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, int], MessageText] = {}

    def of(self, request: Request) -> MessageText:
        parts = self.each(request)
        return MessageText(
            tuple(p.texts[0] for p in parts),
            NONE.union(*(p.references for p in parts)),
            NONE.union(*(p.calls for p in parts)),
        )

    def each(self, request: Request) -> list[MessageText]:
        return [self._message(m) for m in request.messages()]

    def _message(self, message: Message) -> MessageText:
        key = (message.chain, len(message.pieces))
        found = self._known.get(key)
        if found is None:
            text = "\n".join(words(p.block) for p in message.pieces)
            calls, results = _ids(message, "tool_use", "id"), NONE
            if message.role == "user":
                results = _ids(message, "tool_result", "tool_use_id")
            found = MessageText((text,), frozenset(REFERENCE.findall(text)), calls, results)
            self._known[key] = found
        return found


def _ids(message: Message, kind: str, key: str) -> frozenset[str]:
    return frozenset(p.block.get(key) for p in message.pieces if p.block.type == kind)


# --- A session played under a policy: told what happened, it says what would be sent.
#
# It is the product's own fold and layers over an in-memory disk and a clock that is moved by hand.
# Nothing is written anywhere, and no model is asked.


CAPABILITIES = Capabilities(marks=4, lifetimes=("5m", "1h"))


class ReplayStage:
    """One session under one policy. `binds` is whether thinking is bound to its prefix."""

    def __init__(self, head: HeadSet, policy: ReplayPolicy, *, binds: bool = False) -> None:
        self.clock = ManualClock(0.0)
        can = replace(CAPABILITIES, thinking_binding=binds, prices=policy.prices)
        model = ScriptedModel((), capabilities=can)
        clock = self.clock if policy.through == "session" else ManualClock(0.0)
        fits = policy.through == "proxy"
        self.world = world(clock=clock, settings=policy.applied, model=model, whole_turns=fits)
        self.policy = policy
        self.view = EMPTY
        self.stored: dict[str, str] = {}  # reference -> what can be read back through it
        self.folded: list[int] = []  # tokens of the lines that each fold replaced
        self.stripped = 0  # thinking blocks that edits took out
        self.moved: tuple[str, ...] = ()  # why the last request's prefix moved
        self._count = 0
        self.append(head)

    def append(self, record: Record) -> None:
        self._count += 1
        if isinstance(record, (Replaced, ResultDecided)):
            self.stripped += len(record.strips)
        entry = Entry(f"e{self._count}", self.view.leaf, self.clock.time, record)
        before = self.view.estimated
        self.view = apply(self.view, entry)
        if isinstance(record, Replaced) and record.reason == collapse.FOLDED:
            made = sum([block.tokens for stand in record.by for block in stand.blocks])
            self.folded.append(before - self.view.estimated + made)
            self._keep_parts()

    def _keep_parts(self) -> None:
        """Each folded part is read back whole by the reference at its head."""
        for item in self.view.items[: self.view.live]:
            said = covered(self.view, [item]) if item.reason == collapse.FOLDED else []
            if said:
                whole = "\n".join([words(b) for entry in said for b in blocks_of(entry)])
                self.stored[part_reference(said[0].id)] = whole

    async def add(self, blocks: Sequence[Block]) -> None:
        """The user's words, or the results of a round."""
        for block in blocks:
            if block.type == "tool_result":
                self._keep(block.get("tool_use_id"), words(block))
        message = UserMessage(tuple(blocks))
        for layer in self.policy.when_added:
            await self._run(layer, message)
        for said in by_speaker((block, speaker(block)) for block in blocks):
            self.append(said)

    async def _run(self, layer: Layer, coming: UserMessage | None = None) -> None:
        view = expecting(self.view, coming) if coming else self.view
        for record in await layer(view, self.world):
            self.append(record)

    async def prepare(self) -> Request:
        """What would be sent now."""
        for layer in self.policy.before_a_request:
            await self._run(layer)
        self.moved = self.view.moved
        request = render(self.view)
        self.append(Sent("main", self.view.leaf, request.parts(), request.marks))
        return request

    def observe(self, blocks: Sequence[Block]) -> None:
        """The recorded answer."""
        for block in blocks:
            if block.type == "tool_use":
                self._keep(block.get("id"), words(block))
        self.append(AssistantMessage(tuple(blocks)))

    def _keep(self, call: str, text: str) -> None:
        name = reference(call)
        self.stored[name] = self.stored.get(name, "") + text + "\n"
