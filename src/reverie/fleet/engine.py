"""The fleet's engine: procrastinate on PostgreSQL.

The engine hands jobs to workers, one memory at a time, and notices workers that are gone. It has
the jobs that may begin now and no others: what waits for a later time waits in the ledger, where it
is in no other job's way, and whoever watches hands it over when its time has come. The same way
comes back what is over for the engine and open in the ledger, for instance after a crash between
two statements. So a job that is open is either the engine's, or handed to it before long.

The engine is asked for more than its defaults, each time for a reason that a test shows:

- Its words for "finished" and "again" do not ask who says them: a worker that slept past its lease
  would end a job that another one has, or that it has itself by now. `OwnedJobs` says them only for
  the very try that has the job.
- A word that the database did not take is said again: a job would stay with a worker that is done
  with it, for as long as that worker lives.
- A worker that slept is struck off, and would get no job again. Here its next sign of life enters
  it anew.
- A worker that is told to stop gives no sign of life while its last jobs run. Here it does.
- It opens a transaction for every statement: a worker stopped within one would hold others up.
  Here each statement commits by itself.
- A worker stops for good when the database goes away; here it begins again.

A job of the engine carries a tenant and a key, and nothing else.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any

import anyio
import procrastinate
from anyio import to_thread
from procrastinate import exceptions, jobs, manager
from procrastinate.worker import Worker

from reverie.errors import InvalidInput
from reverie.fleet.ledger import FleetLedger
from reverie.fleet.plan import home_id, worker_name
from reverie.fleet.tables import guard_tables, make_login, seeing
from reverie.fleet.worker import WorkerContext
from reverie.light import dataclass
from reverie.team.database import EXCLUSIVE, Database, DatabaseAway, Transaction, open_database

TASK = "reverie"
LEASE = 60.0
"""Seconds without a sign of life after which a worker's jobs go to others."""
PATIENCE = 90.0
"""Seconds for which a database that does not answer is told how a job ended."""
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
    def has_tables(within: Transaction) -> bool:
        return within.rows("SELECT to_regclass('procrastinate_jobs')::text")[0][0] is not None

    if not database.run(has_tables):
        app = procrastinate.App(connector=procrastinate.SyncPsycopgConnector(conninfo=url))
        with app.open():
            app.schema_manager.apply_schema()


# Jobs of the ledger become jobs of the engine

_MISSING = (
    "FROM fleet_jobs j WHERE j.state IN ('queued', 'running') AND {due} AND NOT EXISTS"
    " (SELECT 1 FROM procrastinate_jobs p WHERE p.id = j.engine AND p.status IN ('todo', 'doing'))"
)
_ENQUEUE = (
    "SELECT cardinality(procrastinate_defer_jobs_v1(ARRAY(SELECT ROW("
    "CASE WHEN j.host = '' THEN j.tenant ELSE j.tenant || '@' || j.host END,"
    f" '{TASK}', -j.rank, j.memory, j.tenant || '/' || j.key,"
    " jsonb_build_object('tenant', j.tenant, 'key', j.key), NULL)::procrastinate_job_to_defer_v1"
    f" {_MISSING} AND NOT EXISTS (SELECT 1 FROM procrastinate_jobs q WHERE q.status = 'todo' AND"
    " q.queueing_lock = j.tenant || '/' || j.key) ORDER BY j.rank)))"
)
_LINK = (
    "UPDATE fleet_jobs SET engine = q.id FROM procrastinate_jobs q WHERE q.status = 'todo'"
    " AND q.queueing_lock = fleet_jobs.tenant || '/' || fleet_jobs.key"
    " AND fleet_jobs.state IN ('queued', 'running') AND fleet_jobs.engine IS DISTINCT FROM q.id"
)


def enqueue(ledger: FleetLedger, *, wait: bool = True) -> int:
    """Hand to the engine every open job that may begin and that it does not have; how many those
    were. Without `wait` it is left to whoever does it just now: that may be a process that was
    stopped."""

    def work(within: Transaction) -> int:
        made = within.rows(_ENQUEUE.format(due=ledger.due_sql))[0][0]
        within.rows(_LINK)
        return int(made or 0)

    def alone(within: Transaction) -> int:
        free = within.rows(f"SELECT pg_try_advisory_xact_lock({EXCLUSIVE})")[0][0]
        return work(within) if free else 0

    database = ledger.database
    if wait:
        return ledger.patient(lambda: database.exclusive(work))
    return ledger.patient(lambda: database.run(alone, writes=True))


# The worker


_OWN = (
    "SELECT id FROM procrastinate_jobs WHERE id = %(job_id)s AND status = 'doing'"
    " AND worker_id IS NOT DISTINCT FROM %(worker)s AND attempts = %(attempts)s FOR UPDATE"
)
_ALIVE = (
    "INSERT INTO procrastinate_workers (id) OVERRIDING SYSTEM VALUE VALUES (%(worker)s)"
    " ON CONFLICT (id) DO UPDATE SET last_heartbeat = now()"
)


