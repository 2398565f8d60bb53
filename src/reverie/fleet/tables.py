"""Tables, and plans entered as rows.

The fleet's own tables, as numbered steps for SQLite and PostgreSQL alike.

They hold ids, hashes, counts and states. No word of a memory, no file name and no path inside one
is ever part of a row: text stays in the folder or with the team's server.

On PostgreSQL every table with a tenant has row-level security: a connection sees the tenants that
its setting `reverie.tenants` names, and without one it sees nothing. Workers have a role of their
own, which may change rows and take away those of jobs that are over for long, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import quote

from reverie.errors import NotAvailable
from reverie.fleet.plan import Job, checked_tenant
from reverie.team.database import Database, SqlValue, Steps, Transaction, migrate, refuse_newer
from reverie.text.format import plural

MIGRATIONS = "fleet_migrations"
WORKER_ROLE = "reverie_worker"
ALL = "*"
IDLE_SECONDS = 15
KEPT_DAYS = 30
"""How long a job is kept that is over, with the key by which it is not planned again."""
AT_ONCE = 500
_KEPT = KEPT_DAYS * 86_400

STEPS: Steps = (
    (
        """CREATE TABLE fleet_meta (
            source TEXT PRIMARY KEY,
            fence BIGINT NOT NULL,
            watched DOUBLE PRECISION NOT NULL)""",
        """CREATE TABLE fleet_tenants (
            tenant TEXT PRIMARY KEY,
            paused BIGINT NOT NULL,
            tokens DOUBLE PRECISION,
            calls BIGINT)""",
        """CREATE TABLE fleet_jobs (
            tenant TEXT NOT NULL,
            key TEXT NOT NULL,
            kind TEXT NOT NULL,
            root TEXT NOT NULL,
            memory TEXT NOT NULL,
            night TEXT NOT NULL,
            about TEXT NOT NULL,
            size BIGINT NOT NULL,
            host TEXT NOT NULL,
            due BIGINT NOT NULL,
            rank BIGINT NOT NULL,
            state TEXT NOT NULL,
            code TEXT NOT NULL,
            tries BIGINT NOT NULL,
            fence BIGINT NOT NULL,
            worker TEXT NOT NULL,
            after DOUBLE PRECISION NOT NULL,
            created DOUBLE PRECISION NOT NULL,
            started DOUBLE PRECISION NOT NULL,
            ended DOUBLE PRECISION NOT NULL,
            phase TEXT NOT NULL,
            rounds BIGINT NOT NULL,
            files BIGINT NOT NULL,
            requests BIGINT NOT NULL,
            cost DOUBLE PRECISION NOT NULL,
            ident TEXT NOT NULL,
            cancel BIGINT NOT NULL,
            engine BIGINT,
            PRIMARY KEY (tenant, key))""",
        "CREATE INDEX fleet_jobs_queued ON fleet_jobs (rank) WHERE state = 'queued'",
        "CREATE INDEX fleet_jobs_running ON fleet_jobs (memory) WHERE state = 'running'",
        "CREATE INDEX fleet_jobs_states ON fleet_jobs (tenant, state)",
        """CREATE TABLE fleet_spent (
            tenant TEXT NOT NULL,
            day TEXT NOT NULL,
            tokens DOUBLE PRECISION NOT NULL,
            calls BIGINT NOT NULL,
            PRIMARY KEY (tenant, day))""",
        """CREATE TABLE fleet_limits (
            name TEXT PRIMARY KEY,
            requests DOUBLE PRECISION NOT NULL,
            input DOUBLE PRECISION NOT NULL,
            output DOUBLE PRECISION NOT NULL)""",
        """CREATE TABLE fleet_rates (
            name TEXT PRIMARY KEY,
            requests DOUBLE PRECISION NOT NULL,
            input DOUBLE PRECISION NOT NULL,
            output DOUBLE PRECISION NOT NULL,
            blocked DOUBLE PRECISION NOT NULL)""",
    ),
    (
        "CREATE INDEX fleet_jobs_open ON fleet_jobs (after) WHERE state IN ('queued', 'running')",
        """CREATE INDEX fleet_jobs_over ON fleet_jobs (ended)
            WHERE state NOT IN ('queued', 'running')""",
    ),
)
TABLES = ("meta", "tenants", "jobs", "spent", "limits", "rates", "migrations")
GUARDED = ("fleet_tenants", "fleet_jobs", "fleet_spent")
_SEEN = "current_setting('reverie.tenants', true)"
_OVER = (
    "state NOT IN ('queued', 'running') AND GREATEST(ended, created)"
    f" < extract(epoch FROM clock_timestamp()) - {_KEPT}"
)


def make_tables(database: Database, source: str) -> None:
    """Make what is missing; `source` names this count of fences for good."""
    migrate(database, STEPS, MIGRATIONS)

    def insert_source(within: Transaction) -> None:
        if not within.rows("SELECT source FROM fleet_meta"):
            within.rows(
                "INSERT INTO fleet_meta (source, fence, watched) VALUES (?, 0, 0)", (source,)
            )

    database.exclusive(insert_source)


def check_tables(database: Database) -> str:
    """The name of this count of fences; a database of a later or earlier version is refused."""

    def look(within: Transaction) -> str:
        known = int(within.rows(f"SELECT COUNT(*) FROM {MIGRATIONS}")[0][0] or 0)
        refuse_newer(known, STEPS)
        if known < len(STEPS):
            raise NotAvailable(
                f"The fleet's tables have {plural(known, 'step')}, this version needs {len(STEPS)}",
                do="Run `reverie fleet init` once more, as the owner of the database",
            )
        return str(within.rows("SELECT source FROM fleet_meta")[0][0])

    return database.run(look, writes=True)


def forget_over(database: Database, now: float) -> int:
    """Take the oldest jobs away that are over, and were planned, before the days that are kept;
    one statement, and no more rows than others can wait for."""
    since = now - _KEPT
    rows = database.write(
        "DELETE FROM fleet_jobs WHERE state NOT IN ('queued', 'running')"  # nor queued just now
        " AND (tenant, key) IN (SELECT tenant, key FROM fleet_jobs"
        " WHERE state NOT IN ('queued', 'running') AND ended < ? AND created < ?"
        " ORDER BY ended LIMIT ?) RETURNING 1",
        (since, since, AT_ONCE),
    )
    return len(rows)


def guard_tables(within: Transaction) -> None:
    """Row-level security, and a role for workers that may not change a table's shape."""
    if not within.rows("SELECT 1 FROM pg_roles WHERE rolname = ?", (WORKER_ROLE,)):
        within.rows(f"CREATE ROLE {WORKER_ROLE} NOLOGIN")
    for table, column in (*((one, "tenant") for one in GUARDED), ("procrastinate_jobs", "")):
        seen = f"({column or _TENANT_OF_QUEUE} = ANY (string_to_array({_SEEN}, ',')))"
        within.rows(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        within.rows(f"DROP POLICY IF EXISTS reverie_tenants ON {table}")
        within.rows(f"CREATE POLICY reverie_tenants ON {table} USING ({_SEEN} = '{ALL}' OR {seen})")
    tables = ", ".join(f"fleet_{one}" for one in TABLES)
    within.rows(f"GRANT SELECT, INSERT, UPDATE ON {tables} TO {WORKER_ROLE}")
    within.rows("DROP POLICY IF EXISTS reverie_over ON fleet_jobs")
    within.rows(
        f"CREATE POLICY reverie_over ON fleet_jobs AS RESTRICTIVE FOR DELETE USING ({_OVER})"
    )
    within.rows(f"GRANT DELETE ON fleet_jobs TO {WORKER_ROLE}")
    engine = "procrastinate_jobs, procrastinate_events, procrastinate_workers"
    within.rows(
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON {engine}, procrastinate_periodic_defers"
        f" TO {WORKER_ROLE}"
    )
    within.rows(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {WORKER_ROLE}")
    within.rows(f"GRANT USAGE ON SCHEMA public TO {WORKER_ROLE}")
    within.rows("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    # The engine asks for earlier jobs of the same lock at every claim.
    within.rows(
        "CREATE INDEX IF NOT EXISTS fleet_engine_locks ON procrastinate_jobs (lock)"
        " WHERE status IN ('todo', 'doing')"
    )


def make_login(within: Transaction, name: str) -> None:
    """A login that is a worker and nothing more."""
    known = checked_tenant(name).replace("-", "_").replace(".", "_")
    if not within.rows("SELECT 1 FROM pg_roles WHERE rolname = ?", (known,)):
        within.rows(f'CREATE ROLE "{known}" LOGIN')
    within.rows(f'GRANT {WORKER_ROLE} TO "{known}"')


_TENANT_OF_QUEUE = "split_part(queue_name, '@', 1)"


def seeing(url: str, tenants: tuple[str, ...]) -> str:
    """The address of a database, for a connection that sees these tenants; none = all. A process
    that is stopped within a transaction loses it: others would wait for its locks."""
    option = quote(
        f"-c reverie.tenants={','.join(tenants) or ALL}"
        f" -c idle_in_transaction_session_timeout={IDLE_SECONDS}s"
    )
    return f"{url}{'&' if '?' in url else '?'}options={option}"


# --- A plan becomes rows of the ledger: what nobody planned before, in the order of its turn.
#
# Jobs are found by their names: a ledger with a long past is not gone through.


COLUMNS = "tenant, key, kind, root, night, about, size, host, due"
_CHUNK = 500


def take_in(within: Transaction, jobs: Sequence[Job], now: str) -> list[Job]:
    """Add the jobs that are new, and give them; `now` is the time as it stands in a statement."""
    known = known_states(within, jobs)
    new = [job for job in jobs if (job.tenant, job.key) not in known]
    ranks: dict[str, int] = {}
    for some in _chunks(new):
        _insert(within, some, ranks, now)
    return new


def known_states(within: Transaction, jobs: Sequence[Job]) -> dict[tuple[str, str], str]:
    """Where jobs stand, by tenant and key; those that nobody planned are left out."""
    found: dict[tuple[str, str], str] = {}
    for tenant in dict.fromkeys(job.tenant for job in jobs):
        for some in _chunks([job for job in jobs if job.tenant == tenant]):
            rows = within.rows(
                "SELECT key, state FROM fleet_jobs WHERE tenant = ?"
                f" AND key IN ({', '.join('?' for _ in some)})",
                (tenant, *(job.key for job in some)),
            )
            found |= {(tenant, str(key)): str(state) for key, state in rows}
    return found


def _chunks(jobs: Sequence[Job]) -> Iterator[Sequence[Job]]:
    return (jobs[begin : begin + _CHUNK] for begin in range(0, len(jobs), _CHUNK))


def _insert(within: Transaction, jobs: Sequence[Job], ranks: dict[str, int], now: str) -> None:
    """Add jobs, each behind its tenant's last."""
    values: list[SqlValue] = []
    for job in jobs:
        if job.tenant not in ranks:
            ranks[job.tenant] = _rank(within, job.tenant)
        ranks[job.tenant] += 1
        values += [job.tenant, job.key, job.kind, job.root, job.night, job.about, job.size]
        values += [job.host, int(job.due), job.memory, ranks[job.tenant]]
    row = (
        "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'queued', '', 0, 0, '',"
        f" 0, {now}, 0, 0, '', 0, 0, 0, 0, '', 0)"
    )
    within.rows(
        f"INSERT INTO fleet_jobs ({COLUMNS}, memory, rank, state, code, tries, fence,"
        " worker, after, created, started, ended, phase, rounds, files, requests, cost,"
        f" ident, cancel) VALUES {', '.join(row for _ in jobs)}",
        values,
    )


def _rank(within: Transaction, tenant: str) -> int:
    """Where a tenant's next job stands: behind its own, and not before what everybody else has
    reached. So tenants take turns, however many jobs one of them has."""
    within.rows(
        "INSERT INTO fleet_tenants (tenant, paused) VALUES (?, 0) ON CONFLICT DO NOTHING",
        (tenant,),
    )
    reached = within.rows("SELECT MIN(rank) FROM fleet_jobs WHERE state = 'queued'")[0][0]
    own = within.rows(
        "SELECT MAX(rank) FROM fleet_jobs WHERE tenant = ? AND state = 'queued'", (tenant,)
    )[0][0]
    return max(int(own or 0), int(reached or 1) - 1)
