"""Status, diagnostics, and messages for codes.

A fleet at a glance: jobs by tenant, kind and state, budgets, limits; who shows signs of life,
what is wrong and why. For people, for JSON and for Prometheus.

The database has a code for how a job's last try ended. The words are in a log of the host that
worked it; where that is this host they are joined here, and nowhere else. Labels of Prometheus are
tenants, kinds and states: no path, key or session is ever part of one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias, cast

from reverie.fleet.ledger import FleetLedger
from reverie.fleet.plan import OPEN, FleetPlan, PlanRequest, lives
from reverie.fleet.rates import Rates, spent_by_tenant
from reverie.fleet.worker import LOG
from reverie.text.format import plural, utc_day, utc_minute

PREFIX = "reverie_fleet"
JobRow: TypeAlias = dict[str, Any]
SHOWN = 10
COUNTED = 1_000
DAYS = 7
_DAY = 86_400.0
_TAIL = 500_000
_MAX_REASON = 400


def fleet_status(ledger: FleetLedger) -> dict[str, Any]:
    """Jobs, budgets and limits in numbers."""
    day = ledger.today()
    tenants, used = ledger.tenants(), spent_by_tenant(ledger, day)
    return {
        "database": ledger.database.kind,
        "day": day,
        "jobs": ledger.counts(),
        "running": ledger.jobs(state="running"),
        "workers": ledger.running_workers(),
        "tenants": {
            name: {**about, "spent": used.get(name, {"tokens": 0.0, "calls": 0})}
            for name, about in tenants.items()
        },
        "limits": {name: asdict(one) for name, one in Rates(ledger).limits().items()},
    }


def seen_status(ledger: FleetLedger, home: Path) -> dict[str, Any]:
    """The status, and with it the last night, who works, what is dead and what has to wait."""
    found = fleet_status(ledger)
    now = ledger.now()
    dead = ledger.jobs(state="dead", most=COUNTED)
    queued = ledger.jobs(state="queued", most=COUNTED)  # those that began once come first
    later = [row for row in queued if row["code"] and row["after"] > now]
    short = {row["tenant"] for row in later if row["code"] == "budget"}
    past = _past(ledger, now)
    return {
        **found,
        "recent": _recent(ledger, now),
        "signs": _signs(ledger, home, found["workers"]),
        "dead": _by_code(dead, home),
        "later": _by_code(later, home),
        "tenants": {
            name: {
                **about,
                "full": name in short or _is_full(about),
                "past": [day.get(name, 0.0) for day in past],
            }
            for name, about in found["tenants"].items()
        },
    }


_RECENT = (
    "SELECT tenant, kind, state, COUNT(*), SUM(cost) FROM fleet_jobs WHERE state IN ('queued',"
    " 'running') OR started >= ? OR created >= ? GROUP BY tenant, kind, state"
    " ORDER BY tenant, kind, state"
)


def _recent(ledger: FleetLedger, now: float) -> list[dict[str, Any]]:
    """The jobs that are open, or were begun or planned within a day; older ones stay for 30."""
    since = now - _DAY
    rows = ledger.database.run(lambda within: within.rows(_RECENT, (since, since)))
    names = ("tenant", "kind", "state", "jobs", "cost")
    return [dict(zip(names, row, strict=True)) for row in rows]


def with_reasons(rows: Sequence[JobRow], home: Path) -> list[JobRow]:
    """Jobs with the words of their last try, where this host's log has them."""
    wanted = {(row["key"], row["code"]) for row in rows if row["code"]}
    words = dict(_read_log(home / LOG, wanted)) if wanted else {}
    return [{**row, "reason": words.get((row["key"], row["code"]), "")} for row in rows]


def _by_code(rows: Sequence[JobRow], home: Path) -> dict[str, Any]:
    codes = Counter(str(row["code"]) for row in rows)
    return {"codes": dict(codes.most_common()), "jobs": with_reasons(rows[:SHOWN], home)}


def _is_full(about: Mapping[str, Any]) -> bool:
    """Whether a budget is used up: nothing more of the tenant is paid for today."""
    return any(
        about[part] is not None and about["spent"][part] >= about[part]
        for part in ("tokens", "calls")
    )


def _past(ledger: FleetLedger, now: float) -> list[dict[str, float]]:
    """What each tenant spent on the last days, today last."""
    days = [utc_day(now - n * _DAY) for n in reversed(range(DAYS))]
    return [
        {name: one["tokens"] for name, one in spent_by_tenant(ledger, day).items()} for day in days
    ]


