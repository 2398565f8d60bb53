"""The tables of a team server, as numbered steps that each database takes once.

A step is never changed once it was released; what is new is another step. Two processes that
start at once take turns. A database with steps that this version does not know is refused: a
newer server wrote it.
"""

from __future__ import annotations

from typing import TypeAlias

from reverie.errors import InvalidInput
from reverie.team.database import Database, Transaction
from reverie.text.format import plural

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

    def migrated(within: Transaction) -> int:
        within.rows(f"CREATE TABLE IF NOT EXISTS {table} (number BIGINT PRIMARY KEY)")
        known = len(within.rows(f"SELECT number FROM {table}"))
        refuse_newer(known, steps)
        for number, step in enumerate(steps[known:], known + 1):
            for statement in step:
                within.rows(statement)
            within.rows(f"INSERT INTO {table} (number) VALUES (?)", (number,))
        return len(steps)

    return database.exclusive(migrated)


def refuse_newer(known: int, steps: Steps) -> None:
    """A database that a later version wrote is not touched."""
    if known > len(steps):
        raise InvalidInput(
            f"The database has {plural(known, 'step')}, this version knows {len(steps)}",
            do="Use the version of Reverie that wrote it, or a newer one",
        )
