"""SQLite or PostgreSQL, and the migrations.

The database behind a team server: SQLite for one machine, PostgreSQL past it.

Statements are plain SQL that both understand, with `?` where a value goes. A read is one of them; a
write is a transaction that commits as a whole or not at all. Connections are made when they are
needed, used by one thread at a time and given back. What a statement means is the store's
business; who waits for it is a worker thread's, never the event loop's.

A database that cannot be reached raises `DatabaseAway`: the request fails, and the next one tries
again with a fresh connection. A transaction that collided with another one is run once more.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from reverie.errors import InvalidInput, ReverieError
from reverie.providers.connection import extra
from reverie.store.fs import flush_folder, make_folder
from reverie.text.format import plural

if TYPE_CHECKING:
    from psycopg import Connection

SqlValue = str | int | float | bytes | None
Row = tuple[SqlValue, ...]
T = TypeVar("T")

EXCLUSIVE = 7259311
"""The advisory lock of what runs alone."""
_TRIES = 5
_BUSY_MS = 10_000
_POOL = 16
_WAIT = 10.0


class DatabaseAway(ReverieError, code="database_away"):
    """The database does not answer, or no longer."""


class Transaction(Protocol):
    """What may be asked within one transaction."""

    def rows(self, sql: str, values: Sequence[SqlValue] = ()) -> list[Row]:
        """Run a statement, and give its rows."""
        ...

    def many(self, sql: str, values: Sequence[Sequence[SqlValue]]) -> None:
        """Run a statement once for each row of values."""
        ...


class Database(Protocol):
    """A database of either kind."""

    kind: str

    def run(self, body: Callable[[Transaction], T], *, writes: bool = False) -> T:
        """Run a body: one statement that reads, or a transaction, which is run again where it
        collided with another."""
        ...

    def write(self, sql: str, values: Sequence[SqlValue] = ()) -> list[Row]:
        """Run one statement that commits by itself: a process that is stopped, at whatever point,
        leaves no transaction open that others wait for."""
        ...

    def exclusive(self, body: Callable[[Transaction], T]) -> T:
        """The same, while no other process of ours runs one of these."""
        ...

    def close(self) -> None: ...


def open_database(url: str) -> Database:
    """`sqlite:///path`, a path, or `postgresql://…`."""
    if url.startswith(("postgresql://", "postgres://")):
        return Postgres(url)
    if url.startswith("sqlite:///"):
        url = url.removeprefix("sqlite:///")
    elif "://" in url:
        raise InvalidInput(
            "This is not a database that can be used",
            where=url.split("://")[0] + "://…",
            do="Give a path, sqlite:///PATH or postgresql://USER@HOST/NAME",
        )
    return Sqlite(Path(url))


# SQLite


class Sqlite:
    """One file, its write-ahead log beside it; readers do not wait for the writer."""

    kind = "sqlite"

    def __init__(self, path: Path) -> None:
        self.path = path
        self._free: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._closed = False
        try:
            make_folder(path.parent)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            flush_folder(path.parent)
        except OSError as error:
            raise InvalidInput(
                f"The database cannot be opened: {error.strerror}",
                where=str(path),
                do="Give a path in a folder that you may write to",
            ) from error

    def run(self, body: Callable[[Transaction], T], *, writes: bool = False) -> T:
        with self._connection() as connection:
            return self._once(connection, body, "BEGIN IMMEDIATE" if writes else "BEGIN")

    def write(self, sql: str, values: Sequence[SqlValue] = ()) -> list[Row]:
        with self._connection() as connection:
            return _SqliteTransaction(connection).rows(sql, values)

    def exclusive(self, body: Callable[[Transaction], T]) -> T:
        with self._connection() as connection:
            return self._once(connection, body, "BEGIN EXCLUSIVE")

    def close(self) -> None:
        with self._lock:
            self._closed = True
            free, self._free = self._free, []
        for one in free:
            one.close()

    def _once(
        self, connection: sqlite3.Connection, body: Callable[[Transaction], T], begin: str
    ) -> T:
        connection.execute(begin)
        made = body(_SqliteTransaction(connection))
        connection.execute("COMMIT")
        return made  # what fails before that closes the connection, which takes all of it back

    @contextlib.contextmanager
    def _connection(self) -> Generator[sqlite3.Connection]:
        try:
            connection = self._take()
            try:
                yield connection
            except BaseException:
                connection.close()
                raise
            self._give(connection)
        except sqlite3.OperationalError as error:
            raise DatabaseAway(
                f"The database does not answer: {error}",
                where=str(self.path),
                do="See that the disk has room and that no other program holds the file",
            ) from error

    def _take(self) -> sqlite3.Connection:
        with self._lock:
            if self._free:
                return self._free.pop()
        made = sqlite3.connect(
            self.path, isolation_level=None, check_same_thread=False, timeout=_BUSY_MS / 1000
        )
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            made.execute(f"PRAGMA {pragma}")
        return made

    def _give(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            if not self._closed and len(self._free) < _POOL:
                self._free.append(connection)
                return
        connection.close()


class _SqliteTransaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, values: Sequence[SqlValue] = ()) -> list[Row]:
        return self._connection.execute(sql, tuple(values)).fetchall()

    def many(self, sql: str, values: Sequence[Sequence[SqlValue]]) -> None:
        self._connection.executemany(sql, values)


# PostgreSQL


class Postgres:
    """Any number of server processes on one database."""

    kind = "postgresql"

    def __init__(self, url: str) -> None:
        with extra("team", "PostgreSQL cannot be reached"):
            from psycopg_pool import ConnectionPool
        logging.getLogger("psycopg").setLevel(logging.CRITICAL)  # DatabaseAway says it once
        self._pool: ConnectionPool[Connection[Row]] = ConnectionPool(
            url,
            kwargs={"autocommit": True},
            min_size=1,
            max_size=_POOL,
            timeout=_WAIT,
            max_idle=300,
            reconnect_timeout=_WAIT,
            open=True,
            name="reverie-team",
        )

    def run(self, body: Callable[[Transaction], T], *, writes: bool = False) -> T:
        return self._run_with_retry(body, writes=writes, whole=writes)

    def write(self, sql: str, values: Sequence[SqlValue] = ()) -> list[Row]:
        return self._run_with_retry(
            lambda within: within.rows(sql, values), writes=True, whole=False
        )

    def exclusive(self, body: Callable[[Transaction], T]) -> T:
        def alone(within: Transaction) -> T:
            within.rows(f"SELECT pg_advisory_xact_lock({EXCLUSIVE})")
            return body(within)

        return self._run_with_retry(alone, writes=True, whole=True)

    def close(self) -> None:
        self._pool.close()

    def _run_with_retry(self, body: Callable[[Transaction], T], *, writes: bool, whole: bool) -> T:
        """Run a body, as a `whole` or as its one statement; what collided is run again, and a read
        once more where its connection was dead. A write is not: it may have been taken."""
        import psycopg

        for attempt in range(_TRIES):
            try:
                with self._connection() as connection:
                    if not whole:  # one statement sees one state without a transaction
                        return body(_PostgresTransaction(connection))
                    with connection.transaction():
                        return body(_PostgresTransaction(connection))
            except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected):
                if attempt + 1 == _TRIES:
                    raise
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                self._pool.check()  # a database that came back left others dead too
                if attempt or writes:
                    raise DatabaseAway(
                        f"The database does not answer: {str(error).splitlines()[0][:200]}",
                        do="See that PostgreSQL runs and can be reached",
                    ) from error
        raise AssertionError("unreachable")

    @contextlib.contextmanager
    def _connection(self) -> Generator[Connection[Row]]:
        with self._pool.connection() as connection:
            yield connection


class _PostgresTransaction:
    def __init__(self, connection: Connection[Row]) -> None:
        self._connection = connection

    def rows(self, sql: str, values: Sequence[SqlValue] = ()) -> list[Row]:
        done = self._connection.execute(_translate_sql(sql), tuple(values))
        return done.fetchall() if done.description else []

    def many(self, sql: str, values: Sequence[Sequence[SqlValue]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_translate_sql(sql), values)


_known: dict[str, bytes] = {}


def _translate_sql(sql: str) -> bytes:
    """The same statement with psycopg's marks; no statement of ours has a ? or % in a text."""
    found = _known.get(sql)
    if found is None:
        found = _known[sql] = sql.replace("?", "%s").encode()
    return found


