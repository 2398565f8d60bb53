"""What rules did, counted: matched, held, changed afterwards, broken all the same, said again;
and a level that the user was offered and declined.

One line for each thing that happened, of the rule's file and never of its text; summed up by rule
and by day. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from reverie.light import dataclass
from reverie.text.format import utc_day

MATCHED, HELD, ASKED, BLOCKED, CHANGED, BROKEN, SAID, DECLINED = EVENTS = (
    "matched", "held", "asked", "blocked", "changed", "broken", "said", "declined",
)  # fmt: skip
IGNORED = 3
"""Times that a rule was held and broken all the same, and never followed: it is told."""


@dataclass(frozen=True, slots=True)
class RuleCounts:
    """What one rule did; `days` are the counts by day."""

    file: str
    total: Mapping[str, int]
    days: Mapping[str, Mapping[str, int]]

    def of(self, event: str) -> int:
        return self.total.get(event, 0)

    @property
    def is_overridden(self) -> bool:
        """Whether it was held, and the call made all the same, every time."""
        return self.of(BROKEN) >= IGNORED and not self.of(CHANGED)

    def after(self, day: str) -> RuleCounts:
        """What it did on the days after one."""
        days = {one: events for one, events in self.days.items() if one > day}
        return RuleCounts(self.file, _summed(days.values()), days)

    def value(self) -> dict[str, Any]:
        return {**{event: self.of(event) for event in EVENTS}, "days": dict(self.days)}


def line(file: str, event: str, at: float, session: str = "") -> bytes:
    """One thing that happened."""
    value = {"at": round(at), "rule": file, "event": event, "session": session}
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def counted(data: bytes) -> dict[str, RuleCounts]:
    """A ledger summed up by rule; lines that cannot be read are passed over."""
    days: dict[str, dict[str, dict[str, int]]] = {}
    for raw in data.splitlines():
        row = _row(raw)
        if row is None:
            continue
        file, event, day, count = row
        there = days.setdefault(file, {}).setdefault(day, {})
        there[event] = there.get(event, 0) + count
    return {
        file: RuleCounts(file, _summed(by_day.values()), by_day) for file, by_day in days.items()
    }


def _row(raw: bytes) -> tuple[str, str, str, int] | None:
    try:
        found = json.loads(raw)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    value = cast("dict[str, Any]", found)
    event, file, at, count = (value.get(k) for k in ("event", "rule", "at", "count"))
    if event not in EVENTS or not isinstance(file, str) or not isinstance(at, int | float):
        return None
    try:
        day = utc_day(at)
    except (OverflowError, OSError, ValueError):
        return None
    return file, event, day, count if isinstance(count, int) and count > 0 else 1


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for one in counts:
        for event, count in one.items():
            total[event] = total.get(event, 0) + count
    return total


def shortened(counts: Sequence[RuleCounts]) -> bytes:
    """A ledger with one line for each rule, day and event."""
    rows: list[bytes] = []
    for one in counts:
        for day, events in sorted(one.days.items()):
            at = datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
            for event, count in events.items():
                value = {"at": round(at), "rule": one.file, "event": event, "count": count}
                rows.append(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
    return b"\n".join([*rows, b""]) if rows else b""
