"""What `reverie fleet status` says beyond counts: who shows signs of life, what is wrong and why.

The database has a code for how a job's last try ended. The words are in a log of the host that
worked it; where that is this host they are joined here, and nowhere else.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from reverie.apps.cli.show import Column, say, table
from reverie.fleet.ledger import day_of
from reverie.fleet.local import lives
from reverie.fleet.rates import spent
from reverie.fleet.status import fleet_status
from reverie.fleet.work import LOG

if TYPE_CHECKING:
    from reverie.fleet.ledger import FleetLedger

JobRow: TypeAlias = dict[str, Any]
SHOWN = 10
COUNTED = 1_000
DAYS = 7
_DAY = 86_400.0
_TAIL = 500_000
_MAX_REASON = 400


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
        "signs": _signs(ledger, found["workers"]),
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
    """The jobs that are open, or were begun or planned within a day: the ledger keeps all."""
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
    days = [day_of(now - n * _DAY) for n in reversed(range(DAYS))]
    return [{name: one["tokens"] for name, one in spent(ledger, day).items()} for day in days]


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
        why = ", ".join(f"{code} {count}" for code, count in found[state]["codes"].items())
        if why:
            say(f"{words}: {why}", "yellow")
    for name, about in found["tenants"].items():
        if about["paused"]:
            say(f"{name} is paused: `reverie fleet pause {name} --resume`", "yellow")
        if about["tokens"] is not None:
            used = about["spent"]["tokens"]
            say(f"{name}: {used:,.0f} of {about['tokens']:,.0f} price-weighted tokens today")


# Signs of life


def _signs(ledger: FleetLedger, working: Iterable[str]) -> list[dict[str, Any]]:
    """Every worker with its jobs and the seconds since it was last heard of; None = it is gone."""
    if ledger.database.kind == "postgresql":
        return _heard(ledger, working)
    jobs = Counter(str(row["worker"]) for row in ledger.jobs(state="running", most=COUNTED))
    return [
        {"worker": one, "jobs": jobs[one], "quiet": 0.0 if lives(one) else None} for one in working
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
