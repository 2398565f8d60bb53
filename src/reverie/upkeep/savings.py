"""What a policy saved on one's own sessions: the figures of `replay`, kept by session and policy.

A figure holds as long as its transcript has the same stamp and the settings are the same. One that
could not be worked out is kept as such, so that nobody tries it again and again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from reverie.settings import SETTINGS, Settings
from reverie.store.plain import digest
from reverie.upkeep.derived import Derived
from reverie.upkeep.timeline import Values

PAGE = 50
POINTS = 120
AT_REST = 300.0
"""Seconds after which a session that was replayed before is replayed again."""
UNRELATED = ("background_tokens_per_day", "background_calls_per_day", "background_processes")
"""Settings that change no replay."""
SavingSort = Literal["title", "at", "requests", "naive", "cost", "saved", "share"]
SORTS: tuple[SavingSort, ...] = get_args(SavingSort)
_ORDER = {"title": "session.title", "at": "session.at", "share": "saving.saved / saving.naive"}
_NUMBERS = ("naive", "cost", "saved", "requests", "back", "breaks", "lost", "facts", "facts_here")
_COLUMNS = ("id", "policy", "stamp", *_NUMBERS, "summaries", "peak", "value")
_PUT = f"INSERT OR REPLACE INTO saving VALUES ({', '.join('?' * len(_COLUMNS))})"


@dataclass(frozen=True, slots=True)
class SavingQuery:
    """What a list of savings shows."""

    policy: str = "collapse"
    sort: SavingSort = "saved"
    descending: bool = True
    page: int = 1


class Savings:
    """The kept figures of one project."""

    def __init__(self, base: Derived, settings: Settings) -> None:
        self.base = base
        known = {name: getattr(settings, name) for name in SETTINGS if name not in UNRELATED}
        self._mark = digest(repr(known).encode())[:12]

    # Bringing up to date

    def stale(self, policy: str, most: int, now: float) -> list[tuple[str, str]]:
        """Sessions whose figures are missing, or old while the session is at rest, the newest
        first, with their stamps: one that runs is not replayed at its every step."""
        rows = self.base.rows(
            "SELECT session.id, session.stamp FROM session LEFT JOIN saving ON"
            " saving.id = session.id AND saving.policy = ? WHERE session.error = ''"
            " AND session.messages > 0 AND (saving.stamp IS NULL OR"
            " saving.stamp != session.stamp || ? AND session.at < ?)"
            " ORDER BY session.at DESC, session.id LIMIT ?",
            (policy, self._mark, now - AT_REST, most),
        )
        return [(row[0], row[1]) for row in rows]

    def take(
        self, policy: str, asked: Sequence[tuple[str, str]], found: Sequence[Mapping[str, Any]]
    ) -> None:
        """Keep what a replay of these sessions gave; one that it left out has no figures."""
        by_name = {str(one["session"]): one for one in found}
        rows = [_row(name, policy, stamp + self._mark, by_name.get(name)) for name, stamp in asked]
        with self.base.writing() as base:
            base.executemany(_PUT, rows)

    # Asking

    def sums(self, policy: str) -> Values:
        """All sessions together."""
        return dict(self.base.kept(("savings", policy), lambda: self._sums(policy)))

    def _sums(self, policy: str) -> Values:
        row = self.base.one(
            "SELECT count(naive) AS sessions, sum(naive) AS naive, sum(cost) AS cost,"
            " sum(requests) AS requests, sum(back) AS back, sum(breaks) AS breaks,"
            " sum(lost) AS lost, sum(facts) AS facts, sum(facts_here) AS facts_here,"
            " sum(summaries) AS summaries, max(peak) AS peak, sum(saved < 0) AS dearer,"
            " max(cost / nullif(naive, 0)) AS worst, count(*) - count(naive) AS failed,"
            " (SELECT count(*) FROM session WHERE error = '' AND messages > 0) AS whole"
            " FROM saving WHERE policy = ? LIMIT 1",
            (policy,),
        )
        return {name: row[name] or 0 for name in row.keys()}  # noqa: SIM118 - a row, no dict

    def page(self, query: SavingQuery) -> list[Values]:
        """Fifty sessions with what each cost whole and under the policy, read in the order of an
        index where there is one."""
        assert query.sort in SORTS
        order = _ORDER.get(query.sort, f"saving.{query.sort}")
        way = "DESC" if query.descending else "ASC"
        tables = ("session", "saving") if order.startswith("session.") else ("saving", "session")
        rows = self.base.rows(
            "SELECT session.id, session.title, session.at, session.model, saving.requests,"
            " saving.naive, saving.cost, saving.saved, saving.saved / nullif(saving.naive, 0) AS"
            f" share FROM {' CROSS JOIN '.join(tables)} ON session.id = saving.id WHERE"
            f" saving.policy = ? AND +saving.naive > 0 ORDER BY {order} {way}, {tables[0]}.id"
            " LIMIT ? OFFSET ?",
            (query.policy, PAGE, (query.page - 1) * PAGE),
        )
        return [dict(row) for row in rows]

    def points(self, policy: str) -> list[tuple[float, float]]:
        """Cost of the largest sessions, whole, and the part of it that is left."""
        rows = self.base.rows(
            "SELECT naive, cost / naive FROM saving WHERE policy = ? AND naive > 0"
            " ORDER BY naive DESC, id LIMIT ?",
            (policy, POINTS),
        )
        return [(row[0], row[1]) for row in rows]

    def models(self, policy: str) -> list[tuple[str, float, float]]:
        """Of each model, what its sessions cost whole and under the policy."""

        def asked() -> list[tuple[str, float, float]]:
            rows = self.base.rows(
                "SELECT session.model, sum(saving.naive), sum(saving.cost) FROM saving JOIN session"
                " ON session.id = saving.id WHERE saving.policy = ? AND saving.naive > 0"
                " GROUP BY session.model ORDER BY 2 DESC LIMIT 40",
                (policy,),
            )
            return [(row[0], row[1], row[2]) for row in rows]

        return list(self.base.kept(("models", policy), asked))

    def every(self, policy: str) -> list[Values]:
        """The figures of all sessions, as `replay --json` gives them."""
        rows = self.base.rows(
            "SELECT value FROM saving WHERE policy = ? AND naive > 0 ORDER BY id LIMIT 100000",
            (policy,),
        )
        found: list[Values] = [json.loads(row[0]) for row in rows]
        return [{name: one[name] for name in one if name != "rounds"} for one in found]


def _row(name: str, policy: str, stamp: str, one: Mapping[str, Any] | None) -> list[Any]:
    if one is None:
        return [name, policy, stamp, *(None for _ in _COLUMNS[3:])]
    back = one["recovery"] + one["refind"]
    spent, naive = one["cost"] + back, one["naive_cost"]
    lost = one["near"]["lost"] + one["far"]["lost"]
    numbers = [naive, spent, naive - spent, one["requests"], back, one["breaks"], lost]
    numbers += [one["facts"], one["facts_here"], one["summaries"], one["peak"]]
    return [name, policy, stamp, *numbers, json.dumps(one)]
