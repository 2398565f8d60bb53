"""The past of a ledger: no statement of a night goes through it, and in time it leaves.

Counted are steps of SQLite's machine and pages that PostgreSQL touched, after a short and after a
long past.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from reverie.errors import NotAvailable
from reverie.fleet import (
    AT_ONCE,
    KEPT_DAYS,
    MIGRATIONS,
    STEPS,
    FleetLedger,
    JobEnd,
    RunTotals,
    nightly,
)
from reverie.team import Database, Row, Sqlite, SqlValue, Transaction, migrate
from reverie.testing import ManualClock
from tests.fleet.fleet import Fleet, rows
from tests.fleet.stage import jobs_for, lander, wrong
from tests.fleet.test_ledger import claim, job
from tests.fleet.test_work import Site

pytestmark = [pytest.mark.spec("9.fleet-history")]
T = TypeVar("T")
DAY = 86_400.0
SHORT, LONG = 1_000, 10_000


def past(ledger: FleetLedger, jobs: int, days: float = 2.0) -> None:
    """So many jobs that were done some days ago."""
    before = f"{ledger.now_sql} - {days * DAY}"
    series = (
        f"SELECT generate_series(1, {jobs}) AS n"
        if ledger.database.kind == "postgresql"
        else f"WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c WHERE n < {jobs})"
        " SELECT n FROM c"
    )
    ledger.database.write(
        "INSERT INTO fleet_jobs (tenant, key, kind, root, memory, night, about, size, host, due,"
        " rank, state, code, tries, fence, worker, after, created, started, ended, phase, rounds,"
        " files, requests, cost, ident, cancel) SELECT 'default', 'past:' || CAST(n AS TEXT) ||"
        f" ':{days}', 'dream', '/r', 'm' || CAST(n AS TEXT), '', '', 0, '', 0, n, 'done',"
        f" 'completed', 1, 1, 'w', 0, {before}, {before}, {before}, '', 0, 0, 0, 0, '', 0"
        f" FROM ({series}) AS made"
    )


# On one host


class Counted(Sqlite):
    """A database that counts what its machine does."""

    steps = 0

    def _take(self) -> sqlite3.Connection:
        connection = super()._take()
        connection.set_progress_handler(self._count, 10)
        return connection

    def _count(self) -> int:
        self.steps += 10
        return 0


@pytest.fixture
def counted(tmp_path: Path, hand: ManualClock) -> Iterator[tuple[FleetLedger, Counted]]:
    database = Counted(tmp_path / "fleet.sqlite3")
    ledger = FleetLedger(database, now=hand.now)
    ledger.make()
    yield ledger, database
    ledger.close()


def test_a_night_on_one_host_costs_the_same_after_ten_times_the_past(
    counted: tuple[FleetLedger, Counted],
) -> None:
    ledger, database = counted

    def night(name: str) -> list[int]:
        found: list[int] = []
        planned = [job(f"/{n}", name) for n in range(20)]
        for what in (
            lambda: ledger.add(planned),
            lambda: ledger.add(planned),
            lambda: ledger.end(claim(ledger), JobEnd("done")),
            lambda: ledger.open_jobs(due=True),
            ledger.running_workers,
            ledger.forget,
        ):
            before = database.steps
            what()
            found.append(database.steps - before)
        return found

    past(ledger, SHORT)
    night("0")  # 20 more wait: both nights that are counted find some
    short = night("1")
    past(ledger, LONG, 3)
    long = night("2")
    for less, more in zip(short, long, strict=True):
        assert more <= less * 1.5 + 400, (short, long)


def test_what_is_over_leaves_after_its_days_in_small_steps(
    counted: tuple[FleetLedger, Counted], hand: ManualClock
) -> None:
    ledger, _ = counted
    past(ledger, AT_ONCE + 20, KEPT_DAYS + 2)
    past(ledger, 30, KEPT_DAYS - 2)
    ledger.add([job("/open", "1"), job("/begun", "1"), job("/late", "1"), job("/cancelled", "1")])
    ledger.cancel("default", job("/cancelled", "1").key)
    ledger.end(claim(ledger), JobEnd("queued", "held", 1.5 * DAY, counted=False))
    claim(ledger)
    hand.time += DAY
    late = claim(ledger)
    assert [ledger.forget() for _ in range(3)] == [AT_ONCE, 20, 0]
    assert ledger.end(late, JobEnd("dead", "error"))
    hand.time += (KEPT_DAYS - 0.5) * DAY
    assert ledger.forget() == 31  # with the one that was cancelled
    states = sorted((row["root"], row["state"]) for row in ledger.jobs())
    assert states == [("/begun", "running"), ("/late", "dead"), ("/open", "queued")]
    hand.time += DAY
    assert ledger.forget() == 1
    assert ledger.open_jobs() == 2  # what is open stays, however old


async def test_a_run_lets_the_past_leave_and_a_night_of_it_lands_once(tmp_path: Path) -> None:
    """The memory remembers its own nights longer than the ledger does."""
    site = Site(tmp_path)
    try:
        roots = site.memories(1)
        site.ledger.add(jobs_for(roots, 1))
        assert await site.run(dream=lander()) == RunTotals(done=1)
        site.ledger.database.write(
            f"UPDATE fleet_jobs SET created = created - {31 * DAY}, ended = ended - {31 * DAY}"
        )
        past(site.ledger, 2 * AT_ONCE, KEPT_DAYS + 1)
        assert await site.run(dream=lander()) == RunTotals()
        assert site.ledger.jobs() == []
        site.ledger.add(jobs_for(roots, 1))
        assert await site.run(dream=lander()) == RunTotals(done=1)
        assert site.only()["code"] == "already"
        assert wrong(site.home, roots, 1) == (0, 0)
    finally:
        site.ledger.close()


def test_a_ledger_of_an_earlier_version_is_brought_up_to_date(tmp_path: Path) -> None:
    """On one host at once; elsewhere its owner is asked to."""
    database = Sqlite(tmp_path / "fleet.sqlite3")
    try:
        migrate(database, STEPS[:1], MIGRATIONS)
        ledger = FleetLedger(database)
        with pytest.raises(NotAvailable, match="have 1 step, this version needs 2") as refused:
            ledger.check()
        assert "reverie fleet init" in refused.value.do
        ledger.make()
        ledger.check()
    finally:
        database.close()


# On many


class PagesRead:
    """A database that counts the pages which its statements touch: each is explained, undone and
    then done."""

    kind = "postgresql"

    def __init__(self, inner: Database) -> None:
        self.inner = inner
        self.pages = 0

    def run(self, body: Callable[[Transaction], T], *, writes: bool = False) -> T:
        del writes
        return self.inner.run(lambda within: body(_Explained(self, within)), writes=True)

    def write(self, sql: str, values: Sequence[SqlValue] = ()) -> list[Row]:
        return self.run(lambda within: within.rows(sql, values))

    def exclusive(self, body: Callable[[Transaction], T]) -> T:
        return self.inner.exclusive(lambda within: body(_Explained(self, within)))

    def close(self) -> None:
        self.inner.close()


class _Explained:
    def __init__(self, counts: PagesRead, within: Transaction) -> None:
        self._counts = counts
        self._within = within

    def rows(self, sql: str, values: Sequence[SqlValue] = ()) -> list[Row]:
        self._within.rows("SAVEPOINT before")
        explained = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}"
        found: Any = self._within.rows(explained, values)[0][0]
        self._within.rows("ROLLBACK TO before")
        plan = found[0]["Plan"]
        self._counts.pages += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        return self._within.rows(sql, values)

    def many(self, sql: str, values: Sequence[Sequence[SqlValue]]) -> None:
        self._within.many(sql, values)


@pytest.mark.integration
@pytest.mark.parametrize("who", ["owner", "worker"])
def test_the_watch_of_many_hosts_touches_open_jobs_and_not_the_past(fleet: Fleet, who: str) -> None:
    fleet.engine.init(fleet.url, "night_worker")
    url = fleet.url if who == "owner" else fleet.url.replace("postgres:@", "night_worker:@")
    read = PagesRead(fleet.engine.open_fleet(url).database)
    watching = FleetLedger(read)
    try:
        watching.check()
        fleet.ledger.add(jobs_for([Path(f"/{n}") for n in range(20)], 1))

        def counts() -> list[int]:
            rows(fleet.ledger, "ANALYZE fleet_jobs")
            found: list[int] = []
            plan = [nightly("dream", "/0", "night-0", tenant="default", host="", due=False)]
            for what in (
                lambda: fleet.engine.enqueue(watching),
                lambda: fleet.engine.enqueue(watching, wait=False),
                watching.open_jobs,
                watching.running_workers,
                watching.forget,
                lambda: watching.add(plan),
            ):
                before = read.pages
                what()
                found.append(read.pages - before)
            return found

        past(fleet.ledger, SHORT)
        counts()
        short = counts()
        past(fleet.ledger, LONG, 3)
        long = counts()
        for less, more in zip(short, long, strict=True):
            assert more <= less * 1.2 + 8, (short, long)
    finally:
        watching.close()


@pytest.mark.integration
def test_a_worker_may_have_leave_what_is_over_for_long_and_nothing_else(fleet: Fleet) -> None:
    fleet.engine.init(fleet.url, "night_worker")
    login = fleet.url.replace("postgres:@", "night_worker:@")
    past(fleet.ledger, 3, KEPT_DAYS + 1)
    past(fleet.ledger, 2, KEPT_DAYS - 1)
    fleet.plan(jobs_for([Path("/nowhere")], 1))
    rows(fleet.ledger, "UPDATE fleet_jobs SET created = 0 WHERE state = 'queued'")
    other = fleet.engine.open_fleet(login, ("acme",))
    mine = fleet.engine.open_fleet(login, ("default",))
    try:
        assert rows(other, "DELETE FROM fleet_jobs RETURNING 1") == []
        assert len(rows(mine, "DELETE FROM fleet_jobs RETURNING 1")) == 3
    finally:
        other.close()
        mine.close()
    assert rows(fleet.ledger, "SELECT COUNT(*) FROM fleet_jobs") == [(3,)]


@pytest.mark.integration
async def test_a_worker_lets_the_past_leave_as_it_watches(fleet: Fleet) -> None:
    past(fleet.ledger, AT_ONCE + 1, KEPT_DAYS + 1)
    (planned,) = jobs_for([Path("/nowhere")], 1)
    fleet.plan([planned])
    await fleet.work()
    left = rows(fleet.ledger, "SELECT COUNT(*) FROM fleet_jobs")[0][0]
    assert left <= 2
    assert fleet.ledger.job("default", planned.key)["code"] == "no-memory"
