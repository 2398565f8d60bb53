from __future__ import annotations

from collections.abc import AsyncGenerator
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.errors import Overloaded, ProviderError
from reverie.providers import LONGEST_WAIT, OVERLOAD_PATIENCE, Retries, asked_wait, persist
from reverie.testing import ManualClock, reply
from reverie.wire import Delta, FailedAttempt, Reply
from reverie.world import Event, RetryNotice

pytestmark = pytest.mark.spec("2")
NOW = ManualClock().now()


@pytest.mark.parametrize(
    ("after", "seconds"),
    [
        ("", None),
        ("2", 2.0),
        (" 0.5 ", 0.5),
        ("0", 0.0),
        ("-5", None),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("1e9", 1e9),
        (formatdate(NOW + 30, usegmt=True), 30.0),
        (formatdate(NOW - 30, usegmt=True), None),
        ("Thu, 99 Foo 2026 00:00:00 GMT", None),
    ],
)
def test_what_a_retry_after_asks_for(after: str, seconds: float | None) -> None:
    assert asked_wait(after, NOW) == seconds


@given(st.integers(1, 200), st.text(max_size=30) | st.floats().map(str), st.floats(0, 1))
def test_a_wait_is_bounded_whatever_is_asked(attempt: int, after: str, chance: float) -> None:
    wait = Retries(5, ManualClock(), lambda: chance).wait(attempt, after)
    assert 0 < wait <= LONGEST_WAIT


def test_waits_grow_and_are_spread() -> None:
    low, high = (Retries(5, ManualClock(), lambda c=c: c) for c in (0.0, 1.0))
    assert [low.wait(n, "") for n in range(1, 9)] == [0.25, 0.5, 1, 2, 4, 8, 16, 16]
    assert [high.wait(n, "") for n in range(1, 9)] == [0.5, 1, 2, 4, 8, 16, 32, 32]
    assert low.wait(1, "10") == 10
    assert high.wait(1, "10") == 12.5
    assert low.wait(1, "86400") == 48  # hours are not waited for, and not by all at once
    assert high.wait(1, "86400") == 60
    assert low.wait(6, "0") == 8  # "at once" does not make a storm


async def run(
    failures: list[FailedAttempt], limit: int, clock: ManualClock, patience: float = 0.0
) -> list[Event]:
    pending = list(failures)

    async def attempt() -> AsyncGenerator[Event, None]:
        yield Delta("text", "half")
        if pending:
            raise pending.pop(0)
        yield reply("whole")

    retries = Retries(limit, clock, lambda: 0.0, patience)
    return [event async for event in persist(attempt, retries)]


def busy(after: str = "", retry: bool = True) -> FailedAttempt:
    return FailedAttempt(Overloaded("busy", do="Wait"), retry=retry, after=after)


async def test_tries_are_counted_and_announced() -> None:
    clock = ManualClock()
    events = await run([busy(), busy("7")], 5, clock)
    assert clock.slept == [0.25, 7.0]
    assert [e for e in events if isinstance(e, RetryNotice)] == [
        RetryNotice(1, 0.25, "busy. Wait"),
        RetryNotice(2, 7.0, "busy. Wait"),
    ]
    assert [type(e) for e in events][-1] is Reply
    assert sum(isinstance(e, Reply) for e in events) == 1


async def test_an_overload_is_waited_out_for_minutes() -> None:
    clock = ManualClock()
    events = await run([busy()] * 20, 5, clock, OVERLOAD_PATIENCE)
    assert sum(isinstance(e, RetryNotice) for e in events) == 20
    assert isinstance(events[-1], Reply)
    assert 200 < sum(clock.slept) < OVERLOAD_PATIENCE


async def test_an_overload_that_does_not_pass_ends_too() -> None:
    clock = ManualClock()
    with pytest.raises(Overloaded):
        await run([busy()] * 1_000, 5, clock, OVERLOAD_PATIENCE)
    assert OVERLOAD_PATIENCE <= sum(clock.slept) <= OVERLOAD_PATIENCE + LONGEST_WAIT


@pytest.mark.parametrize(
    ("setback", "limit", "patience", "tries"),
    [
        (busy(), 0, 0.0, 0),
        (busy(), 1, 0.0, 1),
        (busy(), 5, 0.0, 5),
        (busy(retry=False), 5, 0.0, 0),  # what will not pass is not tried again
        (busy("86400"), 5, OVERLOAD_PATIENCE, 5),  # nor is one waited out that is to last
        (FailedAttempt(ProviderError("broken"), retry=True), 5, OVERLOAD_PATIENCE, 5),
        (busy(), 0, OVERLOAD_PATIENCE, 0),
        (busy(), 5, OVERLOAD_PATIENCE, 43),
    ],
)
async def test_tries_end_and_patience_is_for_overloads_that_may_pass(
    setback: FailedAttempt, limit: int, patience: float, tries: int
) -> None:
    clock = ManualClock()
    with pytest.raises(type(setback.error), match=setback.error.what):
        await run([setback] * 1_000, limit, clock, patience)
    assert len(clock.slept) == tries
