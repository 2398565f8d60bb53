"""The tables of a team server, as numbered steps that each database takes once.

A step is never changed once it was released; what is new is another step. Two processes that
start at once take turns. A database with steps that this version does not know is refused: a
newer server wrote it.
"""

from __future__ import annotations

from reverie.errors import InvalidInput
from reverie.team.database import Database, Transaction

STEPS: tuple[tuple[str, ...], ...] = (
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


def migrate(database: Database) -> int:
    """Take the steps that are missing; how many there are now."""
    return database.exclusive(_migrated)


def _migrated(within: Transaction) -> int:
    within.rows("CREATE TABLE IF NOT EXISTS migrations (number BIGINT PRIMARY KEY)")
    known = len(within.rows("SELECT number FROM migrations"))
    if known > len(STEPS):
        raise InvalidInput(
            f"The database has {known} steps, this version knows {len(STEPS)}",
            do="Use the version of Reverie that wrote it, or a newer one",
        )
    for number, step in enumerate(STEPS[known:], known + 1):
        for statement in step:
            within.rows(statement)
        within.rows("INSERT INTO migrations (number) VALUES (?)", (number,))
    return len(STEPS)
