"""What rules did, line by line, and what a person is offered for it.

One line for each thing that happened: matched, held, changed afterwards, broken all the same, said
again; and a level that the user was offered and declined. A line names the rule's file and nothing
of its text. Lines are summed up by rule and by day. Nothing here reads a file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from reverie.light import dataclass
from reverie.rules.match import ASK, BLOCK, REMIND, USER, CompiledRule
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
        broken = self.of(BROKEN)
        return broken >= max(IGNORED, self.of(HELD)) and not self.of(CHANGED)

    def after(self, day: str) -> RuleCounts:
        """What it did on the days after one."""
        days = {one: events for one, events in self.days.items() if one > day}
        return RuleCounts(self.file, _sum_counts(days.values()), days)

    def value(self) -> dict[str, Any]:
        return {**{event: self.of(event) for event in EVENTS}, "days": dict(self.days)}


def line(file: str, event: str, at: float, session: str = "") -> bytes:
    """One thing that happened."""
    value = {"at": round(at), "rule": file, "event": event, "session": session}
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def sum_by_rule(data: bytes) -> dict[str, RuleCounts]:
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
        file: RuleCounts(file, _sum_counts(by_day.values()), by_day)
        for file, by_day in days.items()
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


def _sum_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for one in counts:
        for event, count in one.items():
            total[event] = total.get(event, 0) + count
    return total


def compact_ledger(counts: Sequence[RuleCounts]) -> bytes:
    """A ledger with one line for each rule, day and event."""
    rows: list[bytes] = []
    for one in counts:
        for day, events in sorted(one.days.items()):
            at = datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
            for event, count in events.items():
                value = {"at": round(at), "rule": one.file, "event": event, "count": count}
                rows.append(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
    return b"\n".join([*rows, b""]) if rows else b""


# --- What a person is offered where a rule had to be said too often: that it may do more.
#
# A rule that reminds may ask, one that asks may block. Whoever declined is not offered it again.


OFFERED = 3
"""Times from which on the next level is offered."""
_NEXT = {REMIND: ASK, ASK: BLOCK}


@dataclass(frozen=True, slots=True)
class RuleSuggestion:
    """A level that a rule of the user's could have."""

    file: str
    times: int
    text: str
    level: str

    @property
    def question(self) -> str:
        does = "Be asked before calls" if self.level == ASK else "Block calls"
        return f"Said {self.times} times: {self.text} {does} that break it?"


def offer_of(rule: CompiledRule, counts: RuleCounts | None) -> RuleSuggestion | None:
    """What is offered of a rule, or nothing."""
    times, level = rule.get("said", 1), _NEXT.get(rule.get("level", REMIND), "")
    if times < OFFERED or not level or rule.get("source", USER) != USER:
        return None
    if counts is not None and counts.of(DECLINED):
        return None
    text = " ".join(rule.get("text", "").partition("\n\n")[0].split())
    ended = text if text.endswith((".", "!", "?")) else f"{text}."
    return RuleSuggestion(rule.get("file", ""), times, ended, level)


def offers(rules: Iterable[CompiledRule], counts: Mapping[str, RuleCounts]) -> list[RuleSuggestion]:
    """What is offered of all rules, the one that was said most often first."""
    found = [offer_of(rule, counts.get(rule.get("file", ""))) for rule in rules]
    return sorted((one for one in found if one), key=lambda one: (-one.times, one.file))
