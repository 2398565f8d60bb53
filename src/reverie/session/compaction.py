"""Compaction by request or refusal, and its summariser.

Compaction as a session does it: asked for by a person, or forced by a provider's refusal.

`compact` runs also where automatic compaction has stopped, and a success starts it again.
`too_long` is told of a request that the provider refused: it learns the limit, compacts
(the notes first, then the full form) and gives the request to send instead, once; an agent
with a transcript of its own does the same. `ask` is a side query, counted before it leaves;
`ask_to_the_end` reads its stop reason as the loop does. A failure changes nothing and is recorded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, Protocol

import anyio
from anyio import get_cancelled_exc_class, to_thread

from reverie.concurrency import alone
from reverie.errors import (
    Incomplete,
    InvalidInput,
    NotAvailable,
    PromptTooLong,
    Refused,
    ReverieError,
    StoreError,
)
from reverie.layers import compaction
from reverie.layers.compaction import ranges
from reverie.layers.order import COMPACTION
from reverie.light import dataclass
from reverie.session.budget import Budget, MeteredRetries, reserve_cost, settle_cost, weight
from reverie.session.stops import ENDS, KNOWN, StopTracker, TurnOver
from reverie.settings.catalog import Settings
from reverie.store.lists import learn_window
from reverie.transcript.blocks import text_block
from reverie.transcript.records import (
    Boundary,
    Entry,
    Failed,
    ForkEnded,
    Record,
    Replaced,
    RequestRefused,
    Usage,
)
from reverie.transcript.tasks import MAIN, Task
from reverie.transcript.view import View
from reverie.wire.reply import Reply
from reverie.wire.request import Request
from reverie.world import Clock, Model, Notice, World, complete

SUMMARY = 1_500  # tokens that a summary has at the least, in a large window
SUMMARY_SHARE = 0.0075  # the same as a share of a small one
ROUNDS = 20  # requests within which a summary has to pay
LAYER = "compact"  # what was asked for: its failures do not count against the automatic one


class SideQueryCounter(Protocol):
    """Whose side queries are counted and recorded."""

    @property
    def world(self) -> World: ...

    @property
    def budget(self) -> Budget | None: ...

    def hand(self, *records: Record) -> None: ...


class Compactable(Protocol):
    """A conversation that can be made shorter."""

    last_request: Request | None

    @property
    def view(self) -> View: ...

    @property
    def world(self) -> World: ...

    @property
    def home(self) -> Path | None: ...

    async def append(self, *records: Record) -> tuple[Entry, ...]: ...
    async def render_request(self, task: Task = MAIN) -> Request: ...
    async def settled(self) -> None: ...
    async def sync(self) -> None: ...
    def learn(self, limit: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction did."""

    tokens_before: int
    tokens_after: int
    fidelity: float | None
    missing: tuple[str, ...]
    calls: int

    @classmethod
    def of(cls, boundary: Boundary) -> Compacted:
        return cls(
            boundary.tokens_before,
            boundary.tokens_after,
            boundary.fidelity,
            boundary.missing,
            boundary.calls,
        )


async def compact(
    session: Compactable,
    instructions: str = "",
    *,
    from_: str = "",
    up_to: str = "",
    by_provider: bool = False,
    must_gain: bool = False,
) -> Compacted:
    """Compact the conversation, or its part from a message on, or up to one; where it is
    chosen and offered, by the provider's own compaction. `must_gain` refuses a summary of the
    whole that would cost more than it saves."""
    if from_ and (up_to or by_provider):
        what = "the provider's own compaction takes no end" if by_provider else "name one side"
        raise InvalidInput(f"a part from a message on goes alone: {what}", do="Leave one out")
    await session.settled()
    view, world = session.view, session.world
    if view.open_calls:
        raise InvalidInput(
            "the last calls still wait for their results", do="Add the results first"
        )
    if world.model is None:
        raise NotAvailable(
            "this session has no model to write a summary",
            where=view.session,
            do="Open it with a model of reverie.providers in place of a name",
        )
    try:
        if by_provider:
            records = await compaction.by_provider(view, world, "manual", instructions, up_to)
        elif from_ or up_to:
            side = "from" if from_ else "up_to"
            records = await compaction.partial(view, world, side, from_ or up_to, instructions)
        else:
            if must_gain:
                _check_gain(view, world)
            records = await compaction.full(view, world, "manual", instructions)
    except InvalidInput:
        raise
    except ReverieError as error:
        await session.append(Failed(LAYER, str(error)))
        await session.settled()
        raise
    await session.append(*records)
    await session.settled()
    await session.sync()
    return Compacted.of(_boundary(records))


