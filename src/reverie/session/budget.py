"""The day's budget of a home.

The day's budget for everything that runs unasked, shared by all processes of a home.

A request is counted before it leaves: its estimated price is reserved, and set to what
it really cost once that is known. A provider that tries again counts again each time. At the
limit nothing more leaves, and it says so.
The ledger is one file of JSON lines a day (UTC), `<home>/usage/YYYY-MM-DD.jsonl`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import cast
from uuid import uuid4

from anyio import to_thread

from reverie.errors import BudgetExceeded, NotFound, ReverieError
from reverie.providers.costs import dollars
from reverie.session.library import SessionLibrary
from reverie.settings.catalog import Settings
from reverie.store.files import Folder
from reverie.store.home import SessionFile
from reverie.store.lock import FileLock
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
from reverie.wire.request import Request
from reverie.world import Clock, Event, Model, Prices, RetryNotice, WrappedModel, overridden

PATIENCE = 5.0
MAX_PRICE = 2.0**63  # what a line may say that a request cost


@dataclass(frozen=True, slots=True)
class Reservation:
    """A request that was counted."""

    id: str
    day: str
    source: str


@dataclass(frozen=True, slots=True)
class DayUsage:
    """What a day has used so far, in price-weighted tokens and calls."""

    weighted: float = 0.0
    calls: int = 0


def weight(usage: Usage, settings: Settings) -> float:
    """A request's price in input tokens, at the prices that the settings name."""
    return overridden(Prices(), settings).cost(usage)


@dataclass
class UsageTotals:
    """What some requests used together."""

    requests: int = 0
    usage: Usage = field(default_factory=Usage)

    def count(self, usage: Usage, requests: int = 0) -> None:
        self.requests += requests
        self.usage += usage


class Budget:
    """The ledger of one home."""

    def __init__(self, home: Folder, settings: Settings, clock: Clock) -> None:
        self._home = home
        self._settings = settings
        self._clock = clock

    def close(self) -> None:
        self._home.close()

    def reserve(self, source: str, weighted: float) -> Reservation:
        """Count a request, or raise BudgetExceeded saying which limit and what to do."""
        day = self._day()
        reservation = Reservation(uuid4().hex, day, source)
        with self._hold_lock():
            spent = self.spent(day)
            self._check(spent, weighted)
            self._line(reservation, {"reserved": round(weighted, 2)})
        return reservation

    def settle(self, reservation: Reservation, usage: Usage) -> None:
        """What the request really cost."""
        self._line(reservation, {"spent": round(weight(usage, self._settings), 2)})

    def spent(self, day: str | None = None) -> DayUsage:
        """What a day has used; a request not settled counts as reserved."""
        found = self.by_source(day or self._day()).values()
        return DayUsage(sum(one.weighted for one in found), sum(one.calls for one in found))

    def by_source(self, day: str) -> dict[str, DayUsage]:
        """What each query source used on a day."""
        prices: dict[str, tuple[str, float]] = {}
        for line in self._lines(day):
            name, price = line.get("id"), line.get("spent", line.get("reserved"))
            if isinstance(name, str) and isinstance(price, (int, float)) and 0 <= price < MAX_PRICE:
                prices[name] = str(line.get("source", "")), float(price)
        found: dict[str, DayUsage] = {}
        for source, price in prices.values():
            before = found.get(source, DayUsage())
            found[source] = DayUsage(before.weighted + price, before.calls + 1)
        return found

    def _check(self, spent: DayUsage, weighted: float) -> None:
        limit = self._settings.background_tokens_per_day
        calls = self._settings.background_calls_per_day
        if spent.calls + 1 > calls:
            raise self._over(f"{spent.calls:,} of {calls:,} calls", "background_calls_per_day")
        if spent.weighted + weighted > limit:
            used = f"{spent.weighted:,.0f} of {limit:,} price-weighted tokens"
            raise self._over(used, "background_tokens_per_day")

    def _over(self, used: str, setting: str) -> BudgetExceeded:
        return BudgetExceeded(
            f"the day's budget for background work is used up: {used}",
            where=str(self._home.root / self._key(self._day())),
            do=f"It starts over at midnight UTC; the setting {setting} raises it",
        )

    def _hold_lock(self) -> AbstractContextManager[None]:
        return FileLock(self._home.root / "usage.lock").hold(PATIENCE)

    def _day(self) -> str:
        return utc_day(self._clock.now())

    def _key(self, day: str) -> str:
        return f"usage/{day}.jsonl"

    def _line(self, reservation: Reservation, more: dict[str, float]) -> None:
        line = {"id": reservation.id, "source": reservation.source, "at": self._clock.now(), **more}
        self._home.append_line(self._key(reservation.day), json.dumps(line).encode())

    def _lines(self, day: str) -> Iterator[dict[str, object]]:
        try:
            data = self._home.read(self._key(day))
        except NotFound:
            return
        for text in data.splitlines():
            try:
                value: object = json.loads(text)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                yield cast("dict[str, object]", value)


