"""What `reverie fleet` shows people: the status, jobs in rows, one job, the end of a run.

Codes of jobs stand here in words; `--json` keeps the code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reverie.apps.cli.show import Column, note, say, table
from reverie.fleet.words import in_words
from reverie.text.format import age

if TYPE_CHECKING:
    from reverie.fleet.jobs import JobEnd, TakenJob
    from reverie.fleet.local import RunTotals


def print_status(found: Mapping[str, Any]) -> None:
    """The status for people."""
    rows = [
        [r["tenant"], r["kind"], r["state"], str(r["jobs"]), f"{r['cost']:,.0f}"]
        for r in found["jobs"]
    ]
    if not rows:
        say("No job was planned yet.")
        return
    names = ("tenant", "kind", "state", "jobs", "cost")
    table([Column(name, right=name in ("jobs", "cost")) for name in names], rows)
    for state, words in (("dead", "dead"), ("later", "waiting until later")):
        codes = found[state]["codes"].items()
        why = ", ".join(f"{in_words(code)} ({count:,})" for code, count in codes)
        if why:
            say(f"{words}: {why}", "yellow")
    for name, about in found["tenants"].items():
        if about["paused"]:
            say(f"{name} is paused: `reverie fleet pause {name} --resume`", "yellow")
        if about["tokens"] is not None:
            used = about["spent"]["tokens"]
            say(f"{name}: {used:,.0f} of {about['tokens']:,.0f} price-weighted tokens today")


def print_jobs(found: Sequence[Mapping[str, Any]], now: float) -> None:
    """Jobs in rows."""
    names = ("key", "state", "why", "tries", "age", "root")
    rows = [
        [
            row["key"],
            row["state"],
            in_words(row["code"]),
            str(row["tries"]),
            age(now - (row["started"] or row["created"])),
            row["root"],
        ]
        for row in found
    ]
    wraps, cut = ("key", "why"), ("why", "root")
    table([Column(name, wraps=name in wraps, cut=name in cut) for name in names], rows)


def print_job(found: Mapping[str, Any]) -> None:
    """One job, by what is known of it."""
    for name, value in found.items():
        if value not in ("", None):
            said = in_words(str(value)) if name == "code" else value
            say(f"{name}: {value} ({said})" if said != value else f"{name}: {value}")
    if found["code"] and not found["reason"]:
        note(f"The words of the last try are in fleet/log.jsonl in the home of {found['worker']}")


def print_end(taken: TakenJob, end: JobEnd) -> None:
    """How a job of a run ended."""
    say(f"{end.state}  {taken.job.key}  {taken.job.root}  {in_words(end.code)}")


def print_totals(totals: RunTotals, why: Iterable[str]) -> None:
    """What a run came to, and why it was not more."""
    say(
        f"{totals.done} done, {totals.failed} failed, {totals.skipped} skipped,"
        f" {totals.waiting} waiting; cost {totals.cost:,.0f}"
    )
    for sentence in why:
        say(sentence, "yellow")
