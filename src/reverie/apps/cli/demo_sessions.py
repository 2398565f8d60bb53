"""The demo's later sessions: the embedded model answers, with notes, memory and dreams on.

Five sessions in the project of the first: one under the policy `classic` that is told things and
reads until its window is full, one that asks for what was told, one that says it again, one as
it is by default whose old rounds are sealed, one after which the memory is dreamt about. Nothing
here calls a layer: each fires where the agent has it, and what is counted is read from the
transcripts and the memory folder. Between two turns the demo waits for background work, so that
every run goes the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from reverie.agent.agent import Agent, AgentOptions
from reverie.agent.builder import open_agent
from reverie.apps.cli import demo as sample
from reverie.apps.cli.demo_course import CLASSIC, SkippingClock, Tell, own_environment
from reverie.embedded.model import EmbeddedModel
from reverie.layers.collapse.lines import SEALED
from reverie.session.dream import results
from reverie.session.dream.branch import Dream, snapshot
from reverie.session.recall.selection import past as recalled_before
from reverie.session.session import Session
from reverie.session.turn import OnEvent, TurnEvent, TurnResult
from reverie.simulator.answers import from_model
from reverie.simulator.engine import Engine
from reverie.simulator.model import SimulatedModel
from reverie.store.memory_store import MemoryStore
from reverie.topics.entry import INDEX
from reverie.transcript.mentions import reference
from reverie.transcript.records import (
    AssistantMessage,
    Boundary,
    Candidate,
    Extracted,
    ForkEnded,
    NotesTaken,
    Recalled,
    Replaced,
    Usage,
    UserMessage,
)
from reverie.transcript.view import View
from reverie.wire.reply import Delta
from reverie.world import Capabilities, Notice, Say

R = TypeVar("R")

WINDOW = 24_000  # small, so that a few logs fill it
LINES = 160  # of a log, in one reading
PATIENCE = 30.0  # seconds that one piece of background work may take
SELECTOR_MILLISECONDS = 5_000  # a slow machine recalls the same
COOLED = 600.0  # seconds after which a prompt cache of five minutes is cold
TOLD = (
    "From now on, run the tests before every commit.",
    "Bugs are tracked in the Linear project ORDERS.",
    "I'm a data engineer and new to Python.",
)
QUESTION = "Where are bugs tracked?"
SAID_AGAIN = tuple(
    f"Remember that {word} in stock are counted on Mondays" for word in ("parts", "Parts")
)
IN_BETWEEN = "List logs"
AT_LAST = "List orders"


def readings() -> list[str]:
    """What is asked of the agent until its window is full: parts of two logs at a time."""
    pairs = (sample.SERVICES[0:2], sample.SERVICES[2:4])
    parts = [(first, pair) for first in (1, 201, 401) for pair in pairs]
    return [
        ", ".join(f"read logs/{name}.log lines {first}-{first + LINES - 1}" for name in pair)
        for first, pair in parts
    ]


class CachedEmbeddedModel(SimulatedModel):
    """The embedded model behind a simulated prompt cache; nobody pays for it."""

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, free=True, rules=True)


# --- what happened


@dataclass(frozen=True, slots=True)
class ForkTotals:
    """The forks of one kind, together."""

    requests: int = 0
    hit_rate: float = 0.0

    @classmethod
    def of(cls, session: Session, source: str) -> ForkTotals:
        ended = [r for r in _records(session, ForkEnded) if r.source == source]
        read, given = sum(r.usage.read for r in ended), sum(r.usage.input for r in ended)
        return cls(sum(r.requests for r in ended), Usage(given - read, read).hit_rate)


@dataclass
class DemoTotals:
    """What the later sessions came to."""

    updates: int = 0  # of the notes
    covered: int = 0  # messages that the notes stand for in the end
    messages: int = 0
    notes: ForkTotals = field(default_factory=ForkTotals)
    by_notes: Boundary = field(default_factory=Boundary)
    asked_for: Boundary = field(default_factory=Boundary)
    extracted: tuple[str, ...] = ()
    extraction: ForkTotals = field(default_factory=ForkTotals)
    considered: int = 0
    injected: tuple[Candidate, ...] = ()
    in_head: tuple[str, ...] = ()  # memories that a later session was sent whole at its start
    sealed: int = 0
    sealed_messages: int = 0
    sealed_tokens: int = 0
    line_tokens: int = 0
    dream: Dream | None = None
    before: int = 0  # memories
    after: int = 0
    undone: bool = False  # the dream, so that every file was as before it
    window: int = WINDOW
    question: str = QUESTION
    without: str = ""  # the answer of a session without memory
    answer: str = ""  # of one that was sent what is remembered
    checks: dict[str, bool] = field(default_factory=dict[str, bool])


@dataclass(frozen=True, slots=True)
class DemoStage:
    """Where the sessions take place, and who watches."""

    folder: Path
    model: SimulatedModel
    clock: SkippingClock
    on_event: OnEvent
    tell: Tell
    say: Say

    def agent(
        self, *, bare: bool = False, private: bool = False, **environ: str
    ) -> AbstractAsyncContextManager[Agent]:
        given = {"REVERIE_SELECTOR_MILLISECONDS": str(SELECTOR_MILLISECONDS), **environ}
        wanted = AgentOptions(
            self.folder / "orders",
            home=self.folder / "home",
            mode="allow",
            bare=bare,
            private=private,
            environ={**own_environment(self.folder), **given},
        )
        return open_agent(wanted, self.model, say=self.say, clock=self.clock)

    async def turn(self, agent: Agent, words: str, *, whole: bool = False) -> TurnResult:
        """One turn, and all that runs in the background behind it."""
        self.tell(f"> {words}")
        result = await agent.turn(words, self.on_event if whole else _first_lines(self.on_event))
        session = agent.session
        for name in session.jobs.running:
            await session.jobs.wait(name, PATIENCE)
        await session.flush()
        return result

    def remark(self, layer: str, text: str) -> None:
        self.say(Notice(layer, text))


def _first_lines(on_event: OnEvent) -> OnEvent:
    """Of a long answer the first line is shown."""

    def show_first_line(event: TurnEvent) -> None:
        if isinstance(event, Delta) and event.kind == "text":
            event = Delta("text", event.text.partition("\n")[0])
        on_event(event)

    return show_first_line


async def run(
    folder: Path, on_event: OnEvent, tell: Tell, say: Callable[[Notice], None]
) -> DemoTotals:
    """The sessions one after another, in the project that the first one left."""
    clock = SkippingClock()
    engine = Engine(answerer=from_model(EmbeddedModel()), clock=clock.now)
    model = CachedEmbeddedModel(engine, name="embedded", session="demo", window=WINDOW)
    stage = DemoStage(folder, model, clock, on_event, tell, say)
    found = DemoTotals()
    tell(
        "… from here on the embedded model answers, fixed rules without a language model. Its "
        f"window is set to {WINDOW:,} tokens, so that it fills quickly …"
    )
    for part in (_filling, _asking, _saying_again, _collapsing, _dreaming):
        await part(stage, found)
    return found


# --- layers 3, 4 and 5: told things, then a full window


async def _filling(stage: DemoStage, found: DemoTotals) -> None:
    async with stage.agent(REVERIE_CONTEXT_POLICY=CLASSIC) as agent:
        session = agent.session
        for words in TOLD:
            await stage.turn(agent, words)
        for words in readings():
            await stage.turn(agent, words)
            if _boundaries(session):
                break
        _count_notes(session, found)
        found.by_notes = next(iter(_boundaries(session)), Boundary())
        stage.remark("session_memory", f"the window was full; {_describe_boundary(found.by_notes)}")
        stage.tell("> /compact")
        await session.summarize()
        found.asked_for = _boundaries(session)[-1]
        stage.remark("compaction", _describe_boundary(found.asked_for))
        written = [key for record in _records(session, Extracted) for key in record.written]
        found.extracted = tuple(dict.fromkeys(written))
        found.extraction = ForkTotals.of(session, "extract_memories")
    by_notes, asked_for = found.by_notes, found.asked_for
    found.checks["notes were taken along the way, from the session's cache"] = (
        found.updates > 0 and found.notes.hit_rate > 0.8
    )
    found.checks["the notes made room in a full window, and no model was asked"] = (
        0 < by_notes.tokens_after < by_notes.tokens_before and by_notes.calls == 0
    )
    found.checks["a summary that was asked for took one call"] = (
        0 < asked_for.tokens_after < asked_for.tokens_before and asked_for.calls == 1
    )
    found.checks["each thing the user said became a memory"] = len(found.extracted) == len(TOLD)


def _count_notes(session: Session, found: DemoTotals) -> None:
    view, taken = session.view, _records(session, NotesTaken)
    said = (UserMessage, AssistantMessage)
    places = [n for n, entry in enumerate(view.entries) if isinstance(entry.record, said)]
    last = _place(view, taken[-1].last) if taken else -1
    found.updates = len(taken)
    found.covered, found.messages = sum(n <= last for n in places), len(places)
    found.notes = ForkTotals.of(session, "session_memory")


def _describe_boundary(boundary: Boundary) -> str:
    calls = f"{boundary.calls} call" if boundary.calls else "no model was asked"
    kept = f"{boundary.fidelity or 0:.0%} of what must survive is there or can be read back"
    return f"{boundary.tokens_before:,} tokens became {boundary.tokens_after:,}; {calls}; {kept}"


# --- recall


async def _asking(stage: DemoStage, found: DemoTotals) -> None:
    stage.tell("… a new session without memory …")
    async with stage.agent(bare=True, private=True) as agent:
        found.without = (await stage.turn(agent, QUESTION, whole=True)).text
    stage.tell("… the same question in a session that has it …")
    async with stage.agent() as agent:
        result = await stage.turn(agent, QUESTION, whole=True)
        found.answer = result.text
        ledgers = _records(agent.session, Recalled)
        found.considered = sum(one.considered for one in ledgers)
        candidates = [one for ledger in ledgers for one in ledger.candidates]
        found.injected = tuple(one for one in candidates if one.outcome == "injected")
        for one in found.injected:
            told = f"of {found.considered} memories one joined the question: {one.file}"
            stage.remark("recall", f"{told}, {one.size} bytes")
        head = recalled_before(agent.session.view).head
    found.in_head = tuple(key for key in found.extracted if key in head)
    stage.remark("recall", f"{len(found.in_head)} young memories stand whole at its head")
    sent = {one.file for one in found.injected} | set(found.in_head)
    found.checks["a later session answered from what an earlier one had saved"] = any(
        key in found.extracted and key in result.text for key in sent
    )
    found.checks["without memory it could not"] = not any(
        key in found.without for key in found.extracted
    )


# --- collapse, a policy to choose


async def _collapsing(stage: DemoStage, found: DemoTotals) -> None:
    stage.tell("… a session as it is by default: old rounds are sealed; a pause is in it …")
    async with stage.agent(bare=True) as agent:
        for words in readings()[:2]:
            await stage.turn(agent, words)
        stage.clock.pause += COOLED
        await stage.turn(agent, IN_BETWEEN)
        sealed = [r for r in _records(agent.session, Replaced) if r.reason == SEALED]
        gone = [m for record in sealed for m in _stood_for(agent.session.view, record)]
        lines = [b for record in sealed for stand in record.by for b in stand.blocks]
        found.sealed, found.sealed_messages = len(sealed), len(gone)
        found.sealed_tokens = sum(b.tokens for message in gone for b in message.blocks)
        found.line_tokens = sum(b.tokens for b in lines)
        named = [
            name for name in map(reference, _calls(gone)) if any(name in b.text for b in lines)
        ]
        result = await stage.turn(agent, f"read back {named[0]}" if named else IN_BETWEEN)
    found.checks["old rounds became lines, and a call in them was read back"] = (
        0 < found.line_tokens < found.sealed_tokens
        and len(named) == len(_calls(gone))
        and f"{sample.SERVICES[0]} request" in result.text
    )


def _stood_for(view: View, record: Replaced) -> list[UserMessage | AssistantMessage]:
    """The messages that a seal stands for."""
    between = view.entries[_place(view, record.first) : _place(view, record.last) + 1]
    return [e.record for e in between if isinstance(e.record, UserMessage | AssistantMessage)]


def _calls(messages: Sequence[UserMessage | AssistantMessage]) -> list[str]:
    blocks = [b for message in messages for b in message.blocks]
    return [b.call for b in blocks if b.type == "tool_use"]


# --- layer 6: twins, and a dream


async def _saying_again(stage: DemoStage, found: DemoTotals) -> None:
    del found
    stage.tell("… another session, and somebody has one thing remembered twice …")
    async with stage.agent() as agent:
        for words in SAID_AGAIN:
            await stage.turn(agent, words)


async def _dreaming(stage: DemoStage, found: DemoTotals) -> None:
    stage.tell("… the sixth session: a dream is due by itself …")
    async with stage.agent() as agent:
        if agent.memories is not None:
            await _dreamt(stage, agent, agent.memories, found)
    landed = found.dream is not None and found.dream.status == "completed"
    found.checks["a dream joined twins"] = landed and found.after < found.before
    found.checks["taking the dream back restored every byte"] = landed and found.undone


async def _dreamt(stage: DemoStage, agent: Agent, memories: MemoryStore, found: DemoTotals) -> None:
    before = snapshot(memories.folder)
    await stage.turn(agent, AT_LAST)
    after, found.dream = snapshot(memories.folder), agent.session.dreams.now
    found.before, found.after = (len(state.keys() - {INDEX}) for state in (before, after))
    if found.dream is not None and found.dream.changed:
        stage.tell("> reverie dream undo")
        results.undo(memories, found.dream)
        found.undone = snapshot(memories.folder) == before
        if found.undone:
            stage.remark("dream", f"all {len(before)} files are as they were before it")


# --- reading transcripts


def _records(session: Session, kind: type[R]) -> list[R]:
    return [e.record for e in session.view.entries if isinstance(e.record, kind)]


def _place(view: View, entry: str) -> int:
    found = view.entries.place(entry)
    return -1 if found is None else found


def _boundaries(session: Session) -> list[Boundary]:
    return [r.boundary for r in _records(session, Replaced) if r.boundary is not None]