async def reserve_cost(
    budget: Budget | None, model: Model, source: str, weighted: float
) -> Reservation | None:
    """Count a request to a model before it leaves; None where nothing is billed for it."""
    if budget is None or model.capabilities.free:
        return None
    return await to_thread.run_sync(budget.reserve, source, weighted)


async def settle_cost(
    budget: Budget | None, known: Reservation | None, usage: Usage | None
) -> None:
    """Set what was reserved to what it cost, where the provider told."""
    if budget is not None and known is not None and usage is not None:
        await to_thread.run_sync(budget.settle, known, usage)


@dataclass(frozen=True, slots=True)
class MeteredRetries(WrappedModel):
    """A model whose further tries are counted, each before it leaves; the first is its user's."""

    model: Model
    budget: Budget | None
    settings: Settings

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        events = self.model.stream(request)
        try:
            async for event in events:
                if isinstance(event, RetryNotice):
                    price = weight(Usage(request.tokens), self.settings)
                    await reserve_cost(self.budget, self.model, request.source, price)
                yield event
        finally:
            close: Callable[[], Awaitable[None]] | None = getattr(events, "aclose", None)
            if close is not None:
                await close()


# --- What the product's own figures are: cache, summaries, breaker, memory, and what it all cost.
#
# Worked out from transcripts and the day's ledgers, never kept beside them: the same files give
# the same figures. Sessions that cannot be read are counted, and the others go on.


@dataclass
class Metrics:
    """The figures of some sessions together."""

    sessions: int = 0
    unreadable: int = 0
    sources: dict[str, UsageTotals] = field(default_factory=dict[str, UsageTotals])
    billed: dict[str, UsageTotals] = field(
        default_factory=dict[str, UsageTotals]
    )  # of those, what is paid for
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
    by_day: dict[str, UsageTotals] = field(
        default_factory=dict[str, UsageTotals]
    )  # of the main agent
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
        none = UsageTotals()
        return {
            name: weight(self.billed.get(name, none).usage, settings)
            for name in sorted(self.sources)
        }


def figures(library: SessionLibrary, files: Iterable[SessionFile], breaker: int) -> Metrics:
    """Read the transcripts and count."""
    from reverie.session.recall.ledger import ledgers

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
                out.by_day.setdefault(day, UsageTotals()).count(usage, 1)
                _add_spend(out, "main", model, usage)
            case ForkEnded() as fork:
                _add_spend(out, fork.source, fork.model or model, fork.usage, fork.requests)
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


def _add_spend(out: Metrics, source: str, model: str, usage: Usage, requests: int = 1) -> None:
    """Add what requests to a model used and cost."""
    from reverie.providers.selection import EMBEDDED

    free = model == EMBEDDED
    out.sources.setdefault(source, UsageTotals()).count(usage, requests)
    if not free:
        out.billed.setdefault(source, UsageTotals()).count(usage, requests)
    cost = dollars(model, usage, free=free)
    if cost is None:
        out.unpriced.add(model)
    else:
        out.dollars[source] = out.dollars.get(source, 0.0) + cost


@dataclass(frozen=True, slots=True)
class DailySpend:
    """What ran unasked on one day, by source, in price-weighted tokens and calls."""

    day: str
    weighted: dict[str, float]
    calls: dict[str, int]


def days(budget: Budget, now: float, count: int = 7) -> Iterator[DailySpend]:
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
            yield DailySpend(
                day, weighted, {source: spent.calls for source, spent in found.items()}
            )
