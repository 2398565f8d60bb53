"""The day's budget for everything that runs unasked, shared by all processes of a home.

A request is counted before it leaves: its estimated price is reserved, and set to what
it really cost once that is known. A provider that tries again counts again each time. At the
limit nothing more leaves, and it says so.
The ledger is one file of JSON lines a day (UTC), `<home>/usage/YYYY-MM-DD.jsonl`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import cast
from uuid import uuid4

from anyio import to_thread

from reverie.errors import BudgetExceeded, NotFound
from reverie.settings import Settings
from reverie.store.files import Folder
from reverie.store.lock import FileLock
from reverie.text.format import utc_day
from reverie.transcript.records import Usage
from reverie.wire.request import Request
from reverie.world import Clock, Event, Model, Retrying, WrappedModel

PATIENCE = 5.0
MAX_PRICE = 2.0**63  # what a line may say that a request cost


@dataclass(frozen=True, slots=True)
class Reservation:
    """A request that was counted."""

    id: str
    day: str
    source: str


@dataclass(frozen=True, slots=True)
class Spent:
    """What a day has used so far, in price-weighted tokens and calls."""

    weighted: float = 0.0
    calls: int = 0


def weight(usage: Usage, settings: Settings) -> float:
    """A request's price in input tokens."""
    short = usage.written - usage.written_1h
    return (
        usage.uncached
        + usage.read * settings.price_read
        + short * settings.price_write_short
        + usage.written_1h * settings.price_write_long
        + usage.output * settings.price_output
    )


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
        with self._locked():
            spent = self.spent(day)
            self._check(spent, weighted)
            self._line(reservation, {"reserved": round(weighted, 2)})
        return reservation

    def settle(self, reservation: Reservation, usage: Usage) -> None:
        """What the request really cost."""
        self._line(reservation, {"spent": round(weight(usage, self._settings), 2)})

    def spent(self, day: str | None = None) -> Spent:
        """What a day has used; a request not settled counts as reserved."""
        found = self.by_source(day or self._day()).values()
        return Spent(sum(one.weighted for one in found), sum(one.calls for one in found))

    def by_source(self, day: str) -> dict[str, Spent]:
        """What each query source used on a day."""
        prices: dict[str, tuple[str, float]] = {}
        for line in self._lines(day):
            name, price = line.get("id"), line.get("spent", line.get("reserved"))
            if isinstance(name, str) and isinstance(price, (int, float)) and 0 <= price < MAX_PRICE:
                prices[name] = str(line.get("source", "")), float(price)
        found: dict[str, Spent] = {}
        for source, price in prices.values():
            before = found.get(source, Spent())
            found[source] = Spent(before.weighted + price, before.calls + 1)
        return found

    def _check(self, spent: Spent, weighted: float) -> None:
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

    def _locked(self) -> AbstractContextManager[None]:
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


async def reserved(
    budget: Budget | None, model: Model, source: str, weighted: float
) -> Reservation | None:
    """Count a request to a model before it leaves; None where nothing is billed for it."""
    if budget is None or model.capabilities.free:
        return None
    return await to_thread.run_sync(budget.reserve, source, weighted)


async def settled(budget: Budget | None, known: Reservation | None, usage: Usage | None) -> None:
    """Set what was reserved to what it cost, where the provider told."""
    if budget is not None and known is not None and usage is not None:
        await to_thread.run_sync(budget.settle, known, usage)


@dataclass(frozen=True, slots=True)
class CountsRetries(WrappedModel):
    """A model whose further tries are counted, each before it leaves; the first is its user's."""

    model: Model
    budget: Budget | None
    settings: Settings

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        events = self.model.stream(request)
        try:
            async for event in events:
                if isinstance(event, Retrying):
                    price = weight(Usage(request.tokens), self.settings)
                    await reserved(self.budget, self.model, request.source, price)
                yield event
        finally:
            close: Callable[[], Awaitable[None]] | None = getattr(events, "aclose", None)
            if close is not None:
                await close()