# --- The tables of a team server, as numbered steps that each database takes once.
#
# A step is never changed once it was released; what is new is another step. Two processes that
# start at once take turns. A database with steps that this version does not know is refused: a
# newer server wrote it.


Steps: TypeAlias = tuple[tuple[str, ...], ...]
STEPS: Steps = (
    (
        """CREATE TABLE repositories (
            org TEXT NOT NULL,
            repo TEXT NOT NULL,
            nonce TEXT NOT NULL,
            version BIGINT NOT NULL,
            entries BIGINT NOT NULL,
            bytes BIGINT NOT NULL,
            PRIMARY KEY (org, repo))""",
        """CREATE TABLE entries (
            org TEXT NOT NULL,
            repo TEXT NOT NULL,
            key TEXT NOT NULL,
            folded TEXT NOT NULL,
            version BIGINT NOT NULL,
            sha256 TEXT NOT NULL,
            size BIGINT NOT NULL,
            PRIMARY KEY (org, repo, key))""",
        "CREATE UNIQUE INDEX entries_folded ON entries (org, repo, folded)",
        """CREATE TABLE versions (
            org TEXT NOT NULL,
            repo TEXT NOT NULL,
            key TEXT NOT NULL,
            version BIGINT NOT NULL,
            sha256 TEXT NOT NULL,
            content TEXT,
            author TEXT NOT NULL,
            token TEXT NOT NULL,
            at DOUBLE PRECISION NOT NULL,
            PRIMARY KEY (org, repo, key, version))""",
        "CREATE INDEX versions_newest ON versions (org, repo, version)",
        """CREATE TABLE tokens (
            id TEXT PRIMARY KEY,
            digest TEXT NOT NULL,
            org TEXT NOT NULL,
            repo TEXT NOT NULL,
            author TEXT NOT NULL,
            writes BIGINT NOT NULL,
            created DOUBLE PRECISION NOT NULL,
            expires DOUBLE PRECISION,
            revoked DOUBLE PRECISION,
            level DOUBLE PRECISION NOT NULL,
            refilled DOUBLE PRECISION NOT NULL)""",
        """CREATE TABLE audit (
            id TEXT PRIMARY KEY,
            at DOUBLE PRECISION NOT NULL,
            org TEXT NOT NULL,
            repo TEXT NOT NULL,
            token TEXT NOT NULL,
            action TEXT NOT NULL,
            detail TEXT NOT NULL)""",
        "CREATE INDEX audit_newest ON audit (org, repo, at)",
    ),
    (
        """CREATE TABLE refusals (
            org TEXT NOT NULL,
            repo TEXT NOT NULL,
            token TEXT NOT NULL,
            status BIGINT NOT NULL,
            hour BIGINT NOT NULL,
            times BIGINT NOT NULL,
            begun DOUBLE PRECISION NOT NULL,
            latest DOUBLE PRECISION NOT NULL,
            PRIMARY KEY (org, repo, token, status, hour))""",
        "CREATE INDEX refusals_newest ON refusals (org, latest)",
    ),
)
TABLES = ("repositories", "entries", "versions", "tokens", "audit", "refusals")


def migrate(database: Database, steps: Steps = STEPS, table: str = "migrations") -> int:
    """Take the steps that are missing; how many there are now. `table` counts them."""

    def run_steps(within: Transaction) -> int:
        within.rows(f"CREATE TABLE IF NOT EXISTS {table} (number BIGINT PRIMARY KEY)")
        known = len(within.rows(f"SELECT number FROM {table}"))
        refuse_newer(known, steps)
        for number, step in enumerate(steps[known:], known + 1):
            for statement in step:
                within.rows(statement)
            within.rows(f"INSERT INTO {table} (number) VALUES (?)", (number,))
        return len(steps)

    return database.exclusive(run_steps)


def refuse_newer(known: int, steps: Steps) -> None:
    """A database that a later version wrote is not touched."""
    if known > len(steps):
        raise InvalidInput(
            f"The database has {plural(known, 'step')}, this version knows {len(steps)}",
            do="Use the version of Reverie that wrote it, or a newer one",
        )
