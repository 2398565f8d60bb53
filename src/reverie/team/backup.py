"""A team server's whole state as one file of JSON lines, for either kind of database.

The first line says what it is; then a line for each row, table by table, read in one transaction.
A backup holds what the team wrote, and of tokens only digests: it is written for its owner alone.
A backup of an older version fits too: steps only add tables. Restoring needs an empty database,
and draws every repository's word anew, so that no tag which was given after the backup can be
taken for one of the restored state.
"""

from __future__ import annotations

import json
import os
import secrets as chance
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from reverie.errors import InvalidInput
from reverie.team.database import STEPS, TABLES, Database, SqlValue, Transaction

KIND = "reverie team backup"
_COLUMNS = {
    "repositories": "org, repo, nonce, version, entries, bytes",
    "entries": "org, repo, key, folded, version, sha256, size",
    "versions": "org, repo, key, version, sha256, content, author, token, at",
    "tokens": "id, digest, org, repo, author, writes, created, expires, revoked, level, refilled",
    "audit": "id, at, org, repo, token, action, detail",
    "refusals": "org, repo, token, status, hour, times, begun, latest",
}


def write_backup(database: Database, path: Path) -> int:
    """Write everything to a new file; how many rows."""

    def write_rows(within: Transaction) -> int:
        count = 0
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(json.dumps({"kind": KIND, "steps": len(STEPS)}) + "\n")
            for table in TABLES:
                for row in within.rows(f"SELECT {_COLUMNS[table]} FROM {table}"):
                    file.write(json.dumps([table, *row], ensure_ascii=False) + "\n")
                    count += 1
            file.write(json.dumps({"rows": count}) + "\n")
            file.flush()
            os.fsync(file.fileno())
        return count

    try:
        return database.exclusive(write_rows)
    except OSError as error:
        raise InvalidInput(
            f"The backup cannot be written: {error.strerror}",
            where=str(path),
            do="Name a file that is not there yet",
        ) from error


def read_backup(database: Database, path: Path) -> int:
    """Fill an empty database; all of the file or nothing of it."""

    def fill_tables(within: Transaction) -> int:
        if any(within.rows(f"SELECT 1 FROM {table} LIMIT 1") for table in TABLES):
            raise InvalidInput("The database is not empty", do="Name a new one with --database")
        count = 0
        for table, values in _rows(path):
            marks = ", ".join("?" * len(values))
            within.rows(
                f"INSERT INTO {table} ({_COLUMNS[table]}) VALUES ({marks})",
                _with_new_nonce(table, values),
            )
            count += 1
        return count

    return database.exclusive(fill_tables)


def _with_new_nonce(table: str, values: list[SqlValue]) -> list[SqlValue]:
    return [*values[:2], chance.token_hex(6), *values[3:]] if table == "repositories" else values


def _rows(path: Path) -> Iterator[tuple[str, list[SqlValue]]]:
    bad = InvalidInput("This is not a whole backup", where=str(path), do="Take another one")
    count, ended = 0, False
    with path.open(encoding="utf-8") as file:
        try:
            head = json.loads(file.readline())
            if head.get("kind") != KIND or not 0 < head.get("steps", 0) <= len(STEPS):
                raise bad
            for line in file:
                row: object = json.loads(line)
                if isinstance(row, dict):
                    ended = cast("dict[str, object]", row).get("rows") == count
                    break
                table, *values = cast("list[SqlValue]", row)
                if table not in _COLUMNS or len(values) != _COLUMNS[str(table)].count(",") + 1:
                    raise bad
                count += 1
                yield str(table), values
        except (ValueError, AttributeError, TypeError):
            raise bad from None
    if not ended:
        raise bad