def _check_gain(view: View, world: World) -> None:
    """Refuse a summary that would cost more to write than leaving the messages out saves."""
    tokens, prices = ranges.whole(view).tokens, world.prices
    written = min(SUMMARY, world.window * SUMMARY_SHARE)
    free = world.model is not None and world.model.capabilities.free
    if prices.read * (tokens - written) * ROUNDS <= (0 if free else prices.output * written):
        raise InvalidInput(
            f"Nothing to gain: the conversation has {tokens:,} tokens, a summary about "
            f"{written:,.0f}, and writing one costs more than it saves in {ROUNDS} requests",
            where=view.session,
            do="Compact later, or take out single messages with /snip",
        )


def _boundary(records: Sequence[Record]) -> Boundary:
    found = [r.boundary for r in records if isinstance(r, Replaced) and r.boundary]
    return found[0] if found else Boundary()


# --- a request that the provider refused


async def too_long(session: Compactable, error: PromptTooLong, *, again: bool) -> Request:
    """The request to send in place of one that was too long; PromptTooLong where nothing helps.
    `again` says that the refused one was such a request itself."""
    await _learn(session, error)
    await session.settled()
    if again:
        raise for_good(session, error) from error
    await session.append(RequestRefused(error.what))  # what is restored joins what was new in it
    before, world = session.view.boundary, _forced_world(session, error)
    for name, layer in COMPACTION:
        none: Sequence[Record] = ()
        await session.settled()  # what a layer waited for counts for the next
        records, fault = await alone(layer(session.view, world), none)
        failed = (Failed(name, fault),) if fault else ()
        if fault:
            world.say(Notice(name, f"the layer failed: {fault}", "error"))
        await session.append(*records, *failed)
        if session.view.boundary != before:
            refused = session.last_request
            return await session.render_request(refused.task if refused else MAIN)
    raise for_good(session, error) from error


def for_good(session: Compactable, error: PromptTooLong) -> PromptTooLong:
    """The refusal, in words for a person."""
    do = "Make room with /compact, /snip or /undo, or start afresh with /clear; nothing is lost"
    if compaction.is_agent(session.view):
        do = "The agent ends here; give it less to do at once, or a model with a larger window"
    return PromptTooLong(
        "the conversation no longer fits the model's window",
        needed=error.needed,
        allowed=error.allowed,
        where=str(error),
        do=do,
    )


def _forced_world(session: Compactable, error: PromptTooLong) -> World:
    """The world in which the threshold is passed: the window is no larger than what was refused."""
    world = session.world
    known = [n for n in (world.window, error.allowed, session.view.tokens) if n]
    return replace(
        world,
        learned_window=max(1, min(known)),
        settings=replace(world.settings, auto_compact_enabled=True, context_policy="classic"),
    )


async def _learn(session: Compactable, error: PromptTooLong) -> None:
    """Keep a limit that the error names: for this session at once, for later ones on disk."""
    limit, world = error.allowed, session.world
    if not limit or limit >= world.window:
        return
    session.learn(limit)
    world.say(Notice("window", f"the provider takes {limit:,} tokens; kept to from now on"))
    home, model = session.home, world.model_name
    if home is None:
        return
    try:
        await to_thread.run_sync(learn_window, home, model, limit)
    except StoreError as fault:
        world.say(Notice("window", f"the limit is not kept for later: {fault}", "warning"))


