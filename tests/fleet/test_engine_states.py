"""Where a job stands with the engine and in the ledger: one that is open is always somebody's soon.

Each of these is a state that a kill, a stop or a lost word leaves behind, made by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from reverie.fleet import JobEnd, JobHandle, nightly
from reverie.memory import TaskOutcome
from reverie.team import EXCLUSIVE
from tests.fleet.fleet import LEASE, Fleet, rows
from tests.fleet.stage import jobs_for, lander, make_memories, wrong

pytestmark = [pytest.mark.spec("9.fleet-states"), pytest.mark.integration]
HOUR = "last_heartbeat = now() - interval '1 hour'"


async def until(holds: Callable[[], bool]) -> None:
    with anyio.fail_after(60):
        while not await to_thread.run_sync(holds):  # noqa: ASYNC110 - the database tells nobody
            await anyio.sleep(0.02)


# Whose a job is


async def test_who_lost_a_job_cannot_end_it(fleet: Fleet) -> None:
    """The engine's own words would: that is why ours ask for the owner."""
    from procrastinate import jobs, manager

    fleet.plan(jobs_for([Path("/nowhere")], 1))
    async with fleet.owned() as owned:
        first, second = await owned.register_worker(), await owned.register_worker()
        job = await owned.fetch_job(None, first)
        assert job is not None
        rows(fleet.ledger, f"UPDATE procrastinate_jobs SET worker_id = {second}")
        for _ in range(2):
            await owned.finish_job(job, jobs.Status.FAILED, False)
            await owned.retry_job(job)
        assert fleet.engine_states() == ["doing"]
        await owned.finish_job(job.evolve(worker_id=second), jobs.Status.SUCCEEDED, False)
        assert fleet.engine_states() == ["succeeded"]
        rows(fleet.ledger, "UPDATE procrastinate_jobs SET status = 'doing'")
        engine = manager.JobManager(owned.connector)
        await engine.finish_job(job, jobs.Status.FAILED, False)
        assert fleet.engine_states() == ["failed"]


async def test_an_earlier_try_of_the_same_worker_cannot_end_a_later_one(fleet: Fleet) -> None:
    """A worker that slept past its lease may get its own job again, beside the body that lost it:
    whose end would take the job, and the memory, from the one that runs."""
    from procrastinate import jobs

    fleet.plan(jobs_for([Path("/nowhere")], 1))
    async with fleet.owned() as owned:
        worker = await owned.register_worker()
        first = await owned.fetch_job(None, worker)
        rows(fleet.ledger, f"UPDATE procrastinate_workers SET {HOUR}")
        (stalled,) = await owned.get_stalled_jobs(seconds_since_heartbeat=LEASE)
        await owned.retry_job(stalled)
        again = await owned.fetch_job(None, worker)
        assert again is not None
        await owned.retry_job(stalled)  # by another who watches, and was late
        await owned.finish_job(first, jobs.Status.SUCCEEDED, True)
        assert fleet.engine_states() == ["doing"]
        await owned.finish_job(again, jobs.Status.SUCCEEDED, True)
        assert fleet.engine_states() == []


# A worker that slept


@pytest.mark.parametrize("struck_off", [True, False])
async def test_a_worker_that_slept_keeps_the_job_it_takes(fleet: Fleet, struck_off: bool) -> None:
    fleet.plan(jobs_for([Path("/nowhere")], 1))
    async with fleet.owned() as owned:
        worker = await owned.register_worker()
        rows(fleet.ledger, f"UPDATE procrastinate_workers SET {HOUR}")
        if struck_off:
            assert await owned.prune_stalled_workers(LEASE) == [worker]
        assert await owned.fetch_job(None, worker) is not None
        assert await owned.get_stalled_jobs(seconds_since_heartbeat=LEASE) == []


async def test_a_worker_struck_off_at_work_loses_that_job_and_works_on(fleet: Fleet) -> None:
    """Its job is given out a second time and the first body hears of it: one landing."""
    (root,) = make_memories(fleet.home, fleet.base, 1)
    fleet.plan(jobs_for([root], 2))
    course: list[str] = []

    async def body(work: JobHandle) -> TaskOutcome:
        course.append(f"begins {work.job.night}")
        if len(course) > 1:
            return await lander()(work)
        rows(fleet.ledger, "DELETE FROM procrastinate_workers")
        try:
            await anyio.sleep_forever()
        finally:
            course.append("body stopped")
        raise AssertionError("unreachable")

    await fleet.work(dream=body)
    assert sorted(course) == ["begins night-0", "begins night-0", "begins night-1", "body stopped"]
    assert set(fleet.states().values()) == {"done"}
    assert wrong(fleet.home, [root], 2) == (0, 0)


