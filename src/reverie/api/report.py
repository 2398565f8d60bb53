"""What happened, and what it cost: one value over every owner.

An owner tells it by itself, in a method `__report__(since)`; here is what the value looks like,
and what a memory tells. It is worked out from transcripts and history and kept nowhere. What
cannot be read is passed over.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from reverie.errors import InvalidInput
from reverie.light import dataclass

if TYPE_CHECKING:
    from reverie.session.library import Library
    from reverie.store.home import SessionFile
    from reverie.store.project import Project
    from reverie.transcript.records import Entry
    from reverie.world import Say

_DAY = 86_400


@dataclass(frozen=True, slots=True)
class ReportEvent:
    """One thing that happened: when, of which kind, what, and why."""

    at: float
    kind: str
    what: str
    why: str = ""

    def __str__(self) -> str:
        when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(self.at))
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
        from reverie.text.counts import plural

        rate = "" if self.hit_rate is None else f", {self.hit_rate:.0%} from the cache"
        spent = f"cost {self.cost:,.0f}, in the background {self.background_cost:,.0f}"
        head = f"{plural(self.requests, 'request')}, {self.tokens:,} tokens{rate}; {spent}"
        return "\n".join((head, *map(str, self.events)))


@runtime_checkable
class Reporting(Protocol):
    """What can be reported on."""

    def __report__(self, since: float) -> Report: ...


def report(owner: object, *, days: float | None = None) -> Report:
    """What happened and what it cost, of a memory and everything made of one; of the last `days`,
    or of all time."""
    if not isinstance(owner, Reporting):  # a wrapped client is its SDK's own but for what sends
        owner = getattr(owner, "_client", owner)
    if not isinstance(owner, Reporting):
        what = type(owner).__name__
        raise InvalidInput("There is nothing to report on this", where=what, do="Give a Memory")
    if days is not None and days < 0:
        raise InvalidInput("`days` is not below 0", where=str(days))
    return owner.__report__(0.0 if days is None else time.time() - days * _DAY)


# A memory


def of_memory(project: Project, since: float, say: Say) -> Report:
    """The changes of the memory at an address, and the sessions that were held there."""
    from reverie.api.reading import history
    from reverie.session.library import Library
    from reverie.upkeep.metrics import figures

    events = [
        ReportEvent(one.at, _kind(one.origin.action, one.text), one.file, str(one.origin))
        for one in history(project, "", say)
        if one.at >= since
    ]
    library = Library.find(project) if project.has_memory else None
    if library is None:
        return Report(events=tuple(events))
    try:
        files = [file for file in library.sessions() if file.mtime >= since]
        known = figures(library, files, project.settings.compact_breaker_failures)
        events += [event for event in _of_sessions(library, files) if event.at >= since]
    finally:
        library.close()
    cost = known.cost(project.settings)
    main = cost.pop("main", 0.0)
    tallies = known.sources.values()
    return Report(
        sum(one.requests for one in tallies),
        sum(one.usage.input + one.usage.output for one in tallies),
        0,
        known.hit_rate,
        main,
        sum(cost.values()),
        events=tuple(sorted(events, key=lambda event: event.at)),
    )


def _kind(action: str, text: str) -> str:
    """What a change is called: a save in the background is what was learned."""
    if action in ("save", "edit", "remove"):
        return "saved" if text else "removed"
    return {"extract": "learned", "undo": "undone"}.get(action, action)


def _of_sessions(library: Library, files: list[SessionFile]) -> Iterator[ReportEvent]:
    from reverie.errors import ReverieError

    for file in files:
        try:
            entries = library.read(file.id).view.entries
        except (ReverieError, OSError):
            continue
        yield from (event for entry in entries if (event := _of_entry(entry)) is not None)


def _of_entry(entry: Entry) -> ReportEvent | None:
    from reverie.transcript.records import Failed, Recalled, Replaced

    match entry.record:
        case Recalled(candidates=candidates):
            put = [one.file for one in candidates if one.outcome == "injected"]
            return ReportEvent(entry.at, "recalled", ", ".join(put)) if put else None
        case Replaced(boundary=boundary) if boundary is not None:
            return ReportEvent(entry.at, "compacted", entry.id)
        case Failed() as failed:
            return ReportEvent(entry.at, "failed", failed.layer, failed.error)
        case _:
            return None
