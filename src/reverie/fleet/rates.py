"""What a paid model may be asked: so much a minute for each key, so much a day for each tenant.

Both are taken at the model call, before the request leaves, and set right by what it used. A rate
is one row for each key of a provider; a budget one row for a tenant and day. Taking is a single
conditional statement, so any number of workers on any number of hosts share them and none is ever
overdrawn: what is taken is the most that a request can cost, its whole answer included.

A rate is kept as the time at which all that was taken is earned again. A request may leave if
that time, with its own share, is not further ahead than a burst; after a pause that earned more,
a large one may take more. So within any window of `WINDOW` seconds no more than the limit is
taken: the proof is short. Let the window begin at s, and its last take be at t. What was taken in
it before has moved the time to at least s + taken, and the last one passed taken + own <= t - s +
burst: at most a window and a burst, which is what the limit is earned in. `WINDOW` is longer than
a minute, since requests travel.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from hashlib import sha256
from typing import Any, Protocol

from anyio import to_thread

from reverie.errors import BudgetExceeded, InvalidInput, InvalidMessage, Overloaded, ProviderError
from reverie.fleet.ledger import FleetLedger
from reverie.light import dataclass
from reverie.session.budget import Reservation, weight
from reverie.settings.catalog import Settings
from reverie.transcript.blocks import parse
from reverie.transcript.records import Usage
from reverie.wire.reply import Reply
from reverie.wire.request import Request
from reverie.world import Clock, Event, Model, RetryNotice, WrappedModel

WINDOW = 62.0
BURST = 8.0
"""Seconds' worth of a rate that may leave at once. What takes more has to find the key idle for
longer: a few large requests do not use a key up as well as many small ones."""
LONGEST_NAP = 5.0
ANY_KEY = "*"
MARGIN = 1.3
"""What an estimate of input tokens is multiplied with: the provider's count decides."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a key may be asked for in a minute; 0 is no limit."""

    requests: float = 0.0
    input: float = 0.0
    output: float = 0.0


@dataclass(frozen=True, slots=True)
class RateUse:
    """What one request takes, or took."""

    requests: float = 1.0
    input: float = 0.0
    output: float = 0.0


