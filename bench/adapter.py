"""Reverie as a context manager inside the shared replay bench.

The bench's `Manager` is subclassed at run time, since it lives outside the project. All
three calls are timed by the bench: a message in, the layers, the messages out.
"""

from __future__ import annotations

import sys
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

from reverie.layers import collapse, tool_results
from reverie.settings import DEFAULTS, Settings
from reverie.testing import ManualClock, MemoryDisk, world
from reverie.transcript.blocks import Block, block_of, text_of
from reverie.transcript.messages import Message
from reverie.transcript.names import reference
from reverie.transcript.records import (
    AssistantMessage,
    Entry,
    Record,
    ResultDecided,
    Sent,
    UserMessage,
)
from reverie.transcript.request import Request, render
from reverie.transcript.view import EMPTY, apply, expecting


def bench_modules(shared: Path) -> Path:
    """Put the shared bench on the path."""
    folder = shared / "bench" / "context"
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return folder


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """A coroutine that never waits, to its end."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    raise RuntimeError("it waited")


def manager(base: type, settings: Settings = DEFAULTS, name: str = "reverie-collapse") -> type:
    """A manager class of the bench that runs our layers."""

    class Reverie(base):  # type: ignore[misc, valid-type]
        system_ttl = "1h"

        def __init__(self, trace: dict[str, Any]) -> None:
            super().__init__(trace)
            self.clock = ManualClock()
            self.disk = MemoryDisk()
            self.world = world(clock=self.clock, disk=self.disk, settings=settings)
            self.view = EMPTY
            self.request: Request | None = None
            self.shown: dict[int, tuple[Message, dict[str, Any]]] = {}
            self.count = 0

        def append(self, record: Record) -> None:
            self.count += 1
            entry = Entry(f"e{self.count}", self.view.leaf, self.clock.time, record)
            self.view = apply(self.view, entry)

        def observe(self, message: dict[str, Any]) -> None:
            blocks = tuple(block_of(b) for b in message["content"])
            if message["role"] == "assistant":
                for block in blocks:
                    if block.type == "tool_use":
                        self.keep(block.get("id"), text_of(block.value))
                self.append(AssistantMessage(blocks))
                return
            self.add(blocks)

        def keep(self, call: str, text: str) -> None:
            ref = reference(call)
            self.store[ref] = self.store.get(ref, "") + text.replace("\\n", "\n") + "\n"

        def add(self, blocks: tuple[Block, ...]) -> None:
            for block in blocks:
                if block.type == "tool_result":
                    self.keep(block.get("tool_use_id"), text_of(block.value))
            seen = expecting(self.view, UserMessage(blocks))
            decided = run(tool_results.per_result(seen, self.world))
            stands = {
                r.call: r.content for r in decided if isinstance(r, ResultDecided) and r.content
            }
            for record in decided:
                self.append(record)
            kept = tuple(
                b.with_member("content", stands[b.get("tool_use_id")])
                if b.get("tool_use_id") in stands
                else b
                for b in blocks
            )
            self.append(UserMessage(kept))

        def manage(self, now: float, env: Any) -> None:
            del env
            self.clock.time = now
            for layer in (tool_results.per_message, collapse.seal):
                for record in run(layer(self.view, self.world)):
                    self.append(record)
            self.request = render(self.view)
            self.append(Sent("main", self.view.leaf, self.request.parts(), self.request.marks))

        def render(self) -> list[dict[str, Any]]:
            assert self.request is not None
            return [self.value(m) for m in self.request.messages()]

        def value(self, message: Message) -> dict[str, Any]:
            known = self.shown.get(id(message))
            if known is None or known[0] is not message:
                content = [p.block.value for p in message.pieces]
                known = (message, {"role": message.role, "content": content})
                self.shown[id(message)] = known
            return known[1]

        def breakpoints(self, messages: list[dict[str, Any]]) -> dict[int, str]:
            del messages
            assert self.request is not None
            ends = {m.end - 1: n for n, m in enumerate(self.request.messages())}
            return {
                ends[m.block]: m.ttl
                for m in self.request.marks
                if m.block in ends and m.part == "messages"
            }

    Reverie.name = name
    return Reverie


def collapsed(tail: int) -> Settings:
    return replace(DEFAULTS, context_policy="collapse", collapse_tail=tail)