class OwnedJobs(manager.JobManager):
    """The engine's statements about a job, for the try that still has it. `unheard` is called
    where the database would not hear how a job ended."""

    def __init__(
        self, connector: procrastinate.BaseConnector, unheard: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(connector)
        self._unheard = unheard

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> jobs.Job | None:
        """The next job. Whoever slept says first that it lives: the job would be taken from it."""
        await self.update_heartbeat(worker_id)
        try:
            return await super().fetch_job(queues, worker_id)
        except exceptions.UniqueViolation:  # a job of the same memory was taken in this moment
            return None

    async def update_heartbeat(self, worker_id: int) -> None:
        alive: Any = _ALIVE
        await self.connector.execute_query_async(query=alive, worker=worker_id)

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
        del retry_at, priority, queue, lock  # at once: what waits is not the engine's
        again = "SELECT procrastinate_retry_job_v2(id, NULL, NULL, NULL, NULL) FROM own"
        await self._own(job, again)

    async def _own(self, job: jobs.Job, then: str, **values: Any) -> None:
        """Say it until it was heard; heard twice it does nothing."""
        query: Any = f"WITH own AS ({_OWN}) {then}"
        given = {"job_id": job.id, "worker": job.worker_id, "attempts": job.attempts, **values}
        waited, pause = 0.0, 0.1
        while True:
            try:
                if not await self.connector.execute_query_all_async(query=query, **given):
                    _logger.warning("job %s is another worker's by now", job.id)
                return
            except exceptions.ConnectorException as error:
                if waited >= PATIENCE:
                    _warn(error)
                    self._unheard()
                    return
            await anyio.sleep(pause)
            waited, pause = waited + pause, min(2.0, pause * 2)


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How a worker works."""

    workers: int = 4
    tenants: tuple[str, ...] = ()
    lease: float = LEASE
    until_done: bool = False  # end when no job is open
    poll: float = 5.0


async def commit_at_once(connection: Any) -> None:
    await connection.set_autocommit(True)


class FleetWorker:
    """One process of a fleet: takes jobs until it is told to stop."""

    def __init__(self, url: str, shop: WorkerContext, options: WorkerOptions) -> None:
        self._url = seeing(url, options.tenants)
        self._shop = shop
        self._options = options
        self._ledger = shop.ledger
        self._home = home_id(shop.place.home)
        self._app = self._build_app()
        self._worker: Worker | None = None
        self._done = False

    def _build_app(self) -> procrastinate.App:
        connector = procrastinate.PsycopgConnector(
            conninfo=self._url,
            configure=commit_at_once,
            min_size=1,
            max_size=4,
            timeout=10,
            reconnect_timeout=5,
        )
        app = procrastinate.App(connector=connector)
        app.job_manager = OwnedJobs(connector, self._begin_anew)

        @app.task(name=TASK)
        async def reverie(tenant: str, key: str) -> None:  # pyright: ignore[reportUnusedFunction]
            await self._job(tenant, key)

        return app

    async def run(self) -> None:
        """Work until stopped, or until no job is open."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch)
            while not self._done:
                await self._run_until_away(self._serve)
                if not self._done:
                    await anyio.sleep(min(2.0, self._options.poll))
            group.cancel_scope.cancel()

    def stop(self) -> None:
        """End when the jobs under way have ended."""
        self._done = True
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Stop and be entered anew: jobs that the engine thinks this worker has go to others."""
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
                delete_jobs="always",  # the ledger keeps what is known of a job
            )
            if not self._done:  # told to stop before there was anybody to tell
                await self._worker.run()

    def _queues(self) -> list[str]:
        """The queues of the tenants served here that are not paused, and of this home in them."""
        known = self._ledger.tenants()
        chosen = self._options.tenants or tuple(known)
        names = [one for one in chosen if not known.get(one, {}).get("paused")]
        return [queue for one in names for queue in (one, f"{one}@{self._home}")]

    async def _job(self, tenant: str, key: str) -> None:
        begin = self._ledger.begin
        taken = await to_thread.run_sync(begin, tenant, key, worker_name())
        if taken is not None:  # else it is over or cancelled since it was queued, or waits
            await self._shop.work(taken)

    # Beside the jobs

    async def _watch(self) -> None:
        """Look after queues, jobs of workers that are gone, and the end; also while the last jobs
        of a worker run that was told to stop."""
        while True:
            await self._run_until_away(self._look)
            await anyio.sleep(min(self._options.poll, self._options.lease / 4))

    async def _look(self) -> None:
        if self._worker is not None:
            self._worker.queues = await to_thread.run_sync(self._queues)
            await self._show_life(self._worker.worker_id)
        await self._reap()
        if self._options.until_done:
            left = await to_thread.run_sync(self._ledger.open_jobs)
            if not left:
                self.stop()

    async def _show_life(self, worker_id: int | None) -> None:
        if worker_id is not None and self._is_open():
            await self._app.job_manager.update_heartbeat(worker_id)

    async def _reap(self) -> None:
        """Give jobs of workers that are gone to others, hand over what may begin by now, and let
        some of what is over for long leave. Who asks first does, for everybody; who sees some
        tenants alone does it for those. No lock is held or waited for meanwhile: whoever is
        stopped with one would hold up everybody."""
        if not self._is_open() or not await to_thread.run_sync(self._is_due):
            return
        found = await self._app.job_manager.get_stalled_jobs(
            seconds_since_heartbeat=self._options.lease
        )
        for job in found:
            await self._app.job_manager.retry_job(job)
        await to_thread.run_sync(partial(enqueue, self._ledger, wait=False))
        await to_thread.run_sync(self._ledger.forget)

    def _is_due(self) -> bool:
        every = self._options.lease / 2
        return bool(self._options.tenants) or self._ledger.watch_is_due(every)

    def _is_open(self) -> bool:
        connector: Any = self._app.connector
        try:
            return bool(connector.pool)
        except exceptions.AppNotOpen:
            return False

    async def _run_until_away(self, work: Callable[[], Awaitable[None]]) -> None:
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