# Words that the database did not hear


def connector_that_fails(at: str) -> type[Any]:
    """A connector whose first statement that names `at` does not reach the database."""
    from procrastinate import PsycopgConnector, exceptions

    class Failing(PsycopgConnector):
        failed = 0

        async def execute_query_all_async(self, query: Any, **arguments: Any) -> Any:
            if at in query and not Failing.failed:
                Failing.failed += 1
                raise exceptions.ConnectorException
            return await super().execute_query_all_async(query, **arguments)

    return Failing


async def test_how_a_job_ended_is_said_until_it_is_heard(fleet: Fleet) -> None:
    from procrastinate import jobs

    fleet.plan(jobs_for([Path("/nowhere")], 1))
    failing = connector_that_fails("procrastinate_finish_job")
    async with fleet.owned(failing) as owned:
        job = await owned.fetch_job(None, await owned.register_worker())
        await owned.finish_job(job, jobs.Status.SUCCEEDED, True)
    assert failing.failed == 1
    assert fleet.engine_states() == []


async def test_a_worker_whose_word_is_never_heard_begins_anew(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the engine would think that it has the job, for as long as it lives."""
    failing = connector_that_fails("procrastinate_finish_job")
    monkeypatch.setattr(fleet.engine.procrastinate, "PsycopgConnector", failing)
    monkeypatch.setattr(fleet.engine, "PATIENCE", 0.0)
    (root,) = make_memories(fleet.home, fleet.base, 1)
    fleet.plan(jobs_for([root], 1))
    tries: list[int] = []

    async def body(work: JobHandle) -> TaskOutcome:
        tries.append(1)
        return await lander()(work) if len(tries) > 1 else TaskOutcome("passed over", "fenced")

    await fleet.work(dream=body)
    assert (failing.failed, len(tries)) == (1, 2)
    assert wrong(fleet.home, [root], 1) == (0, 0)


async def test_a_job_that_the_engine_lost_is_put_back(fleet: Fleet) -> None:
    """For the engine it is over, in the ledger it is open: as after a crash between the two."""
    roots = make_memories(fleet.home, fleet.base, 2)
    fleet.plan(jobs_for(roots, 1))
    rows(fleet.ledger, "UPDATE procrastinate_jobs SET status = 'failed'")
    await fleet.work(dream=lander())
    assert set(fleet.states().values()) == {"done"}
    assert wrong(fleet.home, roots, 1) == (0, 0)


async def test_two_jobs_of_one_memory_taken_in_one_moment_are_no_failure(fleet: Fleet) -> None:
    """Each sees the memory free; the database lets one of them have it, the other asks again."""
    import psycopg

    fleet.plan(jobs_for([Path("/nowhere")], 2))
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    found: list[object] = []
    async with fleet.owned() as owned, anyio.create_task_group() as group:
        worker = await owned.register_worker()

        async def fetch() -> None:
            found.append(await owned.fetch_job(None, worker))

        with psycopg.connect(fleet.url) as other:
            other.execute("UPDATE procrastinate_jobs SET status = 'doing' WHERE id = 2")
            group.start_soon(fetch)
            await until(lambda: bool(rows(fleet.ledger, waiting)))
    assert found == [None]
    assert fleet.engine_states() == ["todo", "doing"]


async def test_a_process_stopped_while_it_hands_jobs_over_holds_no_worker_up(fleet: Fleet) -> None:
    import psycopg

    (root,) = make_memories(fleet.home, fleet.base, 1)
    fleet.plan(jobs_for([root], 1))
    rows(fleet.ledger, "UPDATE procrastinate_jobs SET status = 'doing', worker_id = NULL")
    with psycopg.connect(fleet.url) as stopped:
        stopped.execute("SELECT pg_advisory_xact_lock(%s)", (EXCLUSIVE,))
        await fleet.work(dream=lander())
    assert wrong(fleet.home, [root], 1) == (0, 0)


async def test_who_sees_some_tenants_looks_after_them_whoever_watched_just_now(
    fleet: Fleet,
) -> None:
    """The others may be the first to ask each time, and do not see these jobs."""
    roots = make_memories(fleet.home, fleet.base, 1)
    fleet.plan(jobs_for(roots, 1, tenant="acme"))
    rows(fleet.ledger, "UPDATE procrastinate_jobs SET status = 'doing', worker_id = NULL")
    rows(fleet.ledger, "UPDATE fleet_meta SET watched = watched + 1e12")
    await fleet.work(tenants=("acme",), dream=lander())
    assert wrong(fleet.home, roots, 1) == (0, 0)


# Jobs that wait


async def test_what_waits_for_a_later_time_is_handed_over_when_it_has_come(fleet: Fleet) -> None:
    (job,) = jobs_for([Path("/nowhere")], 1)
    fleet.ledger.add([job])
    taken = fleet.ledger.begin("default", job.key, "w")
    assert taken is not None
    fleet.ledger.end(taken, JobEnd("queued", "error", 3_600.0))
    assert fleet.engine.enqueue(fleet.ledger) == 0
    assert fleet.ledger.begin("default", job.key, "w") is None
    assert fleet.ledger.job("default", job.key)["state"] == "queued"
    rows(fleet.ledger, "UPDATE fleet_jobs SET after = after - 3600")
    assert fleet.engine.enqueue(fleet.ledger) == 1
    assert fleet.ledger.begin("default", job.key, "w") is not None


async def test_a_job_that_waits_is_in_no_other_jobs_way(fleet: Fleet) -> None:
    """Nobody here knows the kind of the first job; the memory's next one is done all the same."""
    (root,) = make_memories(fleet.home, fleet.base, 1)
    first = nightly("replay", str(root), "n", tenant="default", host="", due=False)
    fleet.plan([first, *jobs_for([root], 1)])

    async def body(work: JobHandle) -> TaskOutcome:
        worker.stop()
        return await lander()(work)

    worker = fleet.worker(dream=body)
    with anyio.fail_after(60):
        await worker.run()
    assert wrong(fleet.home, [root], 1) == (0, 0)
    about = fleet.ledger.job("default", first.key)
    assert (about["state"], about["code"], about["tries"]) == ("queued", "unknown-kind", 0)
    assert fleet.engine_states() == []


async def test_a_job_that_waits_begins_at_once_when_it_is_asked_for(fleet: Fleet) -> None:
    """As after a memory was held: `reverie fleet retry` does not wait for its time."""
    (root,) = make_memories(fleet.home, fleet.base, 1)
    (job,) = jobs_for([root], 1)
    fleet.plan([job])
    tries: list[int] = []

    async def held_once(work: JobHandle) -> TaskOutcome:
        tries.append(1)
        if len(tries) > 1:
            return await lander()(work)
        asked.start_soon(ask)
        return TaskOutcome("passed over", "held")

    async def ask() -> None:
        await until(lambda: not fleet.engine_states())
        assert fleet.ledger.retry("default", job.key) == "queued"
        assert fleet.engine.enqueue(fleet.ledger) == 1

    async with anyio.create_task_group() as asked:
        await fleet.work(dream=held_once)
    assert len(tries) == 2
    assert wrong(fleet.home, [root], 1) == (0, 0)


# Stopping


async def test_a_worker_told_to_stop_shows_life_until_its_last_job_has_ended(fleet: Fleet) -> None:
    """Its job is not taken from it, however long it lasts: the engine itself would fall silent."""
    (root,) = make_memories(fleet.home, fleet.base, 1)
    fleet.plan(jobs_for([root], 1))
    seen: set[object] = set()

    async def body(work: JobHandle) -> TaskOutcome:
        worker.stop()
        while len(seen) < 5:
            seen.update(rows(fleet.ledger, "SELECT last_heartbeat FROM procrastinate_workers"))
            await anyio.sleep(0.02)
        return await lander()(work)

    worker = fleet.worker(dream=body)
    with anyio.fail_after(60):
        await worker.run()
    assert wrong(fleet.home, [root], 1) == (0, 0)
    assert rows(fleet.ledger, "SELECT tries FROM fleet_jobs") == [(1,)]


async def test_a_worker_told_to_stop_before_it_began_does_not_begin(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = fleet.worker()
    tenants = fleet.ledger.tenants

    def asked() -> Any:
        worker.stop()
        return tenants()

    monkeypatch.setattr(fleet.ledger, "tenants", asked)
    with anyio.fail_after(60):
        await worker.run()
    assert rows(fleet.ledger, "SELECT last_value, is_called FROM procrastinate_workers_id_seq") == [
        (1, False)
    ]