# Signs of life


def _signs(ledger: FleetLedger, home: Path, working: Iterable[str]) -> list[dict[str, Any]]:
    """Every worker with its jobs and the seconds since it was last heard of; None = it is gone."""
    if ledger.database.kind == "postgresql":
        return _engine_workers(ledger, working)
    jobs = Counter(str(row["worker"]) for row in ledger.jobs(state="running", most=COUNTED))
    return [
        {"worker": one, "jobs": jobs[one], "quiet": 0.0 if lives(home, one) else None}
        for one in working
    ]


_HEARD = (
    "SELECT COALESCE(MAX(j.worker), ''), COUNT(j.key),"
    " extract(epoch FROM clock_timestamp() - MAX(w.last_heartbeat))::double precision"
    " FROM procrastinate_workers w"
    " LEFT JOIN procrastinate_jobs p ON p.worker_id = w.id AND p.status = 'doing'"
    " LEFT JOIN fleet_jobs j ON j.engine = p.id AND j.state = 'running'"
    " GROUP BY w.id ORDER BY 2 DESC, 1 LIMIT ?"
)


def _engine_workers(ledger: FleetLedger, working: Iterable[str]) -> list[dict[str, Any]]:
    """The engine hears of its workers; one that has no job has no name there."""
    rows = ledger.database.run(lambda within: within.rows(_HEARD, (COUNTED,)))
    found = [
        {"worker": str(name), "jobs": int(jobs or 0), "quiet": max(0.0, float(quiet or 0))}
        for name, jobs, quiet in rows
    ]
    known = {one["worker"] for one in found}
    gone = [{"worker": one, "jobs": 1, "quiet": None} for one in working if one not in known]
    return [*gone, *found]


# The words of a try


