"""The query loop: one turn, from what was said to an answer that calls no tool.

The same for the main agent and for every agent behind it: what differs is given as values, the
tools, the hooks, the limits, and how a request is counted before it leaves.
What runs when stands in `BEGIN` and `ROUND`, and nowhere else. A turn that ends early, by
cancellation, an error or a limit, leaves a transcript that can be resumed: only whole
replies are recorded, results that were ready are kept, and every other open call gets one
that says it was interrupted. What a stop reason asks for, `stops` says. The loop never edits the
conversation, and sends no failed request again: that is the provider's business.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias, TypedDict, Unpack

import anyio

from reverie.concurrency import alone
from reverie.errors import PromptTooLong, ProviderError, Refused
from reverie.session.budget import UsageTotals, weight
from reverie.session.hooks import NO_HOOKS, Hooks, HookVerdict, prompt_of
from reverie.session.stops import (
    GO_ON,
    ContinueTurn,
    FailedRounds,
    StopTracker,
    TurnOver,
    refusal_ending,
    unknown,
)
from reverie.session.turn import (
    MAX_TOLD,
    CallRunner,
    Inbox,
    OnEvent,
    OnReply,
    RequestMeter,
    TurnLimits,
    TurnOutcome,
    TurnResult,
    TurnTarget,
    TurnUsage,
    ignore_event,
    ignore_reply,
    run_calls,
    stop_repeating,
)
from reverie.text.format import plural
from reverie.transcript.messages import interrupted_result
from reverie.transcript.records import UserMessage
from reverie.transcript.tasks import MAIN, Task
from reverie.wire.reply import Addable, Reply, as_user, user
from reverie.wire.request import Request
from reverie.world import Event, Model, Notice, RetryNotice

if TYPE_CHECKING:
    from reverie.session.attachments import Attachments
    from reverie.session.rules import TurnRules


@dataclass
class TurnState:
    """One turn under way: what the steps of `BEGIN` and `ROUND` work on."""

    talk: TurnTarget
    model: Model
    tools: CallRunner
    said: UserMessage | None = None  # None where it is part of the conversation already
    on_event: OnEvent = ignore_event
    limits: TurnLimits = field(default_factory=TurnLimits)
    spend: TurnUsage = field(default_factory=TurnUsage)
    hooks: Hooks = NO_HOOKS
    attachments: Attachments | None = None
    inbox: Inbox = field(default_factory=Inbox)
    rules: TurnRules | None = None  # of the user's, that calls are held against
    task: Task = MAIN
    meter: RequestMeter | None = None
    on_reply: OnReply = ignore_reply  # told of each answer once it is recorded
    done: Callable[[], bool] = bool  # whether the work is done, and no further answer is needed

    began: bool = False
    rounds: int = 0
    went_on: int = 0
    request: Request | None = None
    reply: Reply | None = None
    ready: bool = False  # the request was made already, when the conversation was made shorter
    so_far: str = ""  # the beginning of an answer that comes in parts
    stops: StopTracker = field(default_factory=StopTracker)
    failures: FailedRounds = field(default_factory=FailedRounds)
    results: dict[str, UserMessage] = field(default_factory=dict[str, UserMessage])
    words: dict[str, UserMessage] = field(default_factory=dict[str, UserMessage])  # the user's
    verdicts: list[HookVerdict] = field(default_factory=list[HookVerdict])
    used: UsageTotals = field(default_factory=UsageTotals)
    weighted: float = 0.0
    outcome: TurnOutcome | None = None
    reason: str = ""

    async def run(self) -> TurnResult:
        """To the turn's end. Cancel it at any point: the transcript stays whole."""
        ended = False
        try:
            result = await self._rounds()
            ended = True
            return result
        finally:
            if not ended:
                with anyio.CancelScope(shield=True):
                    _, fault = await alone(self.abandon(), None)
                    if fault:
                        told = f"the turn's end was lost: {fault}"
                        self.talk.world.say(Notice("loop", told, "error"))

    async def ask(self) -> Reply:
        """One request and its answer; the calls in it are for whoever asked."""
        await _prepare_request(self)
        reply = await _record_answer(self)
        if reply.stop_reason == "refusal":
            raise Refused(refusal_ending().reason, where=self.model.name)
        return reply

    async def _rounds(self) -> TurnResult:
        if self.said is not None:
            await self._through(BEGIN)
        while self.outcome is None:
            await self._through(ROUND)
        await self._close_calls()
        await self._end_rules()
        if self.outcome != "blocked":
            await self.talk.record_turn_end(self.outcome)
        reply = self.reply
        return TurnResult(
            self.outcome,
            self.so_far + (reply.text if reply else ""),
            self.rounds,
            self.used.usage,
            self.weighted,
            self.reason,
            reply.stop_reason if reply else "",
        )

    async def _through(self, steps: Sequence[tuple[str, TurnStep]]) -> None:
        for _, step in steps:
            if self.outcome is None:
                await step(self)

    async def abandon(self) -> None:
        """Leave a transcript that can be resumed, whatever was going on."""
        waiting = self.talk.view.open_calls
        ready = [self.results[c] for c in waiting if c in self.results]
        if ready:
            await self.talk.add_messages(*ready)
        await self._close_calls()
        await self.add_words()
        await self._end_rules()
        if self.began:
            await self.talk.record_turn_end("cancelled")

    async def _close_calls(self) -> None:
        """A result for every call still open, which says that it was interrupted."""
        left = tuple(interrupted_result(c) for c in self.talk.view.open_calls)
        if left:
            await self.talk.append(UserMessage(left, "interrupted"))

    async def _end_rules(self) -> None:
        if self.rules is not None:
            await alone(self.rules.ended(), None)

    async def attach_verdicts(self) -> None:
        """The context that hooks gave, as attachments."""
        given, self.verdicts = self.verdicts, []
        await self.talk.append(*(a for v in given for a in v.attached()))

    async def add_words(self) -> None:
        """What the user said when asked about calls, behind the results: words of their own."""
        while self.words:
            await self.talk.add_messages(self.words.pop(next(iter(self.words))))

    async def tell(self, text: str) -> None:
        """Words of the loop's own to the model."""
        await self.talk.add_messages(replace(user(text), origin=GO_ON))


