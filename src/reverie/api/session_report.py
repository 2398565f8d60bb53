"""What a session tells of itself: its requests, what they cost, what left the context and why.

Worked out from the transcript, so a resumed session tells all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from reverie.api.report import Report, ReportEvent
from reverie.embedded.model import NAME as EMBEDDED
from reverie.providers.prices import dollars
from reverie.session.budget import weight
from reverie.transcript.names import reference
from reverie.transcript.records import (
    AssistantMessage,
    Entry,
    Extracted,
    Failed,
    ForkEnded,
    NotesTaken,
    Recalled,
    Replaced,
    ResultDecided,
    Usage,
    UserMessage,
)
from reverie.transcript.view import View

if TYPE_CHECKING:
    from reverie.session.session import Session
    from reverie.world import Model


def of_session(session: Session, worker: Model, since: float) -> Report:
    """What happened in a session since, and what it cost."""
    entries = [entry for entry in session.view.entries if entry.at >= since]
    settings, free = session.world.settings, worker.capabilities.free
    main = [e.record for e in entries if isinstance(e.record, AssistantMessage)]
    forks = [e.record for e in entries if isinstance(e.record, ForkEnded)]
    used = _sum(one.usage for one in main if one.usage is not None)
    behind = _sum(one.usage for one in forks)
    head = session.view.head
    name = head.model if head is not None else worker.name
    unpaid = free and worker.name == name == EMBEDDED
    spent = (dollars(name, used, free=unpaid), dollars(worker.name, behind, free=free))
    return Report(
        len(main) + sum(one.requests for one in forks),
        used.input + used.output + behind.input + behind.output,
        saved(session.view),
        used.hit_rate if used.input else None,
        0.0 if unpaid else weight(used, settings),
        0.0 if free else weight(behind, settings),
        None if None in spent else sum(one or 0.0 for one in spent),
        tuple(event for entry in entries if (event := told(entry, session.view)) is not None),
    )


def _sum(usages: Iterable[Usage]) -> Usage:
    whole = Usage()
    for one in usages:
        whole = Usage(
            whole.uncached + one.uncached,
            whole.read + one.read,
            whole.written + one.written,
            whole.output + one.output,
            whole.written_1h + one.written_1h,
        )
    return whole


def saved(view: View) -> int:
    """Tokens that the next request need not carry: what was said, less what stands for it."""
    return max(0, sum(_said(view)) - view.estimated)


def _said(view: View) -> Iterator[int]:
    for entry in view.entries:
        record = entry.record
        if isinstance(record, (UserMessage, AssistantMessage)):
            yield sum(block.tokens for block in record.blocks)
        elif isinstance(record, ResultDecided) and record.action == "stored":
            yield record.size // 4


def told(entry: Entry, view: View) -> ReportEvent | None:
    """What a record says to a person; None where it says nothing."""
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