def _read_log(log: Path, wanted: set[tuple[str, str]]) -> Iterator[tuple[tuple[str, str], str]]:
    """The words of these tries in the log's last part, the newest last."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _TAIL))
            lines = file.read(_TAIL).splitlines()
    except OSError:
        return
    for line in lines:
        try:
            row: Any = json.loads(line)
        except ValueError:  # cut off
            continue
        if isinstance(row, dict):
            told = cast("dict[str, Any]", row)
            tried = (str(told.get("job", "")), str(told.get("code", "")))
            if tried in wanted:
                yield tried, str(told.get("reason", ""))[:_MAX_REASON]


# Prometheus


def metrics(ledger: FleetLedger) -> str:
    """The numbers for Prometheus, in its text form."""
    found = fleet_status(ledger)
    return "\n".join(_lines(found)) + "\n"


def _lines(found: dict[str, Any]) -> Iterator[str]:
    yield from _head("jobs", "gauge", "Jobs in the ledger.")
    for row in found["jobs"]:
        labels = _labels(tenant=row["tenant"], kind=row["kind"], state=row["state"])
        yield f"{PREFIX}_jobs{labels} {row['jobs']}"
    yield from _head("cost_tokens", "gauge", "Price-weighted tokens of the jobs in the ledger.")
    for row in found["jobs"]:
        labels = _labels(tenant=row["tenant"], kind=row["kind"], state=row["state"])
        yield f"{PREFIX}_cost_tokens{labels} {row['cost']:.2f}"
    yield from _head("spent_tokens", "gauge", "Price-weighted tokens reserved or spent today.")
    for name, about in found["tenants"].items():
        yield f"{PREFIX}_spent_tokens{_labels(tenant=name)} {about['spent']['tokens']:.2f}"
    yield from _head("budget_tokens", "gauge", "Price-weighted tokens allowed today.")
    for name, about in found["tenants"].items():
        if about["tokens"] is not None:
            yield f"{PREFIX}_budget_tokens{_labels(tenant=name)} {about['tokens']:.2f}"
    yield from _head("paused", "gauge", "Whether a tenant's jobs begin.")
    for name, about in found["tenants"].items():
        yield f"{PREFIX}_paused{_labels(tenant=name)} {int(about['paused'])}"
    yield from _head("workers", "gauge", "Processes that have a job.")
    yield f"{PREFIX}_workers {len(found['workers'])}"


def _head(name: str, kind: str, about: str) -> Iterator[str]:
    yield f"# HELP {PREFIX}_{name} {about}"
    yield f"# TYPE {PREFIX}_{name} {kind}"


def _labels(**given: object) -> str:
    parts = (f'{name}="{_escape_label(str(value))}"' for name, value in given.items())
    return "{" + ",".join(parts) + "}"


def _escape_label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


# --- Why a plan has nothing new, or a run nothing to work: in sentences that say what to do.
#
# What waits is told first, then why no more was planned. The ledger and the plan are read, and
# nothing is changed.


_MOST = 3
_OF_SESSIONS = ("learn", "replay")
_DO = {
    "budget": "`reverie fleet budget {tenant}` shows it, `--tokens N` raises it",
    "held": "`reverie fleet show {key}` names what holds it",
    "unknown-kind": "run it with a version that knows it, or `reverie fleet cancel {key}`",
}
_RETRY = "`reverie fleet retry {key}` begins it now"


def why_idle(ledger: FleetLedger, home: Path, asked: PlanRequest, found: FleetPlan) -> list[str]:
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


def _why_none(
    ledger: FleetLedger, home: Path, asked: PlanRequest, found: FleetPlan
) -> Iterator[str]:
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


def _why_passed(found: FleetPlan, asked: PlanRequest) -> Iterator[str]:
    reasons = Counter(why for _, why in found.passed)
    for why, count in reasons.most_common(_MOST):
        yield f"{plural(count, 'memory', 'memories')} passed over: {why}"
    rest = sum(reasons.values()) - sum(count for _, count in reasons.most_common(_MOST))
    if rest:
        yield f"{rest:,} more passed over; `reverie fleet plan --dry-run` names each"
    if asked.due:
        yield "`--all` dreams also where it is not due"


# --- What the codes of jobs mean, in words, for every door.
#
# The database and `--json` have the code; people get the words. A code that is not known here, of
# another version perhaps, is its own word.


REASONS = {
    # waits
    "held": "another process holds the memory",
    "budget": "no room in the budget until tomorrow (UTC)",
    "unknown-kind": "no worker so far knows this kind of job",
    "worker-gone": "the worker that had it is gone",
    "stopped": "it was stopped, and goes on with the next run",
    "fenced": "a later try has landed",
    # done
    "completed": "completed",
    "waiting": "its changes wait for review",
    "already": "it had landed before",
    "learned": "the session was learned from",
    "replayed": "the session was replayed",
    "fixed": "mended",
    "nothing-to-fix": "there was nothing to mend",
    "synced": "synced",
    # passed over
    "no-memory": "there is no memory",
    "no-session": "its session is gone",
    "transcript-shrank": "its transcript is shorter than when it was planned",
    "not-due": "it is not due any more",
    "not-found": "what it needs is gone",
    "no-team": "no team is set up",
    "cancelled": "somebody cancelled it",
    # failed
    "not-fixed": "it could not be mended",
    "changed-meanwhile": "somebody else wrote meanwhile",
    "dream-failed": "the dream failed",
    "dream-killed": "the dream was stopped",
    "error": "an error that nobody expected",
    # failed with an error of ours, by its name
    "AuthFailed": "the provider does not accept the key, or there is none",
    "Overloaded": "the provider has no room: a rate limit, or its load",
    "Unreachable": "the provider could not be reached",
    "UnknownModel": "the provider has no model of this name",
    "Incomplete": "the model's answer stayed cut off or empty",
    "Refused": "the model refused to answer",
    "PromptTooLong": "the memory is too long for the model's window",
    "ProviderError": "the provider refused or failed",
    "StoreError": "the disk said no",
    "WriteFailed": "the disk did not take a write",
    "PathRefused": "a path in it is not safe",
    "SecretFound": "it holds what looks like a secret",
    "ScanFailed": "nobody can say whether it holds a secret",
    "LaterVersion": "a later version of Reverie wrote it",
    "SettingsError": "a setting cannot be used",
    "InvalidInput": "it was handed something that cannot be used",
    "InvalidMessage": "a message in it cannot be used",
    "ImportFailed": "its session cannot be read",
    "NotAvailable": "this installation cannot do it",
    "ForkRefused": "its dream could not begin",
    "DatabaseAway": "the database did not answer",
}
"""How a try ended, or why a job waits, by its code."""


def in_words(code: str) -> str:
    return REASONS.get(code, code)
