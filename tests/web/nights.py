"""A fleet's ledger after half a night: done, running, dead and held jobs, a budget, a pause."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

from reverie.fleet import (
    LOG,
    ClaimedJob,
    FleetLedger,
    JobEnd,
    Limits,
    Progress,
    Rates,
    at_work,
    nightly,
    of_session,
    open_local,
    set_budget,
)

NIGHT = "2026-11-17"
GONE = "host-a:4711:0123456789abcdef"


def job(name: str, kind: str = "dream", tenant: str = "default", root: str = "/srv/code"):
    return nightly(kind, f"{root}/{name}", NIGHT, tenant=tenant, host="", due=True)


def taken(ledger: FleetLedger, worker: str = "host-a:1:1") -> ClaimedJob:
    found = ledger.claim(worker)
    assert found is not None
    return found


@contextmanager
def half_a_night(home: Path) -> Generator[FleetLedger]:
    """Two done, one skipped, one dead with its words, one held, two running (one by nobody any
    more), one cancelled, three of a paused tenant; a tenant whose budget is used up."""
    ledger = open_local(home)
    names = ("billing", "web", "old-notes", "search", "orders", "mobile", "infra")
    ledger.add([job(name) for name in names])
    used = Progress("", 0, 3, 12, 73_500.0)
    ledger.end(taken(ledger), JobEnd("done", "completed", progress=used))
    ledger.end(taken(ledger), JobEnd("done", "completed", progress=used))
    ledger.end(taken(ledger), JobEnd("skipped", "no-memory"))
    dead = taken(ledger)
    ledger.end(dead, JobEnd("dead", "RateLimited", progress=Progress("", 0, 0, 4, 900.0)))
    ledger.end(taken(ledger), JobEnd("queued", "held", 3_600.0, counted=False))
    with closing(ledger), at_work(home) as worker:
        ledger.beat(taken(ledger, worker), Progress("consolidate", 5, 2, 6, 21_000.0))
        taken(ledger, GONE)
        _rest(ledger, home, dead.job.key)
        yield ledger


def _rest(ledger: FleetLedger, home: Path, dead: str) -> None:
    session = "00000000-0000-4000-8000-000000000009"
    learn = of_session("learn", "/srv/code/cut", session, "ab" * 20, 9, tenant="default", host="")
    ledger.add([learn])
    ledger.cancel("default", learn.key)
    ledger.add([job(f"repo{n}", "hygiene", "acme") for n in range(3)])
    ledger.pause("acme", paused=True)
    set_budget(ledger, "default", 2_000_000.0, None)
    set_budget(ledger, "globex", 1_000.0, 10)
    ledger.database.write(
        "INSERT INTO fleet_spent (tenant, day, tokens, calls) VALUES (?, ?, ?, ?), (?, ?, ?, ?)",
        ("default", ledger.today(), 147_900.0, 28, "globex", ledger.today(), 1_000.0, 3),
    )
    Rates(ledger).set_limits("*", Limits(1_000.0, 450_000.0, 90_000.0))
    words = {"job": dead, "code": "RateLimited", "reason": "The key is at its limit"}
    (home / "fleet").mkdir(exist_ok=True)
    (home / LOG).write_text(json.dumps(words) + "\n")
