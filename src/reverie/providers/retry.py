"""Trying again: how often, how long to wait, and never with half an answer.

Failures are counted. An overload is waited out beyond that count, as long as `patience` says:
it lasts minutes and passes; one that is to last longer by the provider's own word is not.

Waits grow, are spread by chance so that many clients do not come back at once, and are bounded
whatever a provider asks for. A try that fails after some of its answer was shown is made again
whole; what it showed is followed by `Retrying`, and no `Reply` comes of it. Time and chance are
parameters.
"""

from __future__ import annotations

import math
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from datetime import UTC
from email.utils import parsedate_to_datetime

from reverie.errors import Overloaded
from reverie.light import dataclass
from reverie.wire.failures import Setback
from reverie.world import Clock, Event, Retrying

FIRST_WAIT = 0.5  # seconds
LONGEST_WAIT = 60.0
LONGEST_GROWN = 32.0
LONGEST_ASKED = 48.0  # leaves room to spread even those who were told to wait for hours
OVERLOAD_PATIENCE = 600.0
"""Seconds of waiting, all in all, until an overload is taken for the answer."""


@dataclass(frozen=True, slots=True)
class Retries:
    """How a provider tries again."""

    limit: int
    clock: Clock
    chance: Callable[[], float] = random.random
    patience: float = 0.0  # seconds an overload is waited out, beyond the limit

    def ends(self, setback: Setback, tried: int, waited: float) -> bool:
        """Whether no other try is to follow."""
        if not setback.retry or not self.limit:
            return True
        if tried <= self.limit:
            return False
        asked = asked_wait(setback.after, self.clock.now()) or 0.0
        passes = isinstance(setback.error, Overloaded) and asked <= self.patience
        return not passes or waited >= self.patience

    def wait(self, attempt: int, after: str) -> float:
        """Seconds before try number `attempt` + 1: what was asked for, or growing; spread."""
        chance = self.chance()
        grown = min(LONGEST_GROWN, FIRST_WAIT * 2.0 ** (min(attempt, 30) - 1))
        wait = grown / 2 * (1 + chance)
        asked = asked_wait(after, self.clock.now())
        if asked is not None:  # never sooner than asked, but for what no one can wait for
            wait = max(wait, min(asked, LONGEST_ASKED) * (1 + chance / 4))
        return min(LONGEST_WAIT, wait)


def asked_wait(after: str, now: float) -> float | None:
    """The wait a `retry-after` header asks for, or None where it makes no sense."""
    text = after.strip()
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            date = parsedate_to_datetime(text)
        except ValueError:
            return None
        seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


async def persist(
    attempt: Callable[[], AsyncGenerator[Event, None]], retries: Retries
) -> AsyncIterator[Event]:
    """The events of the first try that succeeds, with a `Retrying` between tries."""
    tried, waited = 0, 0.0
    while True:
        try:
            async with aclosing(attempt()) as events:
                async for event in events:
                    yield event
            return
        except Setback as failed:
            setback = failed
        tried += 1
        if retries.ends(setback, tried, waited):
            raise setback.error from setback.__cause__
        wait = retries.wait(tried, setback.after)
        waited += wait
        yield Retrying(tried, wait, str(setback.error))
        await retries.clock.sleep(wait)
