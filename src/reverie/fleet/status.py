"""A fleet at a glance: jobs by tenant, kind and state, budgets, limits; who shows signs of life,
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

from reverie.fleet.here import lives
from reverie.fleet.ledger import FleetLedger
from reverie.fleet.rates import Rates, spent
from reverie.fleet.work import LOG
from reverie.text.format import utc_day

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
    tenants, used = ledger.tenants(), spent(ledger, day)
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
    words = dict(_logged(home / LOG, wanted)) if wanted else {}
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
    return [{name: one["tokens"] for name, one in spent(ledger, day).items()} for day in days]


# Signs of life


def _signs(ledger: FleetLedger, home: Path, working: Iterable[str]) -> list[dict[str, Any]]:
    """Every worker with its jobs and the seconds since it was last heard of; None = it is gone."""
    if ledger.database.kind == "postgresql":
        return _heard(ledger, working)
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


def _heard(ledger: FleetLedger, working: Iterable[str]) -> list[dict[str, Any]]:
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


def _logged(log: Path, wanted: set[tuple[str, str]]) -> Iterator[tuple[tuple[str, str], str]]:
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
    parts = (f'{name}="{_escaped(str(value))}"' for name, value in given.items())
    return "{" + ",".join(parts) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
