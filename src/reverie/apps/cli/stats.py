"""`reverie stats`: how well it works and what it costs, today and this week."""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

from reverie.apps.cli.memory_open import find_memory
from reverie.apps.cli.options import json_option, project_option
from reverie.apps.cli.show import Column, document, say, table, waiting
from reverie.providers.prices import money
from reverie.store.project import Project
from reverie.text.counts import plural
from reverie.upkeep.metrics import Day, Metrics
from reverie.upkeep.stats import MemoryDay, Stats, project_stats

SHOWN = 14
MIN_DAYS = 2  # of which a line of bars is drawn
_BARS = "▁▂▃▄▅▆▇█"


@click.command()
@click.option("--all", "everything", is_flag=True, help="All sessions, not only this week's.")
@json_option
@project_option
def stats(everything: bool, as_json: bool, project: Project) -> None:
    """Show cache hit rate, compactions, memory hygiene and background cost."""
    with waiting("working out the figures"), find_memory(project) as memories:
        found = project_stats(project, memories, time.time(), everything=everything)
    if as_json:
        document(found.value())
        return
    _tell(found, everything)
    _tell_spent(found.spent, project.settings.background_tokens_per_day)
    _tell_trend(found.trend)


def _tell(stats: Stats, everything: bool) -> None:
    found, cost = stats.found, stats.cost
    when = "in all" if everything else "in the last seven days"
    say(f"{plural(found.sessions, 'session')} {when}", "bold")
    share = found.summary_rate
    rows = [
        ["cache hit rate of the main agent", _percent(found.hit_rate)],
        ["compactions", f"{found.compactions:,}"],
        ["compactions that asked a model", _percent(share)],
        ["times automatic compaction gave up", f"{found.breaker_trips:,}"],
        ["notes taken", f"{found.notes:,}"],
        ["memories written by extraction", f"{found.memories_written:,}"],
        ["of those still there", f"{stats.kept:,}"],
        ["cost of learning, for each still there", _tokens(stats.cost_of_a_memory)],
        ["turns with a recalled memory", f"{found.recalls:,}"],
        ["recalled memories that show in an answer", _percent(found.cited_share)],
    ]
    if stats.rules:
        did = ", ".join(f"{event} {count:,}" for event, count in stats.rules.items())
        rows.append(["what rules did", did])
    table([Column("figure"), Column("value", right=True)], rows)
    if cost:
        heads = ("source", "requests", "weighted tokens", "cost")
        names = [Column(name, right=name != "source") for name in heads]
        sources = found.sources
        rows = [
            [n, f"{sources[n].requests:,}", f"{cost[n]:,.0f}", _money(found.dollars.get(n))]
            for n in cost
        ]
        table(names, rows)
        say(f"{_money(sum(found.dollars.values()))} in all{_unpriced(found)}.", "bold")
        say("Weighted tokens: read 0.1, write 1.25 or 2, output 5. Embedded costs nothing.", "dim")
    _tell_days(found)


def _money(amount: float | None) -> str:
    return "–" if amount is None else "free" if amount == 0 else money(amount)


def _unpriced(found: Metrics) -> str:
    names = ", ".join(sorted(found.unpriced)[:3])
    return f", without {names}: its price is not known" if names else ""


def _tell_days(found: Metrics) -> None:
    """The last days of the main agent, a bar each."""
    days = [one for _, one in sorted(found.by_day.items())][-SHOWN:]
    if len(days) < MIN_DAYS:
        return
    requests = [float(one.requests) for one in days]
    rates = [one.usage.hit_rate for one in days]
    say(f"requests a day   {sparkline(requests)}  {requests[-1]:,.0f} on the last")
    say(f"cache hit rate   {sparkline(rates, 1.0)}  {rates[-1]:.0%} on the last")


def sparkline(values: Sequence[float], most: float = 0.0) -> str:
    """A bar for each value, the highest full; or each as its share of `most`."""
    top = most or max(values, default=0.0) or 1.0
    return "".join(_BARS[min(7, int(max(0.0, value) / top * 7.999))] for value in values)


def _tell_spent(spent: list[Day], limit: int) -> None:
    if not spent:
        say("No background work this week.")
        return
    rows = [
        [day.day, source, f"{day.calls[source]:,}", f"{day.weighted[source]:,.0f}"]
        for day in spent
        for source in sorted(day.weighted)
    ]
    names = ("day", "source", "calls", "cost")
    table([Column(name, right=name in ("calls", "cost")) for name in names], rows)
    today = sum(spent[0].weighted.values())
    say(f"{today:,.0f} of {limit:,} tokens of the daily limit used on {spent[0].day}", "dim")


def _tell_trend(trend: list[MemoryDay]) -> None:
    if not trend:
        return
    last = trend[-1]
    line = sparkline([float(n.score) for n in trend[-SHOWN:]], 100.0)
    say(
        f"memory score {last.score} of 100, {last.pollution:.1%} polluted, "
        f"{plural(last.memories, 'memory', 'memories')}  {line}"
    )


def _tokens(count: float | None) -> str:
    return "–" if count is None else f"{count:,.0f}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"
