"""The fleet's engine: procrastinate on PostgreSQL.

The engine hands jobs to workers, one memory at a time, notices workers that are gone and tries
again. It is asked for four things beyond its defaults, each for a reason that a test shows:

- Its words for "finished" and "again" do not ask who says them: a worker that slept past its lease
  would end a job that another one has. `OwnedJobs` says them only for a job that is still the
  worker's own.
- It opens a transaction for every statement: a worker stopped within one would hold others up.
  Here each statement commits by itself.
- A worker stops for good when the database goes away; here it begins again.
- A job could be over for the engine and open in the ledger, for instance after a crash between two
  statements. Whoever watches puts such jobs back.

A job of the engine carries a tenant and a key, and nothing else.
"""

from __future__ import annotations

import datetime
import logging
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio
import procrastinate
from anyio import to_thread
from procrastinate import exceptions, jobs, manager
from procrastinate.worker import Worker

from reverie.errors import InvalidInput
from reverie.fleet.jobs import TakenJob
from reverie.fleet.ledger import FleetLedger
from reverie.fleet.local import worker_name
from reverie.fleet.tables import guard_tables, make_login, seeing
from reverie.fleet.work import Workshop
from reverie.light import dataclass
from reverie.team.database import EXCLUSIVE, Database, DatabaseAway, Transaction, open_database

TASK = "reverie"
LEASE = 60.0
"""Seconds without a sign of life after which a worker's jobs go to others."""
AT_ONCE = datetime.datetime.fromtimestamp(0, datetime.UTC)
"""A time that is past for every host, however its clock goes."""
_AWAY = (exceptions.ConnectorException, exceptions.AppNotOpen, DatabaseAway, OSError)

_logger = logging.getLogger("reverie.fleet")


def open_fleet(url: str, tenants: tuple[str, ...] = ()) -> FleetLedger:
    """The ledger in PostgreSQL, for these tenants or for all."""
    if not url.startswith(("postgresql://", "postgres://")):
        raise InvalidInput(
            "A fleet past one host needs PostgreSQL",
            where=url.split("://", maxsplit=1)[0][:40],
            do="Give postgresql://USER@HOST/NAME, or use `reverie fleet run` on one host",
        )
    return FleetLedger(open_database(seeing(url, tenants)))


def init(url: str, login: str = "") -> None:
    """Make the tables of the engine and of the ledger, their guards and the role of workers; with
    `login`, somebody who has that role and no other. How they prove who they are is set up where
    the database is."""
    ledger = open_fleet(url)
    try:
        _make_engine(ledger.database, url)
        ledger.make()
        ledger.database.exclusive(guard_tables)
        if login:
            ledger.database.exclusive(lambda within: make_login(within, login))
    finally:
        ledger.close()


def _make_engine(database: Database, url: str) -> None:
    def made(within: Transaction) -> bool:
        return within.rows("SELECT to_regclass('procrastinate_jobs')::text")[0][0] is not None

    if not database.run(made):
        app = procrastinate.App(connector=procrastinate.SyncPsycopgConnector(conninfo=url))
        with app.open():
            app.schema_manager.apply_schema()


# Jobs of the ledger become jobs of the engine

_MISSING = (
    "FROM fleet_jobs j WHERE j.state IN ('queued', 'running') AND NOT EXISTS (SELECT 1 FROM"
    " procrastinate_jobs p WHERE p.id = j.engine AND p.status IN ('todo', 'doing'))"
)
_ENQUEUE = (
    "SELECT cardinality(procrastinate_defer_jobs_v1(ARRAY(SELECT ROW("
    "CASE WHEN j.host = '' THEN j.tenant ELSE j.tenant || '@' || j.host END,"
    f" '{TASK}', -j.rank, j.memory, j.tenant || '/' || j.key,"
    " jsonb_build_object('tenant', j.tenant, 'key', j.key),"
    " CASE WHEN j.after > 0 THEN to_timestamp(j.after) END)::procrastinate_job_to_defer_v1"
    f" {_MISSING} AND NOT EXISTS (SELECT 1 FROM procrastinate_jobs q WHERE q.status = 'todo' AND"
    " q.queueing_lock = j.tenant || '/' || j.key) ORDER BY j.rank)))"
)
_LINK = (
    "UPDATE fleet_jobs SET engine = q.id FROM procrastinate_jobs q WHERE q.status = 'todo'"
    " AND q.queueing_lock = fleet_jobs.tenant || '/' || fleet_jobs.key"
    " AND fleet_jobs.state IN ('queued', 'running') AND fleet_jobs.engine IS DISTINCT FROM q.id"
)

