"""`stats`, `cache`, `doctor`.

`reverie stats`: how well it works and what it costs, today and this week.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from reverie.apps.cli.app import json_option, project_option
from reverie.apps.cli.output import Column, document, note, say, table, waiting
from reverie.apps.cli.recall import find_memory
from reverie.clients.background import background_facts, describe_background
from reverie.providers.costs import dollars, money
from reverie.providers.selection import EMBEDDED
from reverie.reports.cache import CacheReport, cache_report, counts
from reverie.reports.doctor import Check, DoctorRun, audit
from reverie.reports.stats import MemoryDay, Stats, project_stats
from reverie.session.budget import DailySpend, Metrics, UsageTotals
from reverie.session.library import SessionLibrary, find_session
from reverie.store.project import Project
from reverie.text.format import age, number, plural

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
    background = background_facts(project)
    if as_json:
        document({**found.value(), "background": background})
        return
    _tell(found, everything)
    for line in describe_background(background):
        say(line)
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
        ["cost of learning, for each still there", number(stats.cost_of_a_memory)],
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
        say(f"{_money(sum(found.dollars.values()))} in all{_unpriced_text(found)}.", "bold")
        say("Weighted tokens: read 0.1, write 1.25 or 2, output 5. Embedded costs nothing.", "dim")
    _tell_days(found)


def _money(amount: float | None) -> str:
    return "–" if amount is None else "free" if amount == 0 else money(amount)


def _unpriced_text(found: Metrics) -> str:
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


def _tell_spent(spent: list[DailySpend], limit: int) -> None:
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


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"


# --- `reverie cache`: a session's requests as the prompt cache saw them.


LAST = 20


@click.command()
@click.argument(
    "session", default="", metavar="[SESSION]", help="Its id. Default: the newest session."
)
@click.option(
    "--last",
    type=click.IntRange(min=0),
    metavar="N",
    default=LAST,
    show_default=True,
    help="Number of requests to list.",
)
@json_option
@project_option
def cache(session: str, last: int, as_json: bool, project: Project) -> None:
    """Show a session's requests, cache hit rate and cost, and what caused each cache break."""
    settings = project.settings
    library = SessionLibrary.find(project)
    if session:
        session = find_session(library, session)
    elif library is not None and library.sessions():
        session = library.newest()
    if library is None or not session:
        if as_json:
            document({**CacheReport("", settings).value(0), "session": None})
        else:
            say(f"No session yet in {project.root}; nothing was sent.")
        return
    report = cache_report(library, session, settings)
    head = library.read(session).view.head
    model = head.model if head else ""
    usd = _dollars(report, model)
    if as_json:
        document({**report.value(last), "model": model, "total_cost_usd": usd})
    else:
        _print_cache(report, last, model, usd)


def _dollars(report: CacheReport, model: str) -> float | None:
    """What the billed requests cost at the price of the session's model; None where it is not
    known."""
    used = UsageTotals()
    for one in report.asked:
        if one.billed:
            used.count(one.usage)
    amount = dollars(model, used.usage, free=model == EMBEDDED)
    return None if amount is None else round(amount, 6)


def _print_cache(report: CacheReport, last: int, model: str, usd: float | None) -> None:
    say(report.session, "bold")
    if not report.asked:
        say("Nothing was answered yet, so the cache has nothing to tell.")
        return
    whole = report.whole()
    requests = plural(whole["requests"], "request")
    if model == EMBEDDED:
        say(f"{requests} · answered by the embedded model: nothing is billed, there is no cache")
    else:
        _tell_cache(report, last, requests, "" if usd is None else f" · {money(usd)} for {model}")
    for fault in report.faults:
        note(f"{report.session}: {fault}")


