"""Totals by day and week, savings.

How well it works and what it costs, today and this week.

Cache hit rate, summary rate, breaker trips, memory pollution, what a kept memory cost to learn, how
many recalled ones show again, and background cost by source, worked out from transcripts, ledgers
and the files themselves. The score of the memory is noted once a day beside the sessions,
so that its trend can be shown, with a mark of the files it was worked out from: the same files are
not checked again that day. Nothing else is written, and no model is asked.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

from reverie.consolidation.lint import LintReport
from reverie.errors import NotFound, StoreError, WriteFailed
from reverie.memory.check import check_memory, unworthy
from reverie.observer import SystemClock
from reverie.reports.session_index import DerivedDatabase
from reverie.reports.timeline import Values
from reverie.session.budget import Budget, DailySpend, Metrics, days, figures
from reverie.session.library import SessionLibrary
from reverie.settings.catalog import SETTINGS, Settings
from reverie.store.files import Folder
from reverie.store.fs import digest
from reverie.store.memory_store import MemoryStore
from reverie.store.project import Project
from reverie.store.rules import RuleStore
from reverie.text.format import utc_day
from reverie.topics.entry import TopicFile

TREND = "hygiene.jsonl"
WEEK = 7 * 86_400
POLLUTES = ("junk", "duplicate", "secret", "instruction_like")
LEARNING = "extract_memories"


@dataclass(frozen=True, slots=True)
class MemoryDay:
    """The memory's state on one day."""

    day: str
    score: int
    memories: int
    pollution: float
    mark: str = ""  # of the files as they were


@dataclass(frozen=True, slots=True)
class Stats:
    """The figures of a project: of some sessions, of the last days, and of its memory."""

    found: Metrics
    cost: dict[str, float]
    spent: list[DailySpend]
    trend: list[MemoryDay]
    since: str
    kept: int = 0  # memories that extraction wrote and that are still there
    rules: Mapping[str, int] = field(default_factory=dict[str, int])  # what rules did, by event

    @property
    def cost_of_a_memory(self) -> float | None:
        """What learning cost for each memory that was kept, in price-weighted tokens."""
        return self.cost.get(LEARNING, 0.0) / self.kept if self.kept else None

    def value(self) -> dict[str, Any]:
        """For JSON."""
        found = self.found
        fidelity = sum(found.fidelities) / len(found.fidelities) if found.fidelities else None
        return {
            "sessions": found.sessions,
            "unreadable": found.unreadable,
            "since": self.since,
            "hit_rate": found.hit_rate,
            "compactions": found.compactions,
            "summary_rate": found.summary_rate,
            "fidelity": fidelity,
            "compaction_failures": found.compaction_failures,
            "breaker_trips": found.breaker_trips,
            "notes": found.notes,
            "extractions": found.extractions,
            "memories_written": found.memories_written,
            "memories_kept": self.kept,
            "cost_of_a_memory": self.cost_of_a_memory,
            "recalls": found.recalls,
            "injected": found.injected,
            "cited": found.cited,
            "cited_share": found.cited_share,
            "rules": dict(self.rules),
            "cost": {name: round(price, 1) for name, price in self.cost.items()},
            "dollars": {name: round(price, 4) for name, price in sorted(found.dollars.items())},
            "unpriced": sorted(found.unpriced),
            "days": {
                day: {"requests": one.requests, "hit_rate": one.usage.hit_rate}
                for day, one in sorted(found.by_day.items())
            },
            "requests": {name: one.requests for name, one in sorted(found.sources.items())},
            "unasked": [
                {"day": day.day, "weighted": day.weighted, "calls": day.calls} for day in self.spent
            ],
            "memory": [
                {"day": n.day, "score": n.score, "memories": n.memories, "pollution": n.pollution}
                for n in self.trend
            ],
            "failures": found.failures,
        }


def project_stats(
    place: Project, memories: MemoryStore | None, now: float, *, everything: bool
) -> Stats:
    """The figures of this week's sessions, or of all; today's score of the memory is noted."""
    settings, library = place.settings, SessionLibrary.find(place)
    since = 0.0 if everything else now - WEEK
    found = Metrics()
    if library is not None:
        files = [file for file in library.sessions() if file.mtime >= since]
        found = figures(library, files, settings.compact_breaker_failures)
    trend = [] if memories is None or library is None else _trend(memories, place, library, now)
    return Stats(
        found,
        found.cost(settings),
        _daily_spend(place, now),
        trend,
        "always" if everything else "7 days",
        0 if memories is None else sum(memories.folder.exists(key) for key in found.written),
        {} if memories is None else _rules(memories, place, since),
    )