_HURRY = (
    "UPDATE procrastinate_jobs SET scheduled_at = NULL FROM fleet_jobs j"
    " WHERE procrastinate_jobs.id = j.engine AND procrastinate_jobs.status = 'todo'"
    " AND procrastinate_jobs.scheduled_at IS NOT NULL AND j.state = 'queued' AND j.after = 0"
)


def enqueue(ledger: FleetLedger, *, wait: bool = True) -> int:
    """Hand to the engine every open job that it does not have, and let those begin that it holds
    back and that somebody asked for again; how many were handed over. Without `wait` it is left to
    whoever does it just now: that may be a process that was stopped."""

    def work(within: Transaction) -> int:
        made = within.rows(_ENQUEUE)[0][0]
        within.rows(_LINK)
        within.rows(_HURRY)
        return int(made or 0)

    def alone(within: Transaction) -> int:
        free = within.rows(f"SELECT pg_try_advisory_xact_lock({EXCLUSIVE})")[0][0]
        return work(within) if free else 0

    database = ledger.database
    if wait:
        return ledger.patient(lambda: database.exclusive(work))
    return ledger.patient(lambda: database.run(alone, writes=True))


# The worker


class TryLater(Exception):
    """The job is to begin again at this time."""

    def __init__(self, at: float) -> None:
        super().__init__("the job begins again later")
        self.at = at


class LaterStrategy(procrastinate.BaseRetryStrategy):
    """Again when the job's own words say so, and at once after a worker was stopped."""

    def get_retry_decision(
        self, *, exception: BaseException, job: jobs.Job
    ) -> procrastinate.RetryDecision | None:
        del job
        if not isinstance(exception, TryLater):
            return procrastinate.RetryDecision(retry_at=AT_ONCE)
        when = datetime.datetime.fromtimestamp(exception.at, datetime.UTC)
        return procrastinate.RetryDecision(retry_at=when)


_OWN = (
    "SELECT id FROM procrastinate_jobs WHERE id = %(job_id)s AND status = 'doing'"
    " AND worker_id IS NOT DISTINCT FROM %(worker)s FOR UPDATE"
)


