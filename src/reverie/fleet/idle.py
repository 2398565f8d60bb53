"""Why a plan has nothing new, or a run nothing to work: in sentences that say what to do.

What waits is told first, then why no more was planned. The ledger and the plan are read, and
nothing is changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reverie.fleet.jobs import OPEN
from reverie.fleet.ledger import FleetLedger
from reverie.fleet.planning import Plan, PlanRequest
from reverie.fleet.words import in_words
from reverie.text.format import plural, utc_minute

COUNTED = 1_000
_MOST = 3
_OF_SESSIONS = ("learn", "replay")
_DO = {
    "budget": "`reverie fleet budget {tenant}` shows it, `--tokens N` raises it",
    "held": "`reverie fleet show {key}` names what holds it",
    "unknown-kind": "run it with a version that knows it, or `reverie fleet cancel {key}`",
}
_RETRY = "`reverie fleet retry {key}` begins it now"


def why_idle(ledger: FleetLedger, home: Path, asked: PlanRequest, found: Plan) -> list[str]:
    """Why there is nothing to do now."""
    return [*why_waiting(ledger), *_why_none(ledger, home, asked, found)]


def why_waiting(ledger: FleetLedger) -> list[str]:
    """Why jobs that are open do not run here."""
    now = ledger.now()
    queued = ledger.jobs(state="queued", most=COUNTED)
    paused = {name for name, about in ledger.tenants().items() if about["paused"]}
    told: list[str] = []
    for tenant, count in Counter(row["tenant"] for row in queued).items():
        if tenant in paused:
            do = f"`reverie fleet pause {tenant} --resume` ends that"
            told.append(f"{plural(count, 'job')} of {tenant}, which is paused; {do}")
    left = [row for row in queued if row["tenant"] not in paused]
    later = [row for row in left if row["after"] > now]
    for code, count in Counter(str(row["code"]) for row in later).most_common():
        first = min((row for row in later if row["code"] == code), key=_after)
        told.append(f"{plural(count, 'job')}: {in_words(code)}; {_until(first)}")
    running = ledger.jobs(state="running", most=COUNTED)
    if running:
        do = "see `reverie fleet status`"
        told.append(f"{plural(len(running), 'job')} in work by another process; {do}")
    if len(left) > len(later):
        many = ledger.database.kind == "postgresql"
        do = f"start `reverie fleet {'work' if many else 'run'}`"
        ready = plural(len(left) - len(later), "job")
        told.append(f"{ready} in the queue; {'what is in work goes first' if running else do}")
    return told


def _after(row: Mapping[str, Any]) -> float:
    return float(row["after"])


def _until(row: Mapping[str, Any]) -> str:
    at = utc_minute(_after(row))
    do = _DO.get(str(row["code"]), _RETRY).format(tenant=row["tenant"], key=row["key"])
    return f"not before {at} (UTC); {do}"


def _why_none(ledger: FleetLedger, home: Path, asked: PlanRequest, found: Plan) -> Iterator[str]:
    if found.jobs:
        yield from _why_over(list(ledger.states(found.jobs).values()), asked)
        return
    if not found.looked:
        yield (
            f"No project with a session is known in {home}; have one (`reverie chat` in it), or"
            " name a project with `--root PATH`"
        )
        return
    looked = plural(found.looked, "project")
    if found.passed:
        yield from _why_passed(found, asked)
    elif set(asked.kinds) <= set(_OF_SESSIONS):
        days = f"no session was written to in the last {asked.days:g} days"
        yield f"{looked}: {days}; `--days N` looks further back"
    else:
        yield f"{looked}: no memory yet; a session in one makes it (`reverie chat`)"


def _why_over(states: list[str], asked: PlanRequest) -> Iterator[str]:
    """The plan's jobs are known and over; those that are open were told already."""
    over = Counter(state for state in states if state not in OPEN)
    count = sum(over.values())
    night = f"{asked.night}, UTC"
    if set(over) == {"done"} and asked.kinds == ("dream",):
        which = plural(count, "memory", "memories")
        do = "`reverie dream` in a project dreams once more"
        yield f"Dreamt already for this night ({night}): {which}; {do}"
    elif over:
        told = ", ".join(f"{number} {state}" for state, number in over.most_common())
        again = "" if set(over) == {"done"} else "; `reverie fleet retry KEY` queues one again"
        which = f"{plural(count, 'job')} ({told})"
        yield f"Worked already, once for a night ({night}) or a transcript: {which}{again}"


def _why_passed(found: Plan, asked: PlanRequest) -> Iterator[str]:
    reasons = Counter(why for _, why in found.passed)
    for why, count in reasons.most_common(_MOST):
        yield f"{plural(count, 'memory', 'memories')} passed over: {why}"
    rest = sum(reasons.values()) - sum(count for _, count in reasons.most_common(_MOST))
    if rest:
        yield f"{rest:,} more passed over; `reverie fleet plan --dry-run` names each"
    if asked.due:
        yield "`--all` dreams also where it is not due"
