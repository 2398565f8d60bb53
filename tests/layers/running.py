"""A session that goes on under the layers, told what happened, round after round."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from reverie.apps.replay import RecordedCourse
from reverie.layers import by_time, per_message, seal, seal_lines
from reverie.settings import DEFAULTS, Settings
from reverie.simulator import Engine, SimulatedAnswer, SimulatedModel
from reverie.testing import ManualClock, MemoryDisk, ScriptedModel, call, world
from reverie.transcript import (
    EMPTY,
    AssistantMessage,
    Block,
    Entry,
    HeadSet,
    Item,
    Record,
    Replaced,
    Sent,
    SentBlock,
    UserMessage,
    View,
    apply,
    block_of,
    text_block,
)
from reverie.wire import Request, render
from reverie.world import Capabilities, Model, World, complete
from tests.transcript.test_fold import pairs_up

COLLAPSE = replace(DEFAULTS, context_policy="collapse")
LAYERS = (per_message, by_time, seal)
MODEL = "claude-opus-5-5"


def result(ident: str, content: str | Sequence[dict[str, str]]) -> Block:
    return block_of({"type": "tool_result", "tool_use_id": ident, "content": content})


def folded(*records: Record, view: View = EMPTY) -> View:
    """A view with these records behind it."""
    for record in records:
        view = apply(view, Entry(f"e{len(view.entries)}", view.leaf, 1_000.0, record))
    return view


def sent(view: View) -> View:
    """The same view, once its request has gone out."""
    request = render(view)
    return folded(Sent("main", view.leaf, request.parts(), request.marks), view=view)


def round_lines(tool: str, given: dict[str, object], text: str, **members: object) -> list[str]:
    """The lines that stand for one round once it is sealed."""
    use = block_of({"type": "tool_use", "id": "t", "name": tool, "input": given})
    told = {"type": "tool_result", "tool_use_id": "t", "content": text, **members}
    asked, back = SentBlock(use, "e1", 0), SentBlock(block_of(told), "e2", 0)
    items = [Item("e1", "assistant", (asked,)), Item("e2", "user", (back,))]
    return seal_lines(COLLAPSE, items).split("\n")


def small_tail(tail: int, **numbers: int | float) -> Settings:
    return replace(COLLAPSE, collapse_tail=tail, **numbers)


class Running:
    """The fold and the layers over an in-memory disk and a clock moved by hand."""

    layers = LAYERS

    def __init__(
        self, settings: Settings = COLLAPSE, model: Model | None = None, view: View = EMPTY
    ) -> None:
        self.clock = ManualClock(1_000.0)
        self.disk = MemoryDisk()
        plain = ScriptedModel([], capabilities=Capabilities(marks=4))
        self.world: World = world(
            clock=self.clock, disk=self.disk, settings=settings, model=model or plain
        )
        self.view = view
        self.requests: list[tuple[Request, tuple[str, ...]]] = []
        self.calls = 0

    def append(self, record: Record) -> None:
        entry = Entry(f"e{len(self.view.entries)}", self.view.leaf, self.clock.time, record)
        self.view = apply(self.view, entry)

    async def add(self, *blocks: Block, origin: str = "user") -> None:
        self.append(UserMessage(blocks, origin))

    async def send(self) -> Request:
        for layer in self.layers:
            for record in await layer(self.view, self.world):
                self.append(record)
        request = render(self.view)
        pairs_up(request)
        self.requests.append((request, self.view.moved))
        self.append(Sent("main", self.view.leaf, request.parts(), request.marks))
        return request

    async def play(self, course: RecordedCourse, steps: int | None = None) -> None:
        for step in course.steps[:steps]:
            self.clock.time += step.gap
            if step.role == "assistant":
                await self.answer(step.blocks)
            else:
                await self.add(*step.blocks, origin=step.role)

    async def answer(self, blocks: Sequence[Block]) -> None:
        """The request is sent, and this is what the model says to it."""
        await self.send()
        self.append(AssistantMessage(tuple(blocks)))

    async def rounds(self, texts: Iterable[str], words: str = "go") -> None:
        """A turn of single calls with these results."""
        await self.add(text_block(words))
        for text in texts:
            self.calls += 1
            ident = f"toolu_{self.calls}"
            await self.answer((call("Bash", ident, command=f"cat src/part_{self.calls}.py"),))
            await self.add(result(ident, text), origin="tool")
            self.clock.time += 5
        await self.answer((text_block("All done."),))

    def seals(self) -> list[Replaced]:
        return [e.record for e in self.view.entries if isinstance(e.record, Replaced)]

    def extends_unless_announced(self) -> None:
        pairs = zip(self.requests, self.requests[1:], strict=False)
        for (before, _), (after, moved) in pairs:
            assert moved or after.extends(before), after.difference(before)

    def text(self) -> str:
        """All words of the last request."""
        request = self.requests[-1][0]
        return "\n".join(p.block.text for m in request.messages() for p in m.pieces)


class Simulated(Running):
    """The same against the simulated provider: it checks, binds, caches and bills."""

    def __init__(self, settings: Settings = COLLAPSE, window: int = 200_000) -> None:
        self.said: tuple[Block, ...] = ()
        engine = Engine(answerer=lambda _: SimulatedAnswer(self.said))
        self.model = SimulatedModel(engine, MODEL, window=window, cache_edits=False)
        super().__init__(settings, self.model)
        engine.clock = self.clock.now

    def begin(self, head: HeadSet) -> None:
        self.append(replace(head, model=MODEL, options='{"max_tokens":32000}'))

    async def answer(self, blocks: Sequence[Block]) -> None:
        self.said = tuple(blocks)
        self.append((await complete(self.model, await self.send())).record())