class OwnedJobs(manager.JobManager):
    """The engine's statements about a job, for whoever still has it."""

    async def finish_job(self, job: jobs.Job, status: jobs.Status, delete_job: bool) -> None:
        done = "SELECT procrastinate_finish_job_v1(id, %(status)s, %(delete)s) FROM own"
        await self._own(job, done, status=status.value, delete=delete_job)

    async def retry_job(
        self,
        job: jobs.Job,
        retry_at: datetime.datetime | None = None,
        priority: int | None = None,
        queue: str | None = None,
        lock: str | None = None,
    ) -> None:
        del priority, queue, lock
        again = "SELECT procrastinate_retry_job_v2(id, %(at)s, NULL, NULL, NULL) FROM own"
        await self._own(job, again, at=retry_at)

    async def _own(self, job: jobs.Job, then: str, **values: Any) -> None:
        query: Any = f"WITH own AS ({_OWN}) {then}"
        given = {"job_id": job.id, "worker": job.worker_id, **values}
        if not await self.connector.execute_query_all_async(query=query, **given):
            _logger.warning("job %s is another worker's by now", job.id)


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How a worker works."""

    workers: int = 4
    tenants: tuple[str, ...] = ()
    lease: float = LEASE
    until_done: bool = False  # end when no job is open
    poll: float = 5.0


async def _commit_at_once(connection: Any) -> None:
    await connection.set_autocommit(True)


class FleetWorker:
    """One process of a fleet: takes jobs until it is told to stop."""

    def __init__(self, url: str, shop: Workshop, options: WorkerOptions) -> None:
        self._url = seeing(url, options.tenants)
        self._shop = shop
        self._options = options
        self._ledger = shop.ledger
        self._app = self._made()
        self._worker: Worker | None = None
        self._done = False

    def _made(self) -> procrastinate.App:
        connector = procrastinate.PsycopgConnector(
            conninfo=self._url,
            configure=_commit_at_once,
            min_size=1,
            max_size=4,
            timeout=10,
            reconnect_timeout=5,
        )
        app = procrastinate.App(connector=connector)
        app.job_manager = OwnedJobs(connector)

        @app.task(name=TASK, retry=LaterStrategy())
        async def reverie(tenant: str, key: str) -> None:  # pyright: ignore[reportUnusedFunction]
            await self._job(tenant, key)

        return app

    async def run(self) -> None:
        """Work until stopped, or until no job is open."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch)
            while not self._done:
                await self._survived(self._serve)
                if not self._done:
                    await anyio.sleep(min(2.0, self._options.poll))
            group.cancel_scope.cancel()

    def stop(self) -> None:
        """End when the jobs under way have ended."""
        self._done = True
        if self._worker is not None:
            self._worker.stop()

    async def _serve(self) -> None:
        """Work as one worker of the engine, until it stops or the database goes away."""
        lease = self._options.lease
        async with self._app.open_async():
            self._worker = Worker(
                self._app,
                queues=await to_thread.run_sync(self._queues),
                name=worker_name(),
                concurrency=self._options.workers,
                fetch_job_polling_interval=self._options.poll,
                update_heartbeat_interval=lease / 4,
                stalled_worker_timeout=lease,
                install_signal_handlers=False,
                delete_jobs="successful",  # the ledger keeps what is known of a job
            )
            await self._worker.run()

    def _queues(self) -> list[str]:
        """The queues of the tenants served here that are not paused."""
        known, host = self._ledger.tenants(), socket.gethostname()
        chosen = self._options.tenants or tuple(known)
        names = [one for one in chosen if not known.get(one, {}).get("paused")]
        return [queue for one in names for queue in (one, f"{one}@{host}")]

    async def _job(self, tenant: str, key: str) -> None:
        begin = self._ledger.begin
        taken: TakenJob | None = await to_thread.run_sync(begin, tenant, key, worker_name())
        if taken is None:
            return  # over, or cancelled, since it was queued
        end = await self._shop.work(taken)
        if end is not None and end.state == "queued":
            raise TryLater(await to_thread.run_sync(self._ledger.now) + end.wait)

    # Beside the jobs

    async def _watch(self) -> None:
        """Look after queues, jobs of workers that are gone, and the end."""
        while not self._done:
            await self._survived(self._look)
            await anyio.sleep(min(self._options.poll, self._options.lease / 4))

    async def _look(self) -> None:
        if self._worker is not None:
            self._worker.queues = await to_thread.run_sync(self._queues)
        await self._reap()
        if self._options.until_done:
            left = await to_thread.run_sync(self._ledger.open_jobs)
            if not left:
                self.stop()

    async def _reap(self) -> None:
        """Give jobs of workers that are gone to others, now and then; who asks first does. No lock
        is held or waited for meanwhile: whoever is stopped with one would hold up everybody."""
        every = self._options.lease / 2
        if not self._is_open() or not await to_thread.run_sync(self._ledger.watch_is_due, every):
            return
        found = await self._app.job_manager.get_stalled_jobs(
            seconds_since_heartbeat=self._options.lease
        )
        for job in found:
            await self._app.job_manager.retry_job(job, AT_ONCE)
        await to_thread.run_sync(partial(enqueue, self._ledger, wait=False))

    def _is_open(self) -> bool:
        connector: Any = self._app.connector
        try:
            return bool(connector.pool)
        except exceptions.AppNotOpen:
            return False

    async def _survived(self, work: Callable[[], Awaitable[None]]) -> None:
        """Work that ends where the database goes away, and is begun again later."""
        import psycopg

        away = (*_AWAY, psycopg.OperationalError, psycopg.InterfaceError)
        try:
            await work()
        except away as error:
            _warn(error)
        except BaseExceptionGroup as many:
            gone, rest = many.split(away)
            if rest is not None:
                raise rest from None
            _warn(gone)


def _warn(error: BaseException | None) -> None:
    why = error.__cause__ if error is not None and error.__cause__ else error
    _logger.warning("the database did not answer as it should: %r", why)