class TurnOptions(TypedDict, total=False):
    """What a caller may say of a turn."""

    on_event: OnEvent
    limits: TurnLimits
    spend: TurnUsage
    hooks: Hooks
    attachments: Attachments | None
    inbox: Inbox
    rules: TurnRules | None


TurnStep: TypeAlias = "Callable[[TurnState], Awaitable[None]]"


async def run_turn(
    session: TurnTarget,
    model: Model,
    tools: CallRunner,
    said: str | Sequence[Addable],
    **values: Unpack[TurnOptions],
) -> TurnResult:
    """Run a turn to its end; `values` are fields of `TurnState`."""
    message = as_user([said] if isinstance(said, str) else said)
    return await TurnState(session, model, tools, message, **values).run()


# --- the start of a turn


async def _submit_prompt(turn: TurnState) -> None:
    if turn.said is None:  # pragma: no cover - such a turn begins with its first round
        return
    prompt = prompt_of([b.value for b in turn.said.blocks])
    verdict = await turn.hooks.run("UserPromptSubmit", prompt=prompt)
    if verdict.blocked:
        turn.outcome, turn.reason = "blocked", verdict.reason
        return
    turn.verdicts.append(verdict)


async def _add_message(turn: TurnState) -> None:
    if turn.said is not None:
        await turn.talk.add_messages(turn.said)
    turn.began = True
    if turn.rules is not None:
        _, fault = await alone(turn.rules.begin(), None)
        if fault:
            turn.talk.world.say(Notice("rules", f"calls are not held: {fault}", "warning"))
            turn.rules = None
    now = turn.talk.world.clock.now()
    for letter in turn.inbox.letters():
        await turn.talk.add_messages(letter)
    due = turn.attachments.at_turn(turn.talk.view, now) if turn.attachments else ()
    await turn.talk.append(*due)
    await turn.attach_verdicts()


# --- a round


async def _within_limits(turn: TurnState) -> None:
    """Stop before a request that nobody needs, or that would go over a limit."""
    if turn.done():
        turn.outcome = "completed"
        return
    if turn.rounds >= turn.limits.rounds:
        turn.outcome, turn.reason = "limit", f"the turn had {plural(turn.rounds, 'round')}"
        return
    most = turn.limits.cost
    if most is None:
        return
    price = turn.spend.price_of_next(turn.talk.view, turn.talk.world, turn.model)
    if turn.spend.weighted + price > most:
        spent = turn.spend.weighted
        turn.outcome = "limit"
        turn.reason = (
            f"the next request would cost about {price:,.0f} price-weighted tokens; "
            f"{spent:,.0f} of at most {most:,.0f} are spent"
        )


async def _date(turn: TurnState) -> None:
    if turn.attachments and turn.rounds:
        now = turn.talk.world.clock.now()
        await turn.talk.append(*turn.attachments.at_round(now))


async def _prepare_request(turn: TurnState) -> None:
    if not turn.ready:
        turn.request = await turn.talk.render_request(turn.task)
    turn.ready = False
    turn.rounds += 1


async def _handle_answer(turn: TurnState) -> None:
    reply = turn.reply = await _record_answer(turn)
    turn.on_reply(reply)
    turn.results = {}
    if reply.usage is not None:
        price = weight(reply.usage, turn.talk.world.settings)
        turn.used.count(reply.usage)
        turn.spend.count(reply.usage)
        turn.weighted += price
        turn.spend.weighted += price
    turn.spend.requests += 1
    told = unknown(reply.stop_reason)
    if told:
        turn.talk.world.say(Notice("loop", told, "warning"))
    if reply.stop_reason == "refusal":  # calls in it are not made
        _end(turn, refusal_ending())


