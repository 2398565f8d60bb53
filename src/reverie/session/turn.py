"""A turn: events, limits, stop reasons, tool round, result.

What a turn is made of: the conversation it runs on, as the loop sees it, and its values: what
is watched, how far it may go, what it used, how it ended.

Plain values and small counters; nothing here calls a model, runs a tool or writes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import anyio

from reverie.concurrency import alone
from reverie.errors import InvalidMessage, PromptTooLong
from reverie.session.budget import UsageTotals, weight
from reverie.session.hooks import HookVerdict
from reverie.session.stops import FailedCall, cut_words
from reverie.toolbox.tool import Registry
from reverie.transcript.blocks import Json, parse, text_of
from reverie.transcript.records import Entry, Record, Usage, UserMessage, speaker
from reverie.transcript.tasks import MAIN, Task
from reverie.transcript.view import View
from reverie.wire.reply import Addable, Delta, Observable, Reply, ToolCall, tool_result, user
from reverie.wire.request import Request
from reverie.world import Model, RetryNotice, World

if TYPE_CHECKING:
    from reverie.session.loop import TurnState


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A call is about to run."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolEnded:
    """A call is over; its result is the message the model gets."""

    call: ToolCall
    result: UserMessage

    @property
    def text(self) -> str:
        return text_of([b.value for b in self.result.blocks])

    @property
    def is_error(self) -> bool:
        return any(b.value.get("is_error") is True for b in self.result.blocks)


TurnEvent: TypeAlias = Delta | RetryNotice | Reply | ToolStarted | ToolEnded
OnEvent: TypeAlias = "Callable[[TurnEvent], None]"
TurnEnding: TypeAlias = Literal["completed", "cancelled", "limit", "refused", "truncated", "empty"]
TurnOutcome: TypeAlias = Literal["completed", "limit", "blocked", "refused", "truncated", "empty"]


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """How far a turn may go."""

    rounds: int = 500
    cost: float | None = None  # price-weighted tokens, over all turns that share a `TurnUsage`
    goes_on: int = 3  # times in a turn that a Stop hook may ask for more


@dataclass
class TurnUsage(UsageTotals):
    """What the main agent used so far."""

    weighted: float = 0.0

    def price_of_next(self, view: View, world: World, model: Model) -> float:
        """What the next request will cost: the last one read from the cache while that is
        warm, the rest new, and as much output as the requests so far had on average."""
        settings = world.settings
        age = world.clock.now() - (view.last_assistant_at or 0.0)
        warm = view.usage is not None and age < settings.cache_short_minutes * 60
        known = min(view.tokens, view.usage.input) if view.usage and warm else 0
        new = view.tokens - known
        written = new if model.capabilities.marks else 0
        output = self.usage.output // self.requests if self.requests else 0
        return weight(Usage(new - written, known, written, output), settings)


class Inbox:
    """What is said while a turn runs, by the user or by other agents; it joins when a turn begins
    and at the next tool boundary."""

    def __init__(self, letters: Callable[[], Sequence[Addable]] = tuple) -> None:
        self._waiting: deque[Addable] = deque()
        self.letters = letters  # what other agents sent; given again until it is recorded

    def put(self, said: Addable) -> None:
        self._waiting.append(said)

    def typed(self) -> tuple[Addable, ...]:
        """What the user said."""
        taken = tuple(self._waiting)
        self._waiting.clear()
        return taken

    def take(self) -> tuple[Addable, ...]:
        return (*self.typed(), *self.letters())


@dataclass(frozen=True, slots=True)
class TurnResult:
    """How a turn ended, and what it used."""

    outcome: TurnOutcome
    text: str = ""
    rounds: int = 0
    usage: Usage = field(default_factory=Usage)
    weighted: float = 0.0
    reason: str = ""
    stop_reason: str = ""  # of the last answer, as the provider said it


# --- a turn as callers see it

Kind: TypeAlias = Literal["text", "thinking", "call", "result", "retry"]


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn that is over. `outcome` is `completed`, or why it ended early, with the `reason`;
    `cost` is in price-weighted tokens."""

    text: str
    outcome: str
    stop_reason: str = ""
    cost: float = 0.0
    usage: Usage = field(default_factory=Usage)
    rounds: int = 0
    reason: str = ""

    def __str__(self) -> str:
        return self.text

    @classmethod
    def of(cls, done: TurnResult, *, free: bool = False) -> Turn:
        """A turn as callers see it; a free model costs nothing."""
        return cls(
            done.text,
            done.outcome,
            done.stop_reason,
            0.0 if free else done.weighted,
            done.usage,
            done.rounds,
            done.reason,
        )


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened while a turn ran: a piece of text or thinking, a call, its result,
    or another try. `call` is there for calls and results."""

    kind: Kind
    text: str
    call: ToolCall | None = None
    is_error: bool = False

    def __str__(self) -> str:
        return self.text

    @classmethod
    def of(cls, event: TurnEvent) -> Event | None:
        """An event as people see it; None for what is told otherwise."""
        match event:
            case Delta(kind="text" | "thinking" as kind, text=text):
                return cls(kind, text)
            case ToolStarted(call=call):
                return cls("call", f"{call.name} {call.raw}", call)
            case ToolEnded(call=call):
                return cls("result", event.text, call, event.is_error)
            case RetryNotice(reason=reason):
                return cls("retry", reason, is_error=True)
            case _:
                return None


class CallRunner(Protocol):
    """Runs one call to its result. A `Toolbox` is one, and a guard. A text behind the result
    is what the user said about the call."""

    @property
    def registry(self) -> Registry: ...

    async def run(self, call: ToolCall) -> UserMessage: ...


class TurnTarget(Protocol):
    """A conversation that takes turns. A `Session` and a `Worker` are one."""

    @property
    def view(self) -> View: ...

    @property
    def world(self) -> World: ...

    async def add_messages(self, *said: Addable) -> None: ...
    async def append(self, *records: Record) -> tuple[Entry, ...]: ...
    async def render_request(self, task: Task = MAIN) -> Request: ...
    async def record_reply(self, reply: Observable) -> Reply: ...

    def responding(self) -> None:
        """The first byte of an answer is here."""
        ...

    async def shorten_request(self, error: PromptTooLong) -> Request:
        """What to send in place of a request that was refused; raises where nothing helps."""
        ...

    async def record_turn_end(self, outcome: TurnEnding = "completed") -> None: ...


class RequestMeter(Protocol):
    """Counts a request before it leaves; raises where it may not."""

    async def reserve(self, model: Model, request: Request) -> None: ...
    async def settle(self, usage: Usage | None) -> None: ...


OnReply: TypeAlias = "Callable[[Reply], None]"


def ignore_reply(reply: Reply) -> None:
    del reply


def ignore_event(event: TurnEvent) -> None:
    del event


def event_object(event: TurnEvent) -> Mapping[str, Any]:
    """An event as one JSON object, the form of `--output-format stream-json`."""
    match event:
        case Delta():
            return {"type": "delta", "kind": event.kind, "text": event.text}
        case RetryNotice():
            value = {"attempt": event.attempt, "wait": event.wait, "reason": event.reason}
            return {"type": "retrying", **value}
        case Reply():
            return {
                "type": "reply",
                "content": [b.value for b in event.blocks],
                "stop_reason": event.stop_reason,
            }
        case ToolStarted():
            call = event.call
            return {"type": "tool_started", "id": call.id, "name": call.name, "input": call.raw}
        case ToolEnded():
            return {
                "type": "tool_ended",
                "id": event.call.id,
                "name": event.call.name,
                "is_error": event.is_error,
                "text": event.text,
            }


# --- The tool calls of one answer: run, their results handed in, what a person said about them
# beside.
#
# Calls that a rule of the user's holds are answered with the rule and do not run. Of the others,
# those that may run together do, and each fails alone. What the user says when asked about a call
# is no part of its result: it joins behind the results, as the user's own words. A model that
# makes the same failing call in round after round is told so, and then the turn ends.


MAX_TOLD = 50_000  # characters of an answer that a hook is told


async def run_calls(turn: TurnState) -> None:
    """All calls of a reply; each fails alone."""
    calls = turn.reply.tool_calls if turn.reply else ()
    held, beside = turn.rules.judge(calls) if turn.rules and calls else ({}, ())
    for call in calls:
        if call.id in held:
            _record_result(turn, call, tool_result(call.id, held[call.id], is_error=True))
    for batch in turn.tools.registry.batches([c for c in calls if c.id not in held]):
        async with anyio.create_task_group() as group:
            for call in batch:
                group.start_soon(_one_tool, turn, call)
    if calls and turn.reply:
        await turn.talk.add_messages(*(turn.results[c.id] for c in calls))
        await turn.add_words()
        await turn.attach_verdicts()
        await turn.talk.append(*beside)
        turn.so_far = ""
        cut = cut_words(turn.reply.blocks) if turn.reply.stop_reason == "max_tokens" else ""
        if cut:
            await turn.tell(cut)


async def stop_repeating(turn: TurnState) -> None:
    """A model that makes the same failing call again and again is told so, then stopped."""
    calls = turn.reply.tool_calls if turn.reply else ()
    if not calls:
        return
    ended = [ToolEnded(c, turn.results[c.id]) for c in calls]
    failed = [FailedCall(e.call.name, e.call.raw, e.text) for e in ended if e.is_error]
    told = turn.failures.take(failed, len(calls))
    if turn.failures.hopeless:
        names = ", ".join(sorted({f.name[:80] for f in failed}))
        count = turn.failures.count
        turn.outcome, turn.reason = "limit", f"the same call failed {count} times in a row: {names}"
    elif told:
        await turn.tell(told)


async def _one_tool(turn: TurnState, call: ToolCall) -> None:
    given = _input_of(call)
    verdict = await turn.hooks.run("PreToolUse", tool_name=call.name, tool_input=given)
    if verdict.blocked:
        denied = f"A hook of the user's denied this call. {verdict.reason}".rstrip()
        result = tool_result(call.id, denied, is_error=True)
    else:
        turn.on_event(ToolStarted(call))
        result, fault = await alone(turn.tools.run(call), user("no result"))
        if fault:
            result = tool_result(call.id, f"The tool failed: {fault}", is_error=True)
    result, words = _apart(result)
    if words is not None:
        turn.words[call.id] = words
    ended = _record_result(turn, call, result)
    turn.verdicts.append(verdict)
    if not verdict.blocked:
        answer = ended.text[:MAX_TOLD]
        after = await turn.hooks.run(
            "PostToolUse", tool_name=call.name, tool_input=given, tool_response=answer
        )
        turn.verdicts.append(_as_context(after))


def _record_result(turn: TurnState, call: ToolCall, result: UserMessage) -> ToolEnded:
    ended = ToolEnded(call, result)
    turn.results[call.id] = ended.result
    turn.on_event(ended)
    return ended


def _apart(result: UserMessage) -> tuple[UserMessage, UserMessage | None]:
    """A call's result, and what the user said about the call."""
    results = tuple(b for b in result.blocks if speaker(b) == "tool")
    words = tuple(b for b in result.blocks if speaker(b) != "tool")
    return UserMessage(results, "tool"), UserMessage(words) if words else None


def _as_context(verdict: HookVerdict) -> HookVerdict:
    """A block after the fact is told to the model; the call has run."""
    if not verdict.blocked or not verdict.reason:
        return verdict
    return HookVerdict(context=(*verdict.context, verdict.reason))


def _input_of(call: ToolCall) -> Json:
    try:
        return parse(call.raw)
    except InvalidMessage:
        return call.raw
