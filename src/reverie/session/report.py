"""What happened, and what it cost: one value over every owner.

An owner tells it by itself, in a method `__report__(since)`; here is what the value looks like,
and what a session tells: its requests, what they cost, what left the context and why. It is worked
out from transcripts and history and kept nowhere, so a resumed session tells all of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from reverie.errors import InvalidInput
from reverie.light import dataclass

if TYPE_CHECKING:
    from reverie.session.session import Session
    from reverie.transcript.records import Entry
    from reverie.transcript.view import View
    from reverie.world import World

_DAY = 86_400
STEPS = 200  # at most, in which the next rounds are added up


@dataclass(frozen=True, slots=True)
class ReportEvent:
    """One thing that happened: when, of which kind, what, and why."""

    at: float
    kind: str
    what: str
    why: str = ""

    def __str__(self) -> str:
        from reverie.text.format import utc_minute

        when = utc_minute(self.at)
        return f"{when} {self.kind}: {self.what}{f' ({self.why})' if self.why else ''}"


@dataclass(frozen=True, slots=True)
class Report:
    """What requests there were, what they and background work cost in price-weighted tokens, the
    tokens that were not sent, and what happened. None stands for what nobody knows."""

    requests: int = 0
    tokens: int = 0
    saved: int = 0
    hit_rate: float | None = None
    cost: float = 0.0
    background_cost: float = 0.0
    money: float | None = None
    events: tuple[ReportEvent, ...] = ()

    def __str__(self) -> str:
        from reverie.text.format import plural

        rate = "" if self.hit_rate is None else f", {self.hit_rate:.0%} from the cache"
        spent = f"cost {self.cost:,.0f}, in the background {self.background_cost:,.0f}"
        head = f"{plural(self.requests, 'request')}, {self.tokens:,} tokens{rate}; {spent}"
        return "\n".join((head, *map(str, self.events)))


@runtime_checkable
class Reportable(Protocol):
    """What can be reported on."""

    def __report__(self, since: float) -> Report: ...


def report(owner: object, *, days: float | None = None) -> Report:
    """What happened and what it cost, of a memory and everything made of one; of the last `days`,
    or of all time."""
    if not isinstance(owner, Reportable):  # a wrapped client is its SDK's own but for what sends
        owner = getattr(owner, "_client", owner)
    if not isinstance(owner, Reportable):
        what = type(owner).__name__
        raise InvalidInput("There is nothing to report on this", where=what, do="Give a Memory")
    if days is not None and days < 0:
        raise InvalidInput("`days` is not below 0", where=str(days))
    return owner.__report__(0.0 if days is None else time.time() - days * _DAY)


# A session


def of_session(session: Session, since: float) -> Report:
    """What happened in a session since, and what it cost."""
    from reverie.embedded.model import NAME as EMBEDDED
    from reverie.providers.costs import dollars
    from reverie.session.budget import weight
    from reverie.transcript.records import AssistantMessage, ForkEnded, Usage

    entries = [entry for entry in session.view.entries if entry.at >= since]
    settings, worker = session.world.settings, session.world.model
    free = worker is None or worker.capabilities.free
    by = session.world.model_name
    main = [e.record for e in entries if isinstance(e.record, AssistantMessage)]
    forks = [e.record for e in entries if isinstance(e.record, ForkEnded)]
    used = sum((one.usage for one in main if one.usage is not None), Usage())
    behind = sum((one.usage for one in forks), Usage())
    head = session.view.head
    name = head.model if head is not None else by
    unpaid = free and by == name == EMBEDDED
    spent = (dollars(name, used, free=unpaid), dollars(by, behind, free=free))
    return Report(
        len(main) + sum(one.requests for one in forks),
        used.input + used.output + behind.input + behind.output,
        saved_tokens(session.view),
        used.hit_rate if used.input else None,
        0.0 if unpaid else weight(used, settings),
        0.0 if free else weight(behind, settings),
        None if None in spent else sum(one or 0.0 for one in spent),
        tuple(event for entry in entries if (event := event_of(entry, session.view)) is not None),
    )


def tokens_until_collapse(view: View, world: World) -> int:
    """Tokens until old rounds are likely to collapse: where that pays if rounds go on to be as
    large as those since the last time, and at the latest where the recent rounds are full."""
    from reverie.layers.collapse import kept_tokens, price_collapse

    price, limit = price_collapse(view, world, world.scaled), world.tail_limit(view)
    round_size = max(price.tail // max(1, view.answers), limit // STEPS, 1)
    held, tail, kept = price.held, price.tail, kept_tokens(world.scaled)
    while tail <= limit and held < price.cost:
        tail += round_size
        held += world.prices.read * max(0, tail - kept)
    return max(0, min(tail, limit) - price.tail)


def saved_tokens(view: View) -> int:
    """Tokens that the next request need not carry: what was said, less what stands for it."""
    return max(0, sum(_said_tokens(view)) - view.estimated)


def _said_tokens(view: View) -> Iterator[int]:
    from reverie.transcript.records import AssistantMessage, ResultDecided, UserMessage

    for entry in view.entries:
        record = entry.record
        if isinstance(record, (UserMessage, AssistantMessage)):
            yield sum(block.tokens for block in record.blocks)
        elif isinstance(record, ResultDecided) and record.action == "stored":
            yield record.size // 4


def event_of(entry: Entry, view: View) -> ReportEvent | None:
    """What a record says to a person; None where it says nothing."""
    from reverie.transcript.mentions import reference
    from reverie.transcript.records import (
        Extracted,
        Failed,
        NotesTaken,
        Recalled,
        Replaced,
        ResultDecided,
    )

    match entry.record:
        case Replaced(boundary=boundary, reason=reason, why=why):
            kind = "compacted" if boundary is not None else "sealed"
            return ReportEvent(entry.at, kind, why or reason or "older messages")
        case ResultDecided(call=call, action="stored" | "cleared" as action, why=why):
            known = view.calls.get(call)
            what = f"the result of {known.name if known else 'a call'} {reference(call)}"
            return ReportEvent(entry.at, action, what, why)
        case Recalled(candidates=candidates):
            put = [one.file for one in candidates if one.outcome == "injected"]
            return ReportEvent(entry.at, "recalled", ", ".join(put)) if put else None
        case Extracted(written=written, why=why) if written or why:
            return ReportEvent(entry.at, "learned", ", ".join(written) or "nothing", why)
        case NotesTaken():
            return ReportEvent(entry.at, "noted", "the notes on this session")
        case Failed(layer=layer, error=error):
            return ReportEvent(entry.at, "failed", layer, error)
        case _:
            return None