def _end(turn: TurnState, ended: TurnOver) -> None:
    turn.outcome, turn.reason = ended.outcome, ended.reason


async def _record_answer(turn: TurnState) -> Reply:
    """The answer to the request, recorded."""
    request = turn.request or await turn.talk.render_request(turn.task)
    try:
        reply = await _send_metered(turn, request)
    except PromptTooLong as error:
        reply = await _made_shorter(turn, error)
    return await turn.talk.record_reply(reply)


async def _send_metered(turn: TurnState, request: Request) -> Reply:
    if turn.meter is None:
        return await _stream_reply(turn, request)
    await turn.meter.reserve(turn.model, request)
    reply = await _stream_reply(turn, request)
    await turn.meter.settle(reply.usage)
    return reply


async def _stream_reply(turn: TurnState, request: Request) -> Reply:
    reply: Reply | None = None
    events = turn.model.stream(request)
    try:
        async for event in events:
            if not isinstance(event, RetryNotice):
                turn.talk.responding()
            if isinstance(event, Reply):
                reply = event
            turn.on_event(event)
    finally:
        await _close_stream(events)
    if reply is None:
        raise ProviderError("the model's stream ended without an answer", where=turn.model.name)
    return reply


async def _close_stream(events: AsyncIterator[Event]) -> None:
    """Let go of a stream that was not read to its end."""
    close: Callable[[], Awaitable[None]] | None = getattr(events, "aclose", None)
    if close is not None:
        with anyio.CancelScope(shield=True):
            await close()


async def _made_shorter(turn: TurnState, error: PromptTooLong) -> Reply:
    """Compaction and one retry; the session says so where that does not help."""
    turn.request = await turn.talk.shorten_request(error)
    try:
        return await _send_metered(turn, turn.request)
    except PromptTooLong as again:
        await turn.talk.shorten_request(again)  # a second time it raises, in words for a person
        raise


async def _add_queued_messages(turn: TurnState) -> None:
    """What the user and other agents said meanwhile, each as a message of its own."""
    if turn.reply and turn.reply.tool_calls:
        for said in turn.inbox.take():
            await turn.talk.add_messages(said)


async def _end_or_continue(turn: TurnState) -> None:
    """A reply that calls no tool ends the turn, unless its stop reason or a Stop hook asks
    for more."""
    if turn.reply is None or turn.reply.tool_calls:
        return
    next_ = turn.stops.after(turn.reply)
    if isinstance(next_, ContinueTurn):
        await _gone_on(turn, turn.reply, next_)
        return
    if next_.outcome != "completed":
        _end(turn, next_)
        return
    more = turn.went_on < turn.limits.goes_on
    verdict = await turn.hooks.run(
        "Stop",
        text=turn.reply.text[:MAX_TOLD],
        can_go_on=more,
        stop_hook_active=turn.went_on > 0,
    )
    if verdict.blocked and verdict.reason and more:
        turn.went_on += 1
        await turn.talk.add_messages(replace(user(verdict.reason), origin="hook"))
        return
    turn.outcome = "completed"


async def _gone_on(turn: TurnState, reply: Reply, on: ContinueTurn) -> None:
    turn.so_far += reply.text if reply.stop_reason != "end_turn" else ""
    if on.words:
        await turn.tell(on.words)
    if on.make_room:
        error = PromptTooLong("the answer did not fit the model's window", where=turn.model.name)
        turn.request = await turn.talk.shorten_request(error)
        turn.ready = True


BEGIN: tuple[tuple[str, TurnStep], ...] = (
    ("submit", _submit_prompt),  # UserPromptSubmit hooks: they may block, or add context
    ("message", _add_message),  # the user's words, and what is attached at a turn's start
    # recall begins to look here
)
ROUND: tuple[tuple[str, TurnStep], ...] = (
    ("limits", _within_limits),  # rounds and cost, before anything leaves
    ("date", _date),  # midnight may have passed
    ("prepare", _prepare_request),  # reverie.layers.BEFORE_A_REQUEST in its order, then the request
    ("answer", _handle_answer),  # streaming; a prompt too long: compaction, one retry
    ("tools", run_calls),  # held against the user's rules, then side by side, with hooks
    ("failures", stop_repeating),  # the same failing call, again and again
    ("boundary", _add_queued_messages),  # queued messages join
    ("end", _end_or_continue),  # no call left: Stop hooks, and the turn is over
    # extraction and the dream gates follow `record_turn_end`
)
"""The order of a turn. A step that sets an outcome is the last."""
