"""`reverie stats`: how well it works and what it costs, today and this week.

Cache hit rate, summary rate, breaker trips, memory pollution and background cost by source, worked
out from transcripts and ledgers. The score of the memory is noted once a day beside the sessions,
so that its trend can be shown, with a mark of the files it was worked out from: the same files are
not checked again that day. Nothing else is written, and no model is asked.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from reverie.apps.cli.memory_check import looked
from reverie.apps.cli.memory_open import opened
from reverie.apps.cli.place import CURRENT, Project, ProjectPlace
from reverie.apps.cli.show import Column, JsonOption, document, plural, say, table, waiting, watched
from reverie.clock import SystemClock
from reverie.errors import NotFound
from reverie.memory.hygiene.check import HygieneReport, check
from reverie.session.budget import Budget
from reverie.session.library import Library
from reverie.store.files import Folder
from reverie.store.memories import Memories
from reverie.store.plain import digest
from reverie.upkeep.metrics import Day, Metrics, days, figures

TREND = "hygiene.jsonl"
SHOWN = 14
WEEK = 7 * 86_400
POLLUTES = ("junk", "duplicate", "secret", "instruction_like")
_BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Noted:
    """The memory's state on one day."""

    day: str
    score: int
    memories: int
    pollution: float
    mark: str = ""  # of the files as they were


def stats(
    everything: Annotated[bool, typer.Option("--all", help="All sessions, not this week's.")] = (
        False
    ),
    as_json: JsonOption = False,
    project: Project = CURRENT,
) -> None:
    """Show cache hit rate, summaries, breaker trips, memory hygiene and background cost."""
    place, now = ProjectPlace.of(project), time.time()
    settings = place.loaded().settings
    library = place.library()
    since = 0.0 if everything else now - WEEK
    found = Metrics()
    if library is not None:
        files = [file for file in library.sessions() if file.mtime >= since]
        shown = watched(files, "reading", lambda file: file)
        found = figures(library, shown, settings.compact_breaker_failures)
    with _ledger(place) as ledgers:
        spent = list(days(ledgers, now)) if ledgers else []
    trend = _trend(project, place, library, now)
    if as_json:
        document(_value(found, spent, trend, found.cost(settings), everything))
        return
    _tell(found, found.cost(settings), everything)
    _tell_spent(spent, settings.background_tokens_per_day)
    _tell_trend(trend)


@contextmanager
def _ledger(place: ProjectPlace) -> Generator[Budget | None]:
    if not place.home.is_dir():
        yield None
        return
    budget = Budget(Folder(place.home), place.loaded().settings, SystemClock())
    try:
        yield budget
    finally:
        budget.close()


# --- the memory's trend


def _trend(project: Path, place: ProjectPlace, library: Library | None, now: float) -> list[Noted]:
    """What was noted before, and today."""
    with waiting("checking the memory"), opened(project) as memories:
        if memories is None or library is None:
            return []
        today = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")
        with Folder(library.path) as folder:
            mark, known = _mark(memories), list(_noted(folder))
            if any((one.day, one.mark) == (today, mark) for one in known):
                return known
            noted = _note(today, check(looked(memories, place)), mark)
            kept = [*(one for one in known if one.day != today), noted][-366:]
            rows = [json.dumps([n.day, n.score, n.memories, n.pollution, n.mark]) for n in kept]
            folder.write(TREND, ("\n".join(rows) + "\n").encode())
        return kept


def _mark(memories: Memories) -> str:
    """What tells one state of the folder from another, without reading it."""
    files = memories.folder.files
    found = ((key, files.stat(key)) for key in files.list() if key.lower().endswith(".md"))
    rows = [f"{key} {seen.size} {seen.modified}" for key, seen in found]
    return digest("\n".join(rows).encode("utf-8", "surrogateescape"))[:16]


