"""What the product's own figures are: cache, summaries, breaker, memory, and what it all cost.

Worked out from transcripts and the day's ledgers, never kept beside them: the same files give
the same figures. Sessions that cannot be read are counted, and the others go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from reverie.errors import NotFound, ReverieError
from reverie.providers.choose import EMBEDDED
from reverie.providers.prices import dollars
from reverie.session.budget import Budget, weight
from reverie.session.fork import Tally
from reverie.session.library import Library
from reverie.session.recall.ledger import ledgers
from reverie.settings import Settings
from reverie.store.home import SessionFile
from reverie.text.format import utc_day
from reverie.transcript.records import (
    AssistantMessage,
    Entry,
    Extracted,
    Failed,
    ForkEnded,
    NotesTaken,
    Recalled,
    Replaced,
    Usage,
)


@dataclass
class Metrics:
    """The figures of some sessions together."""

    sessions: int = 0
    unreadable: int = 0
    sources: dict[str, Tally] = field(default_factory=dict[str, Tally])
    billed: dict[str, Tally] = field(default_factory=dict[str, Tally])  # of those, what is paid for
    compactions: int = 0
    summaries: int = 0  # compactions that asked a model
    fidelities: list[float] = field(default_factory=list[float])
    compaction_failures: int = 0
    breaker_trips: int = 0
    notes: int = 0
    extractions: int = 0
    memories_written: int = 0
    written: set[str] = field(default_factory=set[str])  # the files, by their keys
    recalls: int = 0  # turns in which something was injected
    injected: int = 0
    cited: int = 0  # of the injected memories, those that show again in an answer
    failures: dict[str, int] = field(default_factory=dict[str, int])
    dollars: dict[str, float] = field(default_factory=dict[str, float])  # by source
    by_day: dict[str, Tally] = field(default_factory=dict[str, Tally])  # of the main agent
    unpriced: set[str] = field(default_factory=set[str])  # models whose price is not known

    @property
    def hit_rate(self) -> float | None:
        main = self.sources.get("main")
        return main.usage.hit_rate if main and main.usage.input else None

    @property
    def summary_rate(self) -> float | None:
        """The share of compactions that needed a model."""
        return self.summaries / self.compactions if self.compactions else None

    @property
    def cited_share(self) -> float | None:
        """The share of injected memories that the agent then named or repeated."""
        return self.cited / self.injected if self.injected else None

    def cost(self, settings: Settings) -> dict[str, float]:
        """Price-weighted tokens by source; 0 where the embedded rules did the work."""
        none = Tally()
        return {
            name: weight(self.billed.get(name, none).usage, settings)
            for name in sorted(self.sources)
        }


def figures(library: Library, files: Iterable[SessionFile], breaker: int) -> Metrics:
    """Read the transcripts and count."""
    out = Metrics()
    for file in files:
        try:
            entries = library.read(file.id).view.entries
        except (ReverieError, OSError):
            out.unreadable += 1
            continue
        out.sessions += 1
        _count(out, entries, breaker)
        if out.injected:
            out.cited += sum(
                row.cited is not None for turn in ledgers(entries) for row in turn.rows
            )
    return out


def _count(out: Metrics, entries: Iterable[Entry], breaker: int) -> None:
    in_a_row = 0
    model = ""
    for entry in entries:
        match entry.record:
            case AssistantMessage(usage=usage) if usage is not None:
                model = entry.record.model or model
                day = utc_day(entry.at)
                out.by_day.setdefault(day, Tally()).count(usage, 1)
                _spent(out, "main", model, usage)
            case ForkEnded() as fork:
                _spent(out, fork.source, fork.model or model, fork.usage, fork.requests)
            case Replaced(boundary=boundary) if boundary is not None:
                in_a_row = 0
                out.compactions += 1
                out.summaries += bool(boundary.calls)
                if boundary.fidelity is not None:
                    out.fidelities.append(boundary.fidelity)
            case Failed(layer=layer):
                out.failures[layer] = out.failures.get(layer, 0) + 1
                if layer == "compaction":
                    in_a_row += 1
                    out.compaction_failures += 1
                    out.breaker_trips += in_a_row == breaker
            case NotesTaken():
                out.notes += 1
            case Extracted() as found:
                out.extractions += found.outcome != "skipped"
                out.memories_written += len(found.written)
                out.written.update(found.written)
            case Recalled() as ledger:
                chosen = sum(one.outcome == "injected" for one in ledger.candidates)
                out.recalls += bool(chosen)
                out.injected += chosen
            case _:
                pass


def _spent(out: Metrics, source: str, model: str, usage: Usage, requests: int = 1) -> None:
    """Add what requests to a model used and cost."""
    free = model == EMBEDDED
    out.sources.setdefault(source, Tally()).count(usage, requests)
    if not free:
        out.billed.setdefault(source, Tally()).count(usage, requests)
    cost = dollars(model, usage, free=free)
    if cost is None:
        out.unpriced.add(model)
    else:
        out.dollars[source] = out.dollars.get(source, 0.0) + cost


@dataclass(frozen=True, slots=True)
class Day:
    """What ran unasked on one day, by source, in price-weighted tokens and calls."""

    day: str
    weighted: dict[str, float]
    calls: dict[str, int]


def days(budget: Budget, now: float, count: int = 7) -> Iterator[Day]:
    """The ledgers of the last days, the newest first."""
    today = datetime.fromtimestamp(now, UTC)
    for back in range(count):
        day = (today - timedelta(days=back)).strftime("%Y-%m-%d")
        try:
            found = budget.by_source(day)
        except NotFound:
            continue
        if found:
            weighted = {source: spent.weighted for source, spent in found.items()}
            yield Day(day, weighted, {source: spent.calls for source, spent in found.items()})
