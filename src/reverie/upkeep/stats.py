"""How well it works and what it costs, today and this week.

Cache hit rate, summary rate, breaker trips, memory pollution, what a kept memory cost to learn, how
many recalled ones show again, and background cost by source, worked out from transcripts, ledgers
and the files themselves. The score of the memory is noted once a day beside the sessions,
so that its trend can be shown, with a mark of the files it was worked out from: the same files are
not checked again that day. Nothing else is written, and no model is asked.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

from reverie.clock import SystemClock
from reverie.embedded.extraction.never import never
from reverie.embedded.extraction.words import FoundFact
from reverie.errors import NotFound, StoreError
from reverie.memory.format.entry import TopicFile
from reverie.memory.hygiene.check import HygieneReport
from reverie.session.budget import Budget
from reverie.session.library import Library
from reverie.store.files import Folder
from reverie.store.memories import Memories
from reverie.store.plain import digest
from reverie.store.project import Project
from reverie.store.rules import RuleStore
from reverie.upkeep.check import check_memory
from reverie.upkeep.metrics import Day, Metrics, days, figures

TREND = "hygiene.jsonl"
WEEK = 7 * 86_400
POLLUTES = ("junk", "duplicate", "secret", "instruction_like")
LEARNING = "extract_memories"
FRAGMENT = 40
"""Characters of a body up to which a few words are all there is."""
MAX_READ = 1_000
"""Characters of a memory in which its first paragraph is looked for."""


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
    spent: list[Day]
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
    place: Project, memories: Memories | None, now: float, *, everything: bool
) -> Stats:
    """The figures of this week's sessions, or of all; today's score of the memory is noted."""
    settings, library = place.settings, Library.find(place)
    since = 0.0 if everything else now - WEEK
    found = Metrics()
    if library is not None:
        files = [file for file in library.sessions() if file.mtime >= since]
        found = figures(library, files, settings.compact_breaker_failures)
    trend = [] if memories is None or library is None else _trend(memories, place, library, now)
    return Stats(
        found,
        found.cost(settings),
        _spent(place, now),
        trend,
        "always" if everything else "7 days",
        0 if memories is None else sum(memories.folder.exists(key) for key in found.written),
        {} if memories is None else _rules(memories, place, since),
    )


def _rules(memories: Memories, place: Project, since: float) -> dict[str, int]:
    """What the rules of the project did since a moment."""
    first = datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%d")
    total: dict[str, int] = {}
    for one in RuleStore(memories, place.root).counts().values():
        for day, events in one.days.items():
            for event, count in events.items() if day >= first else ():
                total[event] = total.get(event, 0) + count
    return total


def _spent(place: Project, now: float) -> list[Day]:
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
    library = Library.find(place)
    if library is None:
        return None
    with Folder(library.path, create=False) as folder:
        return next(reversed(list(_known_days(folder))), None)


def _trend(memories: Memories, place: Project, library: Library, now: float) -> list[MemoryDay]:
    """What was noted before, and today."""
    today = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")
    with Folder(library.path) as folder:
        mark, known = _mark(memories), list(_known_days(folder))
        if any((one.day, one.mark) == (today, mark) for one in known):
            return known
        noted = _memory_day(today, check_memory(memories, place), memories, mark)
        kept = [*(one for one in known if one.day != today), noted][-366:]
        rows = [json.dumps([n.day, n.score, n.memories, n.pollution, n.mark]) for n in kept]
        folder.write(TREND, ("\n".join(rows) + "\n").encode())
    return kept


def _mark(memories: Memories) -> str:
    """What tells one state of the folder from another, without reading it."""
    files = memories.folder.files
    rows: list[str] = []
    for key in files.list():
        if key.lower().endswith(".md"):
            with contextlib.suppress(NotFound, StoreError):  # gone, or no plain file: one row less
                seen = files.stat(key)
                rows.append(f"{key} {seen.size} {seen.modified}")
    return digest("\n".join(rows).encode("utf-8", "surrogateescape"))[:16]


def _memory_day(day: str, report: HygieneReport, memories: Memories, mark: str) -> MemoryDay:
    bad = {one.file for one in report.findings if one.kind in POLLUTES}
    bad |= {one.key for one in _topics(memories) if unworthy(one)}
    share = round(len(bad) / report.memories, 4) if report.memories else 0.0
    return MemoryDay(day, report.score, report.memories, share, mark)


def _topics(memories: Memories) -> Iterator[TopicFile]:
    for key in memories.folder.keys():  # noqa: SIM118 - a folder, not a mapping
        with contextlib.suppress(NotFound, StoreError):
            yield memories.folder.read(key)


def unworthy(memory: TopicFile) -> str:
    """Why a memory should never have been saved, in a word; nothing where it may be one.

    What it states is held against the rules for what is never kept: an order or a number of one
    task, a question, a fragment, how far some work is, what the code or git tells.
    """
    body = next(filter(None, (part.strip() for part in memory.body[:MAX_READ].split("\n\n"))), "")
    stated = (memory.description or body).strip().removeprefix("In the user's words: ")
    if stated.endswith(("?", "？")):
        return "question"
    found = FoundFact("request", memory.type or "project", stated)
    why = never(found)
    return "" if why == "fragment" and len(memory.body.strip()) > FRAGMENT else why


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