# --- side queries


async def ask(session: SideQueryCounter, request: Request, model: Model | None = None) -> Reply:
    """One request outside the conversation, to the session's model or another: counted, unless
    nothing is billed for it, sent, its cost recorded. Where the provider does not tell what it
    used, the estimate counts."""
    model, settings, budget = model or session.world.model, session.world.settings, session.budget
    if model is None:
        raise NotAvailable("this session has no model to ask", where=request.source)
    if not model.capabilities.tools:
        request = replace(request, head=replace(request.head, tools="[]"))
    price = weight(Usage(request.tokens), settings)
    known = await reserve_cost(budget, model, request.source, price)
    outcome: Literal["completed", "failed", "cancelled"] = "failed"
    used: Usage | None = None
    by = ""
    try:
        reply = await complete(MeteredRetries(model, budget, settings), request)
        outcome, used, by = "completed", reply.usage, reply.model
    except get_cancelled_exc_class():
        outcome = "cancelled"
        raise
    finally:
        session.hand(ForkEnded(request.source, "", used or Usage(), 1, outcome, by))
    await settle_cost(budget, known, used)
    return reply


async def ask_to_the_end(
    session: SideQueryCounter, request: Request, model: Model | None = None
) -> Reply:
    """A side query whose answer is whole: one that was cut off is asked to go on, a pause is sent
    again. What stays cut off raises Incomplete, a refusal Refused, and an answer that the window
    has no room for PromptTooLong. An empty one is given as it is."""
    stops, so_far = StopTracker(), ""
    while True:
        reply = await ask(session, request, model)
        if reply.stop_reason in ENDS or reply.stop_reason not in KNOWN:
            return replace(reply, blocks=(text_block(so_far + reply.text),)) if so_far else reply
        after = stops.after(reply)
        if isinstance(after, TurnOver):
            kind = Refused if after.outcome == "refused" else Incomplete
            raise kind(after.reason, where=request.source)
        if after.make_room:
            raise PromptTooLong("the answer did not fit the model's window", where=request.source)
        so_far += reply.text
        request = ranges.continue_request(request, reply.blocks, after.words)


# --- The model that writes summaries, where the setting `summary_model` names another.
#
# It is made when a summary is first asked for, once, from the same keys and addresses as any
# model, and closed with whoever had it made. A model that cannot be made is an error that names
# what is missing; the caller goes on with the session's own.


LOOK_UP_SECONDS = 5.0


class NamedSummariser:
    """A `world.Summariser`: the model of a setting, once it is needed."""

    def __init__(self, make: Callable[[], Model]) -> None:
        self._make = make
        self._made: Model | None = None
        self._lock = anyio.Lock()

    async def __call__(self) -> Model:
        async with self._lock:
            if self._made is None:
                self._made = await to_thread.run_sync(self._make)
                await looked_up(self._made)
            return self._made

    async def aclose(self) -> None:
        """Give back its connections, where it was ever asked."""
        close: Callable[[], Awaitable[None]] | None = getattr(self._made, "aclose", None)
        if close is not None:
            await close()


def summariser_for(
    settings: Settings, environ: Mapping[str, str], window: int, clock: Clock | None = None
) -> NamedSummariser | None:
    """The model that a setting names for summaries of a conversation with such a window; None =
    the conversation's own."""
    name = settings.summary_model
    if not name:
        return None

    def make() -> Model:
        from reverie.embedded.model import EmbeddedModel
        from reverie.providers.selection import model_for

        found = model_for(name, environ, settings, clock=clock)
        return found or EmbeddedModel(replace(settings, context_window=window))  # it reads all

    return NamedSummariser(make)


async def looked_up(model: Model) -> None:
    """Let a provider tell the model's window, where it can and answers soon."""
    look_up: Callable[[], Awaitable[object]] | None = getattr(model, "look_up", None)
    if look_up is not None:
        with anyio.move_on_after(LOOK_UP_SECONDS):
            await look_up()
