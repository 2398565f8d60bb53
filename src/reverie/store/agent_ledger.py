"""What the user's agent program has cost today, and whether it may be asked now.

One small file for a home, `agent/state.json`, changed under `agent/run.lock`. The lock is held
for as long as a run takes, so that there is one at a time, whichever processes want one. A run is
counted before it starts: one that is killed stays counted at the most it may have cost.

Failures pause it, also after a restart: two in a row for six hours, a missing login or a version
that lacks a flag for a day, a rate limit for an hour. A pause is told once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from reverie.errors import (
    AuthFailed,
    BudgetExceeded,
    Held,
    NotAvailable,
    NotFound,
    Overloaded,
    ProviderError,
    ReverieError,
    StoreError,
)
from reverie.light import dataclass
from reverie.settings.catalog import Settings
from reverie.store.files import Folder
from reverie.store.lock import FileLock
from reverie.text.format import utc_day
from reverie.transcript.records import Usage

PLACE = "agent"
STATE = "state.json"
LOCK = "run.lock"
MAX_STATE = 65_536
HOUR = 3_600.0
FAILURES = 2
PAUSES: tuple[tuple[type[ReverieError], float], ...] = (
    (AuthFailed, 24 * HOUR),
    (NotAvailable, 24 * HOUR),
    (Overloaded, HOUR),
)
"""How long one failure of a kind pauses it; others only where they follow each other."""
AFTER_FAILURES = 6 * HOUR
DREAM_USD = 0.05
"""List price that the one dream of a day may reach, all its rounds together."""
MORE_SECONDS = 30.0
"""Waited for the run before, beyond the time that it has."""


@dataclass(frozen=True, slots=True)
class AgentState:
    """What is known of the runs of a home. Counts are those of `day` (UTC)."""

    day: str = ""
    calls: int = 0
    usd: float = 0.0
    tokens: int = 0
    dreams: int = 0  # begun
    dream_usd: float = 0.0  # of `usd`
    failures: int = 0  # in a row
    until: float = 0.0  # paused until then
    error: str = ""  # the last one
    success_at: float = 0.0
    untold: bool = False  # a pause that nobody was told of


class AgentLedger:
    """The runs of a home; an `AgentMeter` of `providers`. One made for a `dream` counts as that."""

    def __init__(
        self, home: Path, now: Callable[[], float] = time.time, *, dream: bool = False
    ) -> None:
        self._dream = dream
        self._rounds = 0
        self._root = home / PLACE
        self._now = now
        self._lock = FileLock(self._root / LOCK)
        self._reserved = 0.0

    def state(self) -> AgentState:
        """What is known now; counts of an earlier day are over."""
        today = utc_day(self._now())
        try:
            with Folder(self._root, create=False) as folder:
                value = json.loads(folder.read(STATE, MAX_STATE))
            known = AgentState(**{k: type(getattr(_NONE, k))(v) for k, v in value.items()})
        except NotFound:
            known = _NONE
        except (ValueError, TypeError, AttributeError) as error:
            where, do = str(self._root / STATE), "Remove it: counting starts over"
            raise StoreError("What was counted cannot be read", where=where, do=do) from error
        none = dict.fromkeys(("calls", "usd", "tokens", "dreams", "dream_usd"), 0)
        return known if known.day == today else replace(known, day=today, **none)

    def begin(self, settings: Settings, usd: float) -> float:
        """Count a run and hold the lock until `end`; what it may cost. Raises where it may not
        start."""
        with Folder(self._root):
            self._lock.acquire(settings.cli_timeout_seconds + MORE_SECONDS)
        try:
            state = self.state()
            if self._dream:
                usd = min(usd, round(DREAM_USD - state.dream_usd, 6))
            self._check(state, settings, usd)
            self._reserved = usd
            self._write(self._charged(replace(state, calls=state.calls + 1), usd))
            self._rounds += 1
            return usd
        except BaseException:
            self._lock.release()
            raise

    def end(self, usd: float | None, usage: Usage, error: ReverieError | None) -> None:
        """Note what a run came to; where its price is not known, what was reserved stays."""
        try:
            state, now = self.state(), self._now()
            more = 0.0 if usd is None else usd - self._reserved
            state = self._charged(replace(state, tokens=state.tokens + usage.total), more)
            if error is None:
                state = replace(state, failures=0, until=0.0, success_at=now, untold=False)
            elif isinstance(error, ProviderError | NotAvailable):
                state = _failed(state, error, now)
            self._write(state)
        finally:
            self._lock.release()

    def paused(self) -> str:
        """Why it is not asked now, or ""."""
        state = self.state()
        if self._now() >= state.until:
            return ""
        at = time.strftime("%Y-%m-%d %H:%M", time.localtime(state.until))
        return f"paused until {at}: {state.error}"

    def notice(self) -> str:
        """A pause that nobody was told of yet, once."""
        if not self.state().untold:
            return ""
        with suppress(Held), self._lock.hold(0.0):  # one that runs now is told of the next time
            self._write(replace(self.state(), untold=False))
            return self.paused()
        return ""

    def resume(self) -> None:
        """End a pause."""
        with self._lock.hold(MORE_SECONDS):
            self._write(replace(self.state(), failures=0, until=0.0, untold=False))

    def _check(self, state: AgentState, settings: Settings, usd: float) -> None:
        if why := self.paused():
            raise NotAvailable(f"The agent program is {why}", where=str(self._root / STATE))
        if self._dream and (usd <= 0 or (state.dreams and not self._rounds)):
            raise BudgetExceeded("the day's dream was had", where=str(self._root / STATE))
        if state.calls >= settings.cli_daily_calls:
            used, setting = f"{state.calls:,} runs", "cli_daily_calls"
        elif state.usd + usd > settings.cli_daily_usd:
            used, setting = f"${state.usd:.2f} of ${settings.cli_daily_usd:.2f}", "cli_daily_usd"
        else:
            return
        raise BudgetExceeded(
            f"the day's budget of the agent program is used up: {used}",
            where=str(self._root / STATE),
            do=f"It starts over at midnight UTC; the setting {setting} raises it",
        )

    def _charged(self, state: AgentState, usd: float) -> AgentState:
        state = replace(state, usd=round(max(0.0, state.usd + usd), 6))
        if not self._dream:
            return state
        return replace(state, dreams=1, dream_usd=round(max(0.0, state.dream_usd + usd), 6))

    def _write(self, state: AgentState) -> None:
        with Folder(self._root) as folder:
            folder.write(STATE, json.dumps(asdict(state)).encode())


_NONE = AgentState()


def _failed(state: AgentState, error: ReverieError, now: float) -> AgentState:
    failures = state.failures + 1
    pause = next((seconds for kind, seconds in PAUSES if isinstance(error, kind)), 0.0)
    if not pause and failures >= FAILURES:
        pause = AFTER_FAILURES
    known = replace(state, failures=failures, error=str(error))
    return replace(known, until=now + pause, untold=True) if pause else known