def _note(day: str, report: HygieneReport, mark: str) -> Noted:
    bad = {one.file for one in report.findings if one.kind in POLLUTES}
    share = round(len(bad) / report.memories, 4) if report.memories else 0.0
    return Noted(day, report.score, report.memories, share, mark)


def _noted(folder: Folder) -> Iterator[Noted]:
    try:
        data = folder.read(TREND, 2**20)
    except NotFound:
        return
    for row in data.splitlines():
        try:
            day, score, memories, share, *mark = cast("list[Any]", json.loads(row))
            yield Noted(str(day), int(score), int(memories), float(share), "".join(mark[:1]))
        except (ValueError, TypeError):
            continue


# --- telling


def _value(
    found: Metrics,
    spent: list[Day],
    trend: list[Noted],
    cost: dict[str, float],
    everything: bool,
) -> dict[str, Any]:
    fidelity = sum(found.fidelities) / len(found.fidelities) if found.fidelities else None
    return {
        "sessions": found.sessions,
        "unreadable": found.unreadable,
        "since": "always" if everything else "7 days",
        "hit_rate": found.hit_rate,
        "compactions": found.compactions,
        "summary_rate": found.summary_rate,
        "fidelity": fidelity,
        "compaction_failures": found.compaction_failures,
        "breaker_trips": found.breaker_trips,
        "notes": found.notes,
        "extractions": found.extractions,
        "memories_written": found.memories_written,
        "recalls": found.recalls,
        "injected": found.injected,
        "cost": {name: round(price, 1) for name, price in cost.items()},
        "requests": {name: one.requests for name, one in sorted(found.sources.items())},
        "unasked": [
            {"day": day.day, "weighted": day.weighted, "calls": day.calls} for day in spent
        ],
        "memory": [
            {"day": n.day, "score": n.score, "memories": n.memories, "pollution": n.pollution}
            for n in trend
        ],
        "failures": found.failures,
    }


def _tell(found: Metrics, cost: dict[str, float], everything: bool) -> None:
    when = "in all" if everything else "in seven days"
    say(f"{plural(found.sessions, 'session')} {when}", "bold")
    share = found.summary_rate
    rows = [
        ["cache hit rate of the main agent", _percent(found.hit_rate)],
        ["compactions", f"{found.compactions:,}"],
        ["of these asked a model", _percent(share)],
        ["breaker trips", f"{found.breaker_trips:,}"],
        ["notes taken", f"{found.notes:,}"],
        ["memories written by extraction", f"{found.memories_written:,}"],
        ["turns with a recalled memory", f"{found.recalls:,}"],
    ]
    table([Column("figure"), Column("value", right=True)], rows)
    if cost:
        names = [Column("source"), Column("requests", right=True), Column("cost", right=True)]
        sources = found.sources
        table(names, [[n, f"{sources[n].requests:,}", f"{cost[n]:,.0f}"] for n in cost])
        say("Cost is in price-weighted tokens: read 0.1, write 1.25 or 2, output 5.", "dim")
        say("What the embedded model answers is counted alike, and costs nothing.", "dim")


def _tell_spent(spent: list[Day], limit: int) -> None:
    if not spent:
        say("Nothing ran unasked this week.")
        return
    rows = [
        [day.day, source, f"{day.calls[source]:,}", f"{day.weighted[source]:,.0f}"]
        for day in spent
        for source in sorted(day.weighted)
    ]
    names = ("day", "source", "calls", "cost")
    table([Column(name, right=name in ("calls", "cost")) for name in names], rows)
    today = sum(spent[0].weighted.values())
    say(f"{today:,.0f} of {limit:,} on {spent[0].day}", "dim")


def _tell_trend(trend: list[Noted]) -> None:
    if not trend:
        return
    last = trend[-1]
    line = "".join(_BARS[min(7, n.score * 8 // 101)] for n in trend[-SHOWN:])
    say(
        f"memory score {last.score} of 100, {last.pollution:.1%} polluted, "
        f"{plural(last.memories, 'memory', 'memories')}  {line}"
    )


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"