class Rates:
    """The rates of all keys, in the ledger's database."""

    def __init__(self, ledger: FleetLedger) -> None:
        self._ledger = ledger
        self._made: set[str] = set()

    def limits(self) -> dict[str, Limits]:
        """The limits by key; `*` counts for those that have none of their own."""
        rows = self._run("SELECT name, requests, input, output FROM fleet_limits ORDER BY name")
        return {str(r[0]): Limits(*(float(n or 0) for n in r[1:])) for r in rows}

    def set_limits(self, name: str, limits: Limits) -> None:
        self._run(
            "INSERT INTO fleet_limits (name, requests, input, output) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (name) DO UPDATE SET requests = excluded.requests,"
            " input = excluded.input, output = excluded.output",
            (name, limits.requests, limits.input, limits.output),
        )

    def of(self, name: str) -> Limits:
        known = self.limits()
        return known.get(name) or known.get(ANY_KEY) or Limits()

    def take(self, name: str, share: RateUse) -> float:
        """Take a share: 0 where it was taken, else the seconds after which to ask again."""
        limits = self.of(name)
        costs = _seconds(name, limits, share)
        self._there(name)
        taken = self._run(
            _TAKE.format(now=self._ledger.now_sql),
            (*costs, name, *(one for cost in costs for one in (cost, BURST))),
        )
        if taken:
            return 0.0
        return self._wait(name, costs)

    def settle(self, name: str, took: RateUse, used: RateUse) -> None:
        """Set right what was taken, now that it is known."""
        limits = self.of(name)
        more = [
            b - a
            for a, b in zip(
                _seconds(name, limits, took), _seconds(name, limits, used, whole=False), strict=True
            )
        ]
        self._run(
            "UPDATE fleet_rates SET requests = requests + ?, input = input + ?,"
            " output = output + ? WHERE name = ?",
            (*more, name),
        )

    def block(self, name: str, seconds: float) -> None:
        """The provider asked to be left alone for so long: nothing leaves until then."""
        self._there(name)
        until = f"{self._ledger.now_sql} + {float(seconds)!r}"
        self._run(
            f"UPDATE fleet_rates SET blocked = {until} WHERE name = ? AND blocked < {until}",
            (name,),
        )

    def _there(self, name: str) -> None:
        """The row of a key; one that is new begins with a burst, and no more."""
        if name in self._made:
            return
        now = self._ledger.now_sql
        self._run(
            "INSERT INTO fleet_rates (name, requests, input, output, blocked)"
            f" VALUES (?, {now}, {now}, {now}, 0) ON CONFLICT DO NOTHING",
            (name,),
        )
        self._made.add(name)

    def _wait(self, name: str, costs: Sequence[float]) -> float:
        now = self._ledger.now_sql
        row = self._run(
            f"SELECT requests - {now}, input - {now}, output - {now}, blocked - {now}"
            " FROM fleet_rates WHERE name = ?",
            (name,),
        )[0]
        ahead = [float(at or 0) + cost - BURST for at, cost in zip(row[:3], costs, strict=True)]
        return max(0.05, *ahead, float(row[3] or 0))

    def _run(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._ledger.patient(lambda: self._ledger.database.write(sql, values))


_TAKE = (
    "UPDATE fleet_rates SET"
    " requests = CASE WHEN requests > {now} THEN requests ELSE {now} END + ?,"
    " input = CASE WHEN input > {now} THEN input ELSE {now} END + ?,"
    " output = CASE WHEN output > {now} THEN output ELSE {now} END + ?"
    " WHERE name = ? AND blocked <= {now} AND requests + ? <= {now} + ?"
    " AND input + ? <= {now} + ? AND output + ? <= {now} + ? RETURNING 1"
)


def _seconds(name: str, limits: Limits, share: RateUse, *, whole: bool = True) -> list[float]:
    """How long each part of a share takes to be earned again."""
    found: list[float] = []
    for part in ("requests", "input", "output"):
        limit, wanted = float(getattr(limits, part)), float(getattr(share, part))
        if whole and limit and wanted > limit:
            raise InvalidInput(
                f"One request may need {wanted:,.0f} ({part}), and the key has {limit:,.0f} a"
                " minute",
                where=name,
                do="Raise the limit with `reverie fleet limits`, or lower maxOutputTokens",
            )
        found.append(wanted * (WINDOW + BURST) / limit if limit else 0.0)
    return found


# Budgets


class SpendLimit(Protocol):
    """Where money comes from: reserved before a request leaves, settled by its usage."""

    def reserve(self, source: str, weighted: float) -> Reservation: ...
    def settle(self, reservation: Reservation, usage: Usage) -> None: ...


class TenantBudget:
    """A tenant's budget of the day."""

    def __init__(self, ledger: FleetLedger, tenant: str, settings: Settings) -> None:
        self._ledger = ledger
        self._tenant = tenant
        self._settings = settings
        self._reserved: dict[str, float] = {}

    def reserve(self, source: str, weighted: float) -> Reservation:
        day = self._ledger.today()
        if not self._ledger.patient(lambda: self._take(day, weighted)):
            raise BudgetExceeded(
                f"the budget of {self._tenant} for {day} has no room for this request",
                where=self._tenant,
                do="It goes on tomorrow (UTC); `reverie fleet budget` raises it",
            )
        made = Reservation(f"{self._tenant}:{len(self._reserved)}", day, source)
        self._reserved[made.id] = weighted
        return made

    def _take(self, day: str, weighted: float) -> bool:
        write = self._ledger.database.write
        write(
            "INSERT INTO fleet_spent (tenant, day, tokens, calls) VALUES (?, ?, 0, 0)"
            " ON CONFLICT DO NOTHING",
            (self._tenant, day),
        )
        most = "(SELECT t.{} FROM fleet_tenants t WHERE t.tenant = fleet_spent.tenant)"
        rows = write(
            "UPDATE fleet_spent SET tokens = tokens + ?, calls = calls + 1"
            " WHERE tenant = ? AND day = ?"
            f" AND tokens + ? <= COALESCE({most.format('tokens')}, tokens + ?)"
            f" AND calls + 1 <= COALESCE({most.format('calls')}, calls + 1) RETURNING 1",
            (weighted, self._tenant, day, weighted, weighted),
        )
        return bool(rows)

    def settle(self, reservation: Reservation, usage: Usage) -> None:
        spent = weight(usage, self._settings)
        more = spent - self._reserved.pop(reservation.id, 0.0)
        self._ledger.patient(
            lambda: self._ledger.database.write(
                "UPDATE fleet_spent SET tokens = tokens + ? WHERE tenant = ? AND day = ?",
                (more, self._tenant, reservation.day),
            )
        )


def set_budget(ledger: FleetLedger, tenant: str, tokens: float | None, calls: int | None) -> None:
    """What a tenant may spend in a day; None is no limit."""
    ledger.database.write(
        "INSERT INTO fleet_tenants (tenant, paused, tokens, calls) VALUES (?, 0, ?, ?)"
        " ON CONFLICT (tenant) DO UPDATE SET tokens = excluded.tokens, calls = excluded.calls",
        (tenant, tokens, calls),
    )


def spent_by_tenant(ledger: FleetLedger, day: str = "") -> dict[str, dict[str, float]]:
    """What each tenant spent on a day, today if none is named."""
    rows = ledger.database.run(
        lambda within: within.rows(
            "SELECT tenant, tokens, calls FROM fleet_spent WHERE day = ? ORDER BY tenant",
            (day or ledger.today(),),
        )
    )
    return {str(r[0]): {"tokens": float(r[1] or 0), "calls": int(r[2] or 0)} for r in rows}


def until_tomorrow(now: float) -> float:
    """Seconds until the next day (UTC) begins."""
    return 86_400.0 - now % 86_400.0


# The model


def key_name(url: str, key: str) -> str:
    """A provider's key as the ledger knows it: its host and a digest, never the key."""
    host = url.rsplit("://", maxsplit=1)[-1].split("/", maxsplit=1)[0].rpartition("@")[2]
    return f"{host}:{sha256(key.encode()).hexdigest()[:12]}"


class MeteredModel(WrappedModel):
    """A model that is asked only when the key's rate and every purse have room."""

    def __init__(
        self,
        model: Model,
        settings: Settings,
        clock: Clock,
        *,
        rates: Rates | None = None,
        key: str = "",
        purses: Sequence[SpendLimit] = (),
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.model = model
        self.settings = settings
        self.refused: BudgetExceeded | None = None
        self._clock = clock
        self._rates = rates
        self._key = key
        self._purses = purses
        self._chance = chance

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        if self.model.capabilities.free:
            async for event in self.model.stream(request):
                yield event
            return
        share = self._most(request)
        paid = await self._pay(request, share)
        usage: Usage | None = None
        events = self.model.stream(request)
        try:
            async for event in events:
                if isinstance(event, RetryNotice):  # the next try is a request too
                    await self._block_key(event.wait)
                    await self._wait_for(share)
                elif isinstance(event, Reply):
                    usage = event.usage
                yield event
        except ProviderError as error:  # nothing is billed for it
            if isinstance(error, Overloaded):
                await self._block_key(LONGEST_NAP)
            await self._return(paid)
            raise
        finally:
            close: Callable[[], Awaitable[None]] | None = getattr(events, "aclose", None)
            if close is not None:
                await close()
        await self._settle(share, paid, usage)

    def _most(self, request: Request) -> RateUse:
        """The most that a request can take."""
        most = self.settings.max_output_tokens
        known = min(self.capabilities.max_output or most, most)
        return RateUse(1.0, request.tokens * MARGIN, float(_asked_output(request) or known))

    async def _pay(self, request: Request, share: RateUse) -> list[Reservation]:
        dearest = max(1.0, self.settings.price_write_short, self.settings.price_write_long)
        price = share.input * dearest + share.output * self.settings.price_output
        paid: list[Reservation] = []
        try:
            for purse in self._purses:
                one = await to_thread.run_sync(purse.reserve, request.source, price)
                paid.append(one)
        except BudgetExceeded as error:
            self.refused = error
            await self._return(paid)
            raise
        await self._wait_for(share)
        return paid

    async def _return(self, paid: list[Reservation]) -> None:
        for purse, one in zip(self._purses, paid, strict=False):
            await to_thread.run_sync(purse.settle, one, Usage())

    async def _wait_for(self, share: RateUse) -> None:
        if self._rates is None:
            return
        while True:
            wait = await to_thread.run_sync(self._rates.take, self._key, share)
            if not wait:
                return
            await self._clock.sleep(min(wait, LONGEST_NAP) * (1 + self._chance() / 4))

    async def _block_key(self, seconds: float) -> None:
        if self._rates is not None and seconds > 0:
            await to_thread.run_sync(self._rates.block, self._key, seconds)

    async def _settle(self, took: RateUse, paid: list[Reservation], usage: Usage | None) -> None:
        if usage is None:
            return  # nobody said: what was taken stays taken
        for purse, one in zip(self._purses, paid, strict=True):
            await to_thread.run_sync(purse.settle, one, usage)
        if self._rates is not None:
            sent = usage.uncached + usage.read + usage.written
            used = RateUse(1.0, float(sent), float(usage.output))
            await to_thread.run_sync(self._rates.settle, self._key, took, used)


def _asked_output(request: Request) -> int:
    try:
        options = parse(request.head.options or "{}")
    except InvalidMessage:
        return 0
    found = options.get("max_tokens") if isinstance(options, dict) else None
    return found if isinstance(found, int) else 0
