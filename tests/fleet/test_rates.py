"""Rates at the model call and budgets of the day: never overdrawn, by however many workers."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.errors import BudgetExceeded, InvalidInput, Overloaded
from reverie.fleet import (
    WINDOW,
    FleetLedger,
    Limits,
    MeteredModel,
    Rates,
    RateUse,
    TenantBudget,
    key_name,
    set_budget,
    spent_by_tenant,
    until_tomorrow,
)
from reverie.settings import DEFAULTS
from reverie.team import open_database
from reverie.testing import ManualClock, ScriptedModel, reply
from reverie.transcript import HeadSet, Trail, Usage, dump
from reverie.wire import Request
from reverie.world import Capabilities, complete

pytestmark = [pytest.mark.spec("9.fleet-rates")]
_numbers = itertools.count()
PAID = Capabilities(max_output=1_000)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_790_000_000.0)


def opened(folder: Path, clock: ManualClock) -> FleetLedger:
    ledger = FleetLedger(open_database(str(folder / "fleet.sqlite3")), now=clock.now)
    ledger.make()
    return ledger


@pytest.fixture
def ledger(tmp_path: Path, clock: ManualClock) -> Iterator[FleetLedger]:
    made = opened(tmp_path, clock)
    yield made
    made.close()


@pytest.fixture(scope="module")
def many_keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Rates, ManualClock]]:
    clock = ManualClock(1_790_000_000.0)
    made = opened(tmp_path_factory.mktemp("rates"), clock)
    rates = Rates(made)
    rates.set_limits("*", Limits(0, 100, 0))
    yield rates, clock
    made.close()


def request(tokens: int = 100) -> Request:
    return Request(HeadSet("m", "[]", "[]"), Trail(), (), tokens=tokens)


def most_in_a_window(takes: list[tuple[float, float]], seconds: float) -> float:
    """The largest sum of amounts within any window; the judge, by brute force."""
    return max(
        (sum(a for at, a in takes if begin <= at <= begin + seconds) for begin, _ in takes),
        default=0.0,
    )


@given(
    steps=st.lists(
        st.tuples(st.floats(0.0, 40.0), st.integers(1, 100), st.floats(0.0, 1.0)), max_size=30
    )
)
def test_no_window_holds_more_than_the_limit(
    steps: list[tuple[float, int, float]], many_keys: tuple[Rates, ManualClock]
) -> None:
    """Whatever is asked for when, and however little of it is used in the end."""
    rates, clock = many_keys
    key = f"key{next(_numbers)}"
    takes: list[tuple[float, float]] = []
    for pause, amount, used in steps:
        clock.time += pause
        took = RateUse(1, amount)
        if not rates.take(key, took):
            spends = int(amount * used)
            rates.settle(key, took, RateUse(1, spends))
            takes.append((clock.time, float(spends)))
    assert most_in_a_window(takes, WINDOW) <= 100.001


@pytest.mark.parametrize("amount", [3, 7, 50])
def test_nobody_who_asks_all_the_time_gets_more_than_the_limit(
    amount: int, ledger: FleetLedger, clock: ManualClock
) -> None:
    rates = Rates(ledger)
    rates.set_limits("*", Limits(0, 100, 0))
    takes: list[tuple[float, float]] = []
    for _ in range(200):
        while not rates.take("key", RateUse(1, amount)):
            takes.append((clock.time, float(amount)))
        clock.time += 1.0
    assert most_in_a_window(takes, WINDOW) <= 100.001
    used = sum(a for _, a in takes) / (200 * 100 / 60)  # of what the provider would give
    assert used > (0.8 if amount < 10 else 0.4)


def test_an_idle_key_may_take_a_large_request_and_then_waits(
    ledger: FleetLedger, clock: ManualClock
) -> None:
    rates = Rates(ledger)
    rates.set_limits("*", Limits(0, 100, 0))
    assert rates.take("key", RateUse(1, 80)) > 0  # it has not earned that yet
    clock.time += WINDOW
    assert rates.take("key", RateUse(1, 80)) == 0
    wait = rates.take("key", RateUse(1, 30))
    assert 0 < wait < 2 * WINDOW
    clock.time += wait + 0.01
    assert rates.take("key", RateUse(1, 30)) == 0


def test_what_can_never_leave_is_refused(ledger: FleetLedger) -> None:
    rates = Rates(ledger)
    rates.set_limits("*", Limits(0, 0, 500))
    with pytest.raises(InvalidInput, match="the key has 500 a minute"):
        rates.take("key", RateUse(1, 1, 501))


def test_a_retry_after_empties_the_key(ledger: FleetLedger, clock: ManualClock) -> None:
    rates = Rates(ledger)
    rates.set_limits("*", Limits(60, 0, 0))
    rates.block("key", 20)
    assert rates.take("key", RateUse()) == pytest.approx(20, abs=0.1)
    clock.time += 21
    assert rates.take("key", RateUse()) == 0


async def test_the_model_waits_for_its_rate_before_a_request_leaves(
    ledger: FleetLedger, clock: ManualClock
) -> None:
    rates = Rates(ledger)
    rates.set_limits("*", Limits(10, 0, 0))
    left: list[float] = []

    def answer(_: Request) -> str:
        left.append(clock.time)
        return "yes"

    model = ScriptedModel(answer, capabilities=PAID)
    metered = MeteredModel(model, DEFAULTS, clock, rates=rates, key="k", chance=lambda: 0.0)
    for _ in range(25):
        await complete(metered, request())
    assert most_in_a_window([(at, 1.0) for at in left], 60.0) <= 10
    assert left[-1] - left[0] < 25 * 8  # and it does not dawdle


async def test_a_failed_request_is_not_billed_and_an_overload_blocks_the_key(
    ledger: FleetLedger, clock: ManualClock
) -> None:
    set_budget(ledger, "acme", 100_000.0, None)
    rates = Rates(ledger)
    purse = TenantBudget(ledger, "acme", DEFAULTS)
    model = ScriptedModel([Overloaded("too much")], capabilities=PAID)
    metered = MeteredModel(model, DEFAULTS, clock, rates=rates, key="k", purses=[purse])
    with pytest.raises(Overloaded):
        await complete(metered, request())
    assert spent_by_tenant(ledger)["acme"]["tokens"] == 0
    assert rates.take("k", RateUse()) > 1


async def test_a_budget_is_reserved_before_and_settled_by_usage(
    ledger: FleetLedger, clock: ManualClock
) -> None:
    set_budget(ledger, "acme", 6_000.0, None)
    purse = TenantBudget(ledger, "acme", DEFAULTS)
    usage = Usage(uncached=100, output=10)
    model = ScriptedModel(lambda _: reply("yes", usage=usage), capabilities=PAID)
    metered = MeteredModel(model, DEFAULTS, clock, purses=[purse])
    for _ in range(5):  # each uses 150, and 5,260 must be free for another
        await complete(metered, request())
    with pytest.raises(BudgetExceeded, match="acme") as said:
        await complete(metered, request())
    assert metered.refused is said.value
    assert "tomorrow" in said.value.do
    assert spent_by_tenant(ledger)["acme"]["tokens"] == 5 * 150.0
    clock.time += until_tomorrow(clock.time) + 1
    await complete(metered, request())


async def test_the_output_that_a_request_asks_for_is_what_is_taken(
    ledger: FleetLedger, clock: ManualClock
) -> None:
    set_budget(ledger, "acme", 700.0, None)
    purse = TenantBudget(ledger, "acme", DEFAULTS)
    model = ScriptedModel(lambda _: "yes", capabilities=PAID)
    metered = MeteredModel(model, DEFAULTS, clock, purses=[purse])
    small = Request(
        HeadSet("m", "[]", "[]", options=dump({"max_tokens": 50})), Trail(), (), tokens=9
    )
    await complete(metered, small)
    with pytest.raises(BudgetExceeded):
        await complete(metered, request())


async def test_what_is_free_is_not_counted(ledger: FleetLedger, clock: ManualClock) -> None:
    set_budget(ledger, "acme", 0.0, 0)
    purse = TenantBudget(ledger, "acme", DEFAULTS)
    model = ScriptedModel(lambda _: "yes", capabilities=Capabilities(free=True))
    await complete(MeteredModel(model, DEFAULTS, clock, purses=[purse]), request())
    assert spent_by_tenant(ledger) == {}


def test_sixteen_that_reserve_at_once_never_overdraw(ledger: FleetLedger) -> None:
    set_budget(ledger, "acme", 1_000.0, None)
    got: list[float] = []

    def work() -> None:
        purse = TenantBudget(ledger, "acme", DEFAULTS)
        for _ in range(10):
            try:
                purse.reserve("dream", 30.0)
            except BudgetExceeded:
                return
            got.append(30.0)

    threads = [threading.Thread(target=work) for _ in range(16)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sum(got) == 990.0
    assert spent_by_tenant(ledger)["acme"]["tokens"] == 990.0


def test_a_key_is_known_by_a_digest() -> None:
    name = key_name("https://user@api.example.com/v1", "sk-secret")
    assert name.startswith("api.example.com:")
    assert "secret" not in name
    assert name != key_name("https://api.example.com/v1", "sk-other")
