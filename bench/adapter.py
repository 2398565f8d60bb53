"""Reverie as a context manager inside the shared replay bench.

The bench's `Manager` is joined in at run time, since it lives outside the project. All
three calls are timed by the bench: a message in, the layers, the messages out. What is
sent is what a session would send: the fold, layers 1 and 2, and the marks are the
product's own. Results are decided when the round is complete, which gives the same bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from reverie.layers import collapse, microcompaction, tool_results
from reverie.settings import DEFAULTS, Settings
from reverie.testing import ManualClock, MemoryDisk, world
from reverie.transcript import (
    EMPTY,
    AssistantMessage,
    Block,
    Entry,
    Message,
    Parts,
    Record,
    Sent,
    UserMessage,
    apply,
    reference,
    text_of,
)
from reverie.wire import LONG, SHORT, Request, render
from reverie.world import Layer

UNHASHED = Parts("", "", "", "", "", 0)
COLLAPSE: Sequence[Layer] = (tool_results.per_message, collapse.seal)
CLASSIC: Sequence[Layer] = (tool_results.per_message, microcompaction.by_time)


def bench_modules(shared: Path) -> Path:
    """Put the shared bench on the path."""
    folder = shared / "bench" / "context"
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    return folder


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """A coroutine that never waits, to its end."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    raise RuntimeError("it waited")


class Recall(dict[str, str]):
    """What can be read back, by reference: the transcript's own calls and results. The
    bench looks in it when it judges; until then nothing is put together or copied."""

    def __init__(self, manager: Layered) -> None:
        super().__init__()
        self.manager = manager
        self.read = 0  # entries of the transcript

    def items(self) -> Any:
        entries = self.manager.view.entries.since(self.read)
        self.read += len(entries)
        for entry in entries:
            if isinstance(entry.record, (AssistantMessage, UserMessage)):
                self.keep(entry.id, entry.record.blocks)
        return super().items()

    def keep(self, ident: str, blocks: Sequence[Block]) -> None:
        """A call's reference opens the call, its result and what was said beside it; any other
        message has one of its own."""
        said = "\n".join(b.get("text") for b in blocks if b.type == "text")
        if said:
            self[reference(ident)] = said
        for block in blocks:
            if block.call:
                ref = reference(block.call)
                beside = said + "\n" if block.type == "tool_use" else ""
                whole = text_of(block.value).replace("\\n", "\n")
                self[ref] = self.get(ref, "") + beside + whole + "\n"


class Layered:
    """The three calls of a manager, on our fold and layers. With `digests` it also works out
    what a journal records of each request: every block's JSON text and its hash."""

    name = "reverie"
    settings: Settings = DEFAULTS
    layers: Sequence[Layer] = COLLAPSE
    digests = False

    def __init__(self, trace: dict[str, Any]) -> None:
        super().__init__(trace)  # pyright: ignore[reportCallIssue] - the bench's manager
        self.clock = ManualClock()
        self.world = world(clock=self.clock, disk=MemoryDisk(), settings=self.settings)
        self.store = Recall(self)
        self.view = EMPTY
        self.request = Request(render(EMPTY).head, EMPTY.closed, ())
        self.values: list[dict[str, Any]] = []  # the request's messages
        self.known = 0  # how many of them were closed
        self.newest: Message | None = None  # the last of those
        self.count = 0

    @property
    def system_ttl(self) -> str:
        return LONG if self.view.sealed else SHORT

    def append(self, record: Record) -> None:
        self.count += 1
        entry = Entry(f"e{self.count}", self.view.leaf, self.clock.time, record)
        self.view = apply(self.view, entry)

    def observe(self, message: dict[str, Any]) -> None:
        # as a session has them off the wire: nobody changes them, so nothing is copied
        blocks = tuple([Block("", value) for value in message["content"]])
        answer = message["role"] == "assistant"
        self.append(AssistantMessage(blocks) if answer else UserMessage(blocks))

    def manage(self, now: float, env: Any) -> None:
        del env
        self.clock.time = now
        run(self.prepare())
        self.request = render(self.view)
        parts = self.request.parts() if self.digests else UNHASHED
        self.append(Sent("main", self.view.leaf, parts, self.request.marks))

    async def prepare(self) -> None:
        for layer in self.layers:
            for record in await layer(self.view, self.world):
                self.append(record)

    def render(self) -> list[dict[str, Any]]:
        closed, known, values = self.request.closed, self.known, self.values
        if known and (closed.length < known or closed[known - 1] is not self.newest):
            known = 0  # the prefix moved
        del values[known:]  # the last request's tail
        values += [value(message) for message in closed.since(known)]
        values += [value(message) for message in self.request.tail]
        self.known, self.newest = closed.length, closed.last
        return values

    def breakpoints(self, messages: list[dict[str, Any]]) -> dict[int, str]:
        del messages
        ends = {m.end - 1: n for n, m in enumerate(self.request.messages())}
        return {
            ends[m.block]: m.ttl
            for m in self.request.marks
            if m.block in ends and m.part == "messages"
        }


def value(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": [p.block.value for p in message.pieces]}


def manager(base: type, settings: Settings, name: str = "reverie", **members: Any) -> type:
    """A manager class of the bench that runs our layers."""
    layers = COLLAPSE if settings.context_policy == "collapse" else CLASSIC
    known = {"name": name, "settings": settings, "layers": layers, **members}
    return type("Reverie", (Layered, base), known)


def collapsed(tail: int) -> Settings:
    return replace(DEFAULTS, context_policy="collapse", collapse_tail=tail)


CLASSIC_SETTINGS = replace(DEFAULTS, context_policy="classic")
