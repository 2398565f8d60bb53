"""Forks: background agents that start as an exact copy of a conversation.

A fork appends to its parent's rendered request and never renders it again, so the
parent's prompt cache serves it. Before each request that is verified: one that would
leave the parent's prefix is refused with the part that differs. A fork cannot fork.
Its transcript lies beside the session's, and its cost is counted before it leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeAlias

from anyio import to_thread

from reverie.errors import ForkRefused, NotAvailable
from reverie.session.budget import Budget, weight
from reverie.session.conversation import Conversation
from reverie.session.messages import tool_result
from reverie.transcript.blocks import block_of, text_block
from reverie.transcript.records import ForkEnded, Usage, UserMessage
from reverie.transcript.request import Request, Task
from reverie.world import ForkResult, ForkSpec, Model, Reply, ToolCall, complete

PLACEHOLDER = "[This call belongs to the conversation you were copied from; do not wait for it]"
DENIED = "This tool is not available to you here. Go on without it."


class ToolRunner(Protocol):
    """Runs the tool calls of one background agent, inside its guard."""

    @property
    def written(self) -> tuple[str, ...]:
        """Files it wrote."""
        ...

    async def run(self, call: ToolCall) -> UserMessage: ...

    def close(self) -> None: ...


Guards: TypeAlias = "Callable[[ForkSpec], ToolRunner]"
"""Makes the guard of a fork from what its spec allows."""


class NoTools:
    """Every call is denied, at call time: the tool definitions stay as they are."""

    written = ()

    def __init__(self, spec: ForkSpec) -> None:
        self.spec = spec

    async def run(self, call: ToolCall) -> UserMessage:
        return tool_result(call.id, DENIED, is_error=True)

    def close(self) -> None:
        """Nothing is open."""


@dataclass
class Tally:
    """What some requests used together."""

    requests: int = 0
    usage: Usage = field(default_factory=Usage)

    def count(self, usage: Usage, requests: int = 0) -> None:
        mine = self.usage
        self.requests += requests
        self.usage = Usage(
            mine.uncached + usage.uncached,
            mine.read + usage.read,
            mine.written + usage.written,
            mine.output + usage.output,
            mine.written_1h + usage.written_1h,
        )


class Worker(Conversation):
    """A background agent's own conversation: what it sends is counted before it leaves."""

    agent: str
    budget: Budget | None = None

    def employ(self, agent: str, source: str, budget: Budget | None) -> None:
        self.agent = agent
        self.source = source
        self.budget = budget
        self.tally = Tally()

    async def instruct(self, text: str) -> None:
        """Its instruction, behind a placeholder for each call of whoever it was copied from."""
        placeholders = [
            block_of({"type": "tool_result", "tool_use_id": call, "content": PLACEHOLDER})
            for call in self.view.open_calls
        ]
        await self.append(UserMessage((*placeholders, text_block(text)), "instruction"))

    async def ask(self, model: Model, task: Task) -> Reply:
        """One round: counted, sent, observed."""
        request = await self.prepare(task)
        reserved = None
        if self.budget is not None and not model.capabilities.free:
            budget, price = self.budget, self._price(request)
            reserved = await to_thread.run_sync(lambda: budget.reserve(self.source, price))
        reply = await complete(model, request)
        self.tally.requests += 1
        if reply.usage is not None:
            self.tally.count(reply.usage)
            if self.budget is not None and reserved is not None:
                budget, known, used = self.budget, reserved, reply.usage
                await to_thread.run_sync(lambda: budget.settle(known, used))
        return await self.observe(reply)

    def _price(self, request: Request) -> float:
        """What a request will cost if what was sent before is read and the rest is new."""
        shared = self._cached() if not self.tally.requests else request.tokens
        new = max(0, request.tokens - shared)
        return weight(Usage(new, min(shared, request.tokens)), self.world.settings)

    def _cached(self) -> int:
        """Tokens that a cache holds before the first request."""
        return 0

    def ended(self, outcome: Literal["completed", "failed", "cancelled"]) -> ForkEnded:
        tally = self.tally
        return ForkEnded(self.source, self.agent, tally.usage, tally.requests, outcome)


class Fork(Worker):
    """One fork, open. Made by `Session.fork`."""

    base: Request

    def begin(self, agent: str, source: str, base: Request, budget: Budget | None) -> None:
        self.employ(agent, source, budget)
        self.base = base

    def _cached(self) -> int:
        return self.base.tokens

    def check(self, request: Request) -> None:
        """Refuse to send what would not be served from the parent's cache."""
        super().check(request)
        found = request.difference(self.base)
        if found is not None:
            raise ForkRefused(
                f"a fork would leave its parent's prefix in the part {found.part}",
                where=f"block {found.block}, byte {found.byte}",
                do="Append to the parent's request; never change it",
            )


Watch: TypeAlias = "Callable[[Reply], None]"


async def run(
    worker: Worker,
    spec: ForkSpec,
    model: Model | None,
    tools: ToolRunner,
    watch: Watch = lambda _: None,
) -> ForkResult:
    """A background agent's whole life: instruction, rounds with guarded tools, last words."""
    if model is None:
        raise NotAvailable("there is no model to run a background agent with", where=spec.source)
    await worker.instruct(spec.instruction)
    text = ""
    for _ in range(max(1, spec.rounds)):
        reply = await worker.ask(model, spec.task)
        watch(reply)
        text = reply.text
        if not reply.tool_calls:
            break
        await worker.add(*await _results(tools, reply.tool_calls))
    return ForkResult(text, worker.tally.usage, worker.tally.requests, tools.written)


async def _results(tools: ToolRunner, calls: Sequence[ToolCall]) -> list[UserMessage]:
    return [replace(await tools.run(call), origin="tool") for call in calls]
