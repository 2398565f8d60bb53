"""The ledger of a fleet: every job by its key, where it stands and what it cost.

Planned twice, a job is one row. Whoever takes a job up gets a fence, a number higher than any
before; every later word about the job names it, so a try that lost the job changes nothing. All
statements name the tenant, and run on SQLite and PostgreSQL alike. It is the ledger that says which
jobs are open; who runs them is the engine's business.

Time is the database's own on PostgreSQL: hosts whose clocks are a day apart agree here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar
from uuid import uuid4

from reverie.errors import NotFound
from reverie.fleet.plan import ClaimedJob, Job, JobEnd, Progress
from reverie.fleet.tables import (
    COLUMNS,
    check_tables,
    forget_over,
    known_states,
    make_tables,
    take_in,
)
from reverie.store.transaction import JobFence
from reverie.team.database import Database, DatabaseAway, Row, SqlValue, Transaction
from reverie.text.format import utc_day

T = TypeVar("T")
RunSql: TypeAlias = Callable[[str, Sequence[SqlValue]], list[Row]]
TRIES = 5
BEGUN = 20
"""Tries in all, with those whose worker was gone before they ended: a job may be what ends it."""
GONE = "worker-gone"
FARTHEST = 2 * 86_400.0
"""Seconds ahead that no job waits for: a time beyond them was set by a clock that was wrong."""
_PATIENCE = 90.0
_ABOUT = (
    "tenant, key, kind, root, night, state, code, tries, worker, host, after, created, started,"
    " ended, phase, rounds, files, requests, cost, ident, cancel"
)


class FleetLedger:
    """The ledger in one database."""

    def __init__(
        self,
        database: Database,
        *,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.database = database
        self._clock = now
        self._sleep = sleep
        self.source = ""

    def make(self) -> None:
        """Make the tables that are missing."""
        make_tables(self.database, uuid4().hex)
        self.source = check_tables(self.database)

    def check(self) -> None:
        """Look whether the tables are those that this version knows."""
        self.source = check_tables(self.database)

    def close(self) -> None:
        self.database.close()

    @property
    def now_sql(self) -> str:
        """The time, as it stands in a statement."""
        if self.database.kind == "postgresql":
            return "extract(epoch FROM clock_timestamp())::double precision"
        return f"{self._clock():.6f}"

    @property
    def due_sql(self) -> str:
        """Whether a job may begin now, as it stands in a statement."""
        return f"(after <= {self.now_sql} OR after > {self.now_sql} + {FARTHEST})"

    def now(self) -> float:
        """The time by which jobs wait."""
        if self.database.kind != "postgresql":
            return self._clock()
        return float(self._read(f"SELECT {self.now_sql}")[0][0] or 0)

    def today(self) -> str:
        """The day (UTC), by the same clock."""
        return utc_day(self.now())

    # Planning

    def add(self, jobs: Sequence[Job]) -> list[Job]:
        """Take a plan; gives the jobs that are new. Two plans at once take turns."""
        wanted = list({(job.tenant, job.key): job for job in jobs}.values())
        return self.patient(
            lambda: self.database.exclusive(lambda within: take_in(within, wanted, self.now_sql))
        )

    def states(self, jobs: Sequence[Job]) -> dict[tuple[str, str], str]:
        """Where these jobs stand, by tenant and key; those that nobody planned are left out."""
        return self.database.run(lambda within: known_states(within, jobs), writes=True)

    # Taking up and ending

    def claim(self, worker: str) -> ClaimedJob | None:
        """The next job whose memory nobody has, taken up: the engine of one home. Every job in
        its ledger is its own, whatever its host was called when it was planned."""

        def work(within: Transaction) -> ClaimedJob | None:
            found = within.rows(
                "SELECT tenant, key FROM fleet_jobs j WHERE state = 'queued'"
                f" AND {self.due_sql}"
                " AND NOT EXISTS (SELECT 1 FROM fleet_jobs r"
                " WHERE r.memory = j.memory AND r.state = 'running')"
                " AND NOT EXISTS (SELECT 1 FROM fleet_tenants t"
                " WHERE t.tenant = j.tenant AND t.paused = 1) ORDER BY rank LIMIT 1"
            )
            if not found:
                return None
            return self._start_job(within.rows, str(found[0][0]), str(found[0][1]), worker)

        return self.database.run(work, writes=True)

    def begin(self, tenant: str, key: str, worker: str) -> ClaimedJob | None:
        """Take up a job that the engine hands out; None where it is no longer open, waits for a
        later time, or where somebody has a higher fence by now."""
        return self.patient(lambda: self._start_job(self._write, tenant, key, worker))

    def _start_job(self, run: RunSql, tenant: str, key: str, worker: str) -> ClaimedJob | None:
        """Every statement may stand by itself: a fence that nobody uses does no harm."""
        fence = run("UPDATE fleet_meta SET fence = fence + 1 RETURNING fence", ())[0][0]
        rows = run(
            "UPDATE fleet_jobs SET state = 'running', fence = ?, worker = ?, tries = tries + 1,"
            f" started = {self.now_sql}, phase = '', code = ''"
            " WHERE tenant = ? AND key = ? AND state IN ('queued', 'running') AND cancel = 0"
            f" AND tries < {BEGUN} AND {self.due_sql} AND fence < ?"
            f" RETURNING {COLUMNS}, tries, requests, cost",
            (fence, worker, tenant, key, fence),
        )
        if not rows:
            run(
                f"UPDATE fleet_jobs SET ended = {self.now_sql}, state = CASE WHEN cancel = 1"
                f" THEN 'cancelled' ELSE 'dead' END, code = CASE WHEN cancel = 1"
                f" THEN code ELSE '{GONE}' END"
                " WHERE tenant = ? AND key = ? AND state IN ('queued', 'running')"
                f" AND (cancel = 1 OR tries >= {BEGUN})",
                (tenant, key),
            )
            return None
        job = _job(rows[0])
        tries, requests, cost = (float(one or 0) for one in rows[0][-3:])
        mine = JobFence(job.key, int(fence or 0), self.source)
        return ClaimedJob(job, mine, int(tries), int(requests), cost)

    def beat(self, taken: ClaimedJob, at: Progress) -> str:
        """Say how far a try is: "" to go on, "cancel" where somebody asked, "lost" where the job
        is another's by now."""
        rows = self._write(
            "UPDATE fleet_jobs SET phase = ?, rounds = ?, files = ?, requests = ?, cost = ?"
            " WHERE tenant = ? AND key = ? AND fence = ? AND state = 'running' RETURNING cancel",
            (at.phase, at.rounds, at.files, *_total_usage(taken, at), *_name(taken)),
        )
        return "lost" if not rows else "cancel" if rows[0][0] else ""

    def end(self, taken: ClaimedJob, end: JobEnd) -> bool:
        """How a try ended; False where the job is another's by now."""
        at = end.progress
        rows = self.patient(
            lambda: self._write(
                f"UPDATE fleet_jobs SET state = ?, code = ?, after = {self.now_sql} + ?,"
                f" ended = {self.now_sql}, tries = tries - ?, rounds = ?, files = ?,"
                " requests = ?, cost = ?, ident = ?"
                " WHERE tenant = ? AND key = ? AND fence = ? AND state = 'running' RETURNING 1",
                (
                    end.state,
                    end.code,
                    end.wait,
                    0 if end.counted else 1,
                    at.rounds,
                    at.files,
                    *_total_usage(taken, at),
                    end.ident,
                    *_name(taken),
                ),
            )
        )
        return bool(rows)

    def raise_fence(self, number: int) -> None:
        """A memory knows a higher number, since the database came back from a backup."""
        self._write("UPDATE fleet_meta SET fence = ? WHERE fence < ?", (number, number))

    def watch_is_due(self, every: float) -> bool:
        """Whether nobody looked after the jobs for so long; who asks first does."""
        rows = self._write(
            f"UPDATE fleet_meta SET watched = {self.now_sql}"
            f" WHERE watched <= {self.now_sql} - ? OR watched > {self.now_sql} + ? RETURNING 1",
            (every, every),
        )
        return bool(rows)

    def give_back(self, workers: Iterable[str]) -> int:
        """Jobs of workers that are gone wait again, or are dead where that happened too often."""
        count = 0
        for worker in workers:
            rows = self._write(
                f"UPDATE fleet_jobs SET code = '{GONE}', ended = {self.now_sql},"
                f" state = CASE WHEN tries >= {BEGUN} THEN 'dead' ELSE 'queued' END"
                " WHERE worker = ? AND state = 'running' RETURNING 1",
                (worker,),
            )
            count += len(rows)
        return count

    def running_workers(self) -> list[str]:
        """Who has a job now."""
        rows = self._read("SELECT DISTINCT worker FROM fleet_jobs WHERE state = 'running'")
        return [str(row[0]) for row in rows]

    # What people ask for

    def cancel(self, tenant: str, key: str) -> str:
        """Ask for a job to stop: one that waits is cancelled at once, one that runs when its body
        has stopped. Gives its state."""
        self.job(tenant, key)
        self._write(
            "UPDATE fleet_jobs SET cancel = 1,"
            f" ended = CASE WHEN state = 'queued' THEN {self.now_sql} ELSE ended END,"
            " state = CASE WHEN state = 'queued' THEN 'cancelled' ELSE state END"
            " WHERE tenant = ? AND key = ? AND state IN ('queued', 'running')",
            (tenant, key),
        )
        return str(self.job(tenant, key)["state"])

    def retry(self, tenant: str, key: str) -> str:
        """A job that is over begins anew, with all its tries; gives its state."""
        self.job(tenant, key)
        self._write(
            "UPDATE fleet_jobs SET state = 'queued', cancel = 0, tries = 0, after = 0, code = ''"
            " WHERE tenant = ? AND key = ? AND state IN ('dead', 'cancelled', 'skipped')",
            (tenant, key),
        )
        self._write(
            "UPDATE fleet_jobs SET after = 0 WHERE tenant = ? AND key = ? AND state = 'queued'",
            (tenant, key),
        )
        return str(self.job(tenant, key)["state"])

    def retry_now(self, tenant: str = "") -> int:
        """What waits for a later time may begin now; how many jobs that are."""
        rows = self._write(
            "UPDATE fleet_jobs SET after = 0 WHERE (? = '' OR tenant = ?) AND state = 'queued'"
            " AND after > 0 RETURNING 1",
            (tenant, tenant),
        )
        return len(rows)

    def pause(self, tenant: str, paused: bool) -> None:
        """Begin no job of a tenant, or begin them again; what runs comes to its end."""
        self._write(
            "INSERT INTO fleet_tenants (tenant, paused) VALUES (?, ?)"
            " ON CONFLICT (tenant) DO UPDATE SET paused = excluded.paused",
            (tenant, int(paused)),
        )

    def tenants(self) -> dict[str, dict[str, Any]]:
        """Every tenant: whether it is paused, and its budget of a day."""
        rows = self._read("SELECT tenant, paused, tokens, calls FROM fleet_tenants ORDER BY tenant")
        return {
            str(row[0]): {"paused": bool(row[1]), "tokens": row[2], "calls": row[3]} for row in rows
        }

    def counts(self) -> list[dict[str, Any]]:
        """How many jobs of each tenant and kind are in which state, and what they cost."""
        rows = self._read(
            "SELECT tenant, kind, state, COUNT(*), SUM(cost), SUM(requests) FROM fleet_jobs"
            " GROUP BY tenant, kind, state ORDER BY tenant, kind, state"
        )
        return [
            {
                "tenant": row[0],
                "kind": row[1],
                "state": row[2],
                "jobs": int(row[3] or 0),
                "cost": float(row[4] or 0),
                "requests": int(row[5] or 0),
            }
            for row in rows
        ]

    def jobs(
        self, *, tenant: str = "", state: str = "", kind: str = "", most: int = 100
    ) -> list[dict[str, Any]]:
        """The jobs that fit, those that began or were planned last first."""
        rows = self._read(
            f"SELECT {_ABOUT} FROM fleet_jobs WHERE (? = '' OR tenant = ?)"
            " AND (? = '' OR state = ?) AND (? = '' OR kind = ?)"
            " ORDER BY started DESC, created DESC, key LIMIT ?",
            (tenant, tenant, state, state, kind, kind, most),
        )
        return [_about(row) for row in rows]

    def job(self, tenant: str, key: str) -> dict[str, Any]:
        """One job."""
        rows = self._read(
            f"SELECT {_ABOUT} FROM fleet_jobs WHERE tenant = ? AND key = ?", (tenant, key)
        )
        if not rows:
            raise NotFound("There is no such job", where=key, do="`reverie fleet list` shows them")
        return _about(rows[0])

    def open_jobs(self, *, due: bool = False) -> int:
        """How many jobs are not over yet; with `due`, of those that may begin now."""
        later = f" AND (state = 'running' OR {self.due_sql})" if due else ""
        rows = self._read(
            f"SELECT COUNT(*) FROM fleet_jobs WHERE state IN ('queued', 'running'){later}"
        )
        return int(rows[0][0] or 0)

    # What is over

    def forget(self) -> int:
        """Let the oldest jobs leave that are over for longer than they are kept, a small part of
        them at once; how many those were."""
        return self.patient(lambda: forget_over(self.database, self.now()))

    # Statements

    def _read(self, sql: str, values: Sequence[SqlValue] = ()) -> list[Row]:
        return self.database.run(lambda within: within.rows(sql, values))

    def _write(self, sql: str, values: Sequence[SqlValue] = ()) -> list[Row]:
        return self.database.write(sql, values)

    def patient(self, work: Callable[[], T]) -> T:
        """Work that may be done twice; a database that is being restarted is waited for."""
        waited, pause = 0.0, 0.1
        while True:
            try:
                return work()
            except DatabaseAway:
                if waited >= _PATIENCE:
                    raise
            self._sleep(pause)
            waited, pause = waited + pause, min(2.0, pause * 2)


def _total_usage(taken: ClaimedJob, at: Progress) -> tuple[int, float]:
    """What all tries together have used."""
    return taken.requests + at.requests, taken.cost + at.cost


def _name(taken: ClaimedJob) -> tuple[SqlValue, ...]:
    return taken.job.tenant, taken.job.key, taken.fence.number


def _job(row: Row) -> Job:
    tenant, key, kind, root, night, about, size, host, due = row[:9]
    return Job(
        str(tenant),
        str(key),
        str(kind),
        str(root),
        str(night),
        str(about),
        int(size or 0),
        str(host),
        bool(due),
    )


def _about(row: Row) -> dict[str, Any]:
    names = [name.strip() for name in _ABOUT.split(",")]
    found = dict(zip(names, row, strict=True))
    return {**found, "cancel": bool(found["cancel"])}
