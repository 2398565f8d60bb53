"""`reverie cache`: a session's requests as the prompt cache saw them."""

from __future__ import annotations

import time
from typing import Any

import click

from reverie.apps.cli.options import json_option, project_option
from reverie.apps.cli.show import Column, document, note, say, table
from reverie.providers.choose import EMBEDDED
from reverie.providers.prices import dollars, money
from reverie.session.budget import Tally
from reverie.session.library import Library, find_session
from reverie.store.project import Project
from reverie.text.counts import age, plural
from reverie.upkeep.cache import CacheReport, cache_report, counts

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
    library = Library.find(project)
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
        _tell(report, last, model, usd)


def _dollars(report: CacheReport, model: str) -> float | None:
    """What the billed requests cost at the price of the session's model; None where it is not
    known."""
    used = Tally()
    for one in report.asked:
        if one.billed:
            used.count(one.usage)
    amount = dollars(model, used.usage, free=model == EMBEDDED)
    return None if amount is None else round(amount, 6)


def _tell(report: CacheReport, last: int, model: str, usd: float | None) -> None:
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