def _rules(memories: MemoryStore, place: Project, since: float) -> dict[str, int]:
    """What the rules of the project did since a moment."""
    first = utc_day(since)
    total: dict[str, int] = {}
    for one in RuleStore(memories, place.root).counts().values():
        for day, events in one.days.items():
            for event, count in events.items() if day >= first else ():
                total[event] = total.get(event, 0) + count
    return total


def _daily_spend(place: Project, now: float) -> list[DailySpend]:
    if not place.home.is_dir():
        return []
    budget = Budget(Folder(place.home), place.settings, SystemClock())
    try:
        return list(days(budget, now))
    finally:
        budget.close()


# --- the memory's trend


def last_checked(place: Project) -> MemoryDay | None:
    """The memory's state as it was last noted; nothing is checked for it."""
    library = SessionLibrary.find(place)
    if library is None:
        return None
    with Folder(library.path, create=False) as folder:
        return next(reversed(list(_known_days(folder))), None)


def _trend(
    memories: MemoryStore, place: Project, library: SessionLibrary, now: float
) -> list[MemoryDay]:
    """What was noted before, and today."""
    today = utc_day(now)
    with Folder(library.path) as folder:
        mark, known = _mark(memories), list(_known_days(folder))
        if any((one.day, one.mark) == (today, mark) for one in known):
            return known
        noted = _memory_day(today, check_memory(memories, place), memories, mark)
        kept = [*(one for one in known if one.day != today), noted][-366:]
        rows = [json.dumps([n.day, n.score, n.memories, n.pollution, n.mark]) for n in kept]
        with contextlib.suppress(WriteFailed):  # a full disk: it is worked out again
            folder.write(TREND, ("\n".join(rows) + "\n").encode())
    return kept


def _mark(memories: MemoryStore) -> str:
    """What tells one state of the folder from another, without reading it."""
    files = memories.folder.files
    rows: list[str] = []
    for key in files.list():
        if key.lower().endswith(".md"):
            with contextlib.suppress(NotFound, StoreError):  # gone, or no plain file: one row less
                seen = files.stat(key)
                rows.append(f"{key} {seen.size} {seen.modified}")
    return digest("\n".join(rows).encode("utf-8", "surrogateescape"))[:16]


def _memory_day(day: str, report: LintReport, memories: MemoryStore, mark: str) -> MemoryDay:
    bad = {one.file for one in report.findings if one.kind in POLLUTES}
    bad |= {one.key for one in _topics(memories) if unworthy(one)}
    share = round(len(bad) / report.memories, 4) if report.memories else 0.0
    return MemoryDay(day, report.score, report.memories, share, mark)


def _topics(memories: MemoryStore) -> Iterator[TopicFile]:
    for key in memories.folder.keys():  # noqa: SIM118 - a folder, not a mapping
        with contextlib.suppress(NotFound, StoreError):
            yield memories.folder.read(key)


def _known_days(folder: Folder) -> Iterator[MemoryDay]:
    try:
        data = folder.read(TREND, 2**20)
    except NotFound:
        return
    for row in data.splitlines():
        try:
            day, score, memories, share, *mark = cast("list[Any]", json.loads(row))
            yield MemoryDay(str(day), int(score), int(memories), float(share), "".join(mark[:1]))
        except (ValueError, TypeError):
            continue


# --- What a policy saved on one's own sessions: the figures of `replay`, kept by session and
# policy.
#
# A figure holds as long as its transcript has the same stamp and the settings are the same. One
# that could not be worked out is kept as such, so that nobody tries it again and again.


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

    def __init__(self, base: DerivedDatabase, settings: Settings) -> None:
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

        def query_models() -> list[tuple[str, float, float]]:
            rows = self.base.rows(
                "SELECT session.model, sum(saving.naive), sum(saving.cost) FROM saving JOIN session"
                " ON session.id = saving.id WHERE saving.policy = ? AND saving.naive > 0"
                " GROUP BY session.model ORDER BY 2 DESC LIMIT 40",
                (policy,),
            )
            return [(row[0], row[1], row[2]) for row in rows]

        return list(self.base.kept(("models", policy), query_models))

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
    back, spent, naive = one["recovery"] + one["refind"], one["billed"], one["naive_cost"]
    lost = one["near"]["lost"] + one["far"]["lost"]
    numbers = [naive, spent, naive - spent, one["requests"], back, one["breaks"], lost]
    numbers += [one["facts"], one["facts_here"], one["summaries"], one["peak"]]
    return [name, policy, stamp, *numbers, json.dumps(one)]
