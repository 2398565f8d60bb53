"""A session played under a policy: told what happened, it says what would be sent.

It is the product's own fold and layers over an in-memory disk and a clock that is moved by
hand. Nothing is written anywhere, and no model is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reverie.apps.replay.needs import words
from reverie.apps.replay.policies import ReplayPolicy
from reverie.testing import ManualClock, ScriptedModel, world
from reverie.transcript.blocks import Block
from reverie.transcript.fold import apply, expecting
from reverie.transcript.names import reference
from reverie.transcript.records import (
    AssistantMessage,
    Entry,
    HeadSet,
    Record,
    Replaced,
    ResultDecided,
    Sent,
    UserMessage,
)
from reverie.transcript.view import EMPTY
from reverie.wire.request import Request, render
from reverie.world import Capabilities, Layer

CAPABILITIES = Capabilities(marks=4, lifetimes=("5m", "1h"))


class ReplayStage:
    """One session under one policy. `binds` is whether thinking is bound to its prefix."""

    def __init__(self, head: HeadSet, policy: ReplayPolicy, *, binds: bool = False) -> None:
        self.clock = ManualClock(0.0)
        can = replace(CAPABILITIES, thinking_binding=binds, prices=policy.prices)
        model = ScriptedModel((), capabilities=can)
        self.world = world(clock=self.clock, settings=policy.settings, model=model)
        self.policy = policy
        self.view = EMPTY
        self.stored: dict[str, str] = {}  # reference -> what can be read back through it
        self.stripped = 0  # thinking blocks that edits took out
        self.moved: tuple[str, ...] = ()  # why the last request's prefix moved
        self._count = 0
        self.append(head)

    def append(self, record: Record) -> None:
        self._count += 1
        if isinstance(record, (Replaced, ResultDecided)):
            self.stripped += len(record.strips)
        entry = Entry(f"e{self._count}", self.view.leaf, self.clock.time, record)
        self.view = apply(self.view, entry)

    async def add(self, blocks: Sequence[Block]) -> None:
        """The user's words, or the results of a round."""
        for block in blocks:
            if block.type == "tool_result":
                self._keep(block.get("tool_use_id"), words(block))
        message = UserMessage(tuple(blocks))
        for layer in self.policy.when_added:
            await self._run(layer, message)
        self.append(message)

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