def _tell_cache(report: CacheReport, last: int, requests: str, price: str) -> None:
    whole = report.whole()
    told = f"{whole['hit_rate']:.1%} read from the cache · cost {whole['cost']:,.0f} input tokens"
    say(f"{requests} · {told}{price} · {plural(len(report.breaks), 'break')}")
    names = (
        "source",
        "requests",
        "hits",
        "read",
        "written",
        "uncached",
        "output",
        "cost",
        "breaks",
    )
    columns = [Column(name, right=name != "source") for name in names]
    table(columns, [_source_row(row) for row in report.by_source()])
    now = time.time()
    for agent, found in report.breaks:
        by = f"{found.source} {agent[:8]}".strip()
        say(f"{age(now - found.at)} ago, {by}: {found.explanation}", "yellow")
    if not report.breaks and not report.blind:
        say("No break: every answer read what the one before had left.")
    if report.blind:
        blind = plural(report.blind, "answer")
        say(f"Of {blind} the request is not recorded (imported?): breaks there cannot be told.")
    if last:
        _tell_last(report, last, now)


def _source_row(row: dict[str, Any]) -> list[str]:
    counts = [f"{row[name]:,}" for name in ("read", "written", "uncached", "output")]
    shown = [row["source"], f"{row['requests']:,}", f"{row['hit_rate']:.1%}", *counts]
    return [*shown, f"{row['cost']:,.0f}", f"{row['breaks']:,}"]


def _tell_last(report: CacheReport, last: int, now: float) -> None:
    shown = report.asked[-last:]
    broken = {found.entry for _, found in report.breaks}
    say(f"The last {plural(len(shown), 'request')}:")
    names = ("ago", "source", "hits", "read", "written", "uncached", "output", "cost", "break")
    rows: list[list[str]] = []
    for one in shown:
        row = _source_row({"source": one.source, **counts([one], 0, report.settings)})
        mark = "yes" if one.entry in broken else ""
        rows.append([age(now - one.at), row[0], *row[2:-1], mark])
    table([Column(name, right=name not in ("source", "break")) for name in names], rows)


# --- `reverie doctor`: what this installation has, what is wrong with it, what it lacks.
#
# Exit code 1 means that something is wrong; something that is merely not there is a note.


_HINTS = {
    "rights": "`reverie doctor --fix`",
    "temporary": "`reverie doctor --fix`",
    "background": "log in and update it, then `reverie doctor --fix`",
    "settings": "`reverie config path` lists the files; `reverie trust` looks at a local one",
}


@click.command()
@click.option("--fix", is_flag=True, help="Fix file permissions and remove leftover files.")
@click.option("--trial", is_flag=True, help="Ask the model one word; may cost a little.")
@click.option(
    "--audit", "audits", is_flag=True, help="List 30 days of background work and changes."
)
@json_option
@project_option
def doctor(fix: bool, trial: bool, audits: bool, as_json: bool, project: Project) -> None:
    """Check this installation and fix what can be fixed."""
    if audits:
        done = audit(project, time.time())
        if as_json:
            document({"audit": [asdict(one) for one in done]})
        else:
            columns = (Column("day"), Column("who", style="bold"), Column("what", wraps=True))
            table(columns, [[one.day, one.who, one.what] for one in done])
        return
    with waiting("looking at everything"):
        checks = list(DoctorRun(project, fix, trial).checks())
    wrong = sum(check.state == "problem" for check in checks)
    if as_json:
        where = {"home": str(project.home), "root": str(project.root)}
        document({"ok": not wrong, **where, "checks": [asdict(check) for check in checks]})
    else:
        columns = (Column(""), Column("check", style="bold"), Column("what", wraps=True))
        table(columns, [_row(check) for check in checks])
        say(f"{plural(wrong, 'problem')} found." if wrong else "No problems found.")
        if not trial:
            say("`--trial` asks the model one word: key, network and model in one go.", "dim")
    if wrong:
        raise click.exceptions.Exit(1)


def _row(check: Check) -> list[str]:
    do = _HINTS.get(check.name, check.do) if check.do and check.state != "ok" else ""
    return [check.state, check.name, f"{check.what} → {do}" if do else check.what]
