"""Forks, and agents with a transcript of their own.

A fork starts as an exact copy of a conversation: it appends to its parent's rendered request
and never renders it again, so the parent's prompt cache serves it. Before each request that
is verified: one that would leave the parent's prefix is refused with the part that differs.
A fork cannot fork and never compacts. Its transcript lies beside its parent's, and its cost is
counted before it leaves.

A worker that is no fork, a dream or a sub-agent, may `stand_alone`: then it compacts its own
transcript like a session, at the threshold and where a request was refused as too long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from anyio import get_cancelled_exc_class

import reverie
from reverie import layers
from reverie.errors import ForkRefused, NotAvailable, PromptTooLong
from reverie.layers.compaction.ranges import INSTRUCTION
from reverie.session.budget import Budget, reserved, settled, weight
from reverie.session.compaction import compacting
from reverie.session.conversation import Conversation, Log
from reverie.session.library import NoLog
from reverie.tools.runner import MakeGuard, NoTools, ToolRunner
from reverie.transcript.blocks import block_of, text_block
from reverie.transcript.fold import branch
from reverie.transcript.records import Entry, ForkEnded, Record, Started, Usage, UserMessage
from reverie.transcript.request import Request, Task, so_far
from reverie.world import (
    ForkResult,
    ForkSpec,
    Model,
    Reply,
    Summariser,
    ToolCall,
    complete,
)

PLACEHOLDER = "[This call belongs to the conversation you were copied from; do not wait for it]"


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


class Parent(Conversation):
    """A conversation that forks are made of."""

    budget: Budget | None = None
    guards: MakeGuard = NoTools

    def agent_log(self, agent: str) -> Log:
        """Where the transcript of a fork goes; nowhere unless somebody says so."""
        del agent
        return NoLog()

    async def fork(self, source: str) -> Fork:
        """A fork of the conversation as it stands, with a transcript of its own."""
        parent = self.view
        if parent.is_fork:
            raise ForkRefused("a fork cannot fork again", where=parent.session)
        if parent.sent is None:
            raise ForkRefused(
                "nothing was sent yet that a fork could share",
                where=parent.session,
                do="Fork after the first response",
            )
        agent = self._new_id()
        start = Entry(self._new_id(), "", self.world.clock.now(), self._started(source, agent))
        child = Fork(
            self.agent_log(agent),
            self._blobs,
            branch(parent, start),
            replace(self.world, fork=None),
            when_added=layers.WHEN_ADDED,
            before_a_request=layers.BEFORE_A_REQUEST,
            new_id=self._new_id,
        )
        child.write([start])
        child.begin(agent, source, so_far(parent), self.budget)
        return child

    def _started(self, source: str, agent: str) -> Started:
        view, version = self.view, reverie.__version__
        root = view.started.project if view.started else ""
        return Started(view.session, root, root, version, source, agent, view.leaf)

    async def run_fork(self, spec: ForkSpec) -> ForkResult:
        """`world.fork`: run a fork to its end; its cost goes into this transcript."""
        child = await self.fork(spec.source)
        outcome: Literal["completed", "failed", "cancelled"] = "failed"
        guard = self.guards(spec)
        try:
            result = await run(child, spec, self.world.model, guard)
            outcome = "completed"
            return result
        except get_cancelled_exc_class():
            outcome = "cancelled"
            raise
        finally:
            self.hand(child.ended(outcome))
            guard.close()
            child.close()


class Worker(Parent):
    """A background agent's own conversation: what it sends is counted before it leaves."""

    agent: str
    home: Path | None = None  # where a limit that a provider names is kept
    _logs: Callable[[str], Log] | None = None  # set where it stands alone

    def employ(self, agent: str, source: str, budget: Budget | None) -> None:
        self.agent = agent
        self.source = source
        self.budget = budget
        self.tally = Tally()

    def stand_alone(
        self,
        logs: Callable[[str], Log],
        home: Path | None = None,
        summariser: Summariser | None = None,
    ) -> None:
        """It is no fork: it compacts its own transcript, by forks whose own ones `logs` opens."""
        self._logs = logs
        self.home = home
        ask = partial(compacting.ask, self)
        self.world = replace(self.world, fork=self.run_fork, ask=ask, summariser=summariser)

    def agent_log(self, agent: str) -> Log:
        return self._logs(agent) if self._logs is not None else super().agent_log(agent)

    def hand(self, *records: Record) -> None:
        """What its forks and side queries cost is part of what it cost."""
        super().hand(*records)
        for record in records:
            if isinstance(record, ForkEnded):
                self.tally.count(record.usage, record.requests)

    async def settled(self) -> None:
        """No request is on its way any more; what was handed in is appended."""
        self._in_flight = False
        await self.flush()

    async def instruct(self, text: str) -> None:
        """Its instruction, behind a placeholder for each call of whoever it was copied from."""
        placeholders = [
            block_of({"type": "tool_result", "tool_use_id": call, "content": PLACEHOLDER})
            for call in self.view.open_calls
        ]
        await self.append(UserMessage((*placeholders, text_block(text)), INSTRUCTION))

    async def ask(self, model: Model, task: Task) -> Reply:
        """One round: counted, sent, observed. Where it stands alone, a request that is refused
        as too long is made shorter, once."""
        request = await self.prepare(task)
        try:
            reply = await self._answer(model, request)
        except PromptTooLong as error:
            if self._logs is None:
                raise
            request = await compacting.too_long(self, error, again=False, task=task)
            try:
                reply = await self._answer(model, request)
            except PromptTooLong as again:
                await compacting.too_long(self, again, again=True)  # it raises, in words
                raise
        return await self.observe(reply)

    async def _answer(self, model: Model, request: Request) -> Reply:
        known = await reserved(self.budget, model, self.source, self._price(request))
        reply = await complete(model, request)
        self.tally.requests += 1
        if reply.usage is not None:
            self.tally.count(reply.usage)
        await settled(self.budget, known, reply.usage)
        return reply

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


OnReply: TypeAlias = "Callable[[Reply], None]"


async def run(
    worker: Worker,
    spec: ForkSpec,
    model: Model | None,
    tools: ToolRunner,
    watch: OnReply = lambda _: None,
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
