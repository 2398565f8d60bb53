"""A small database of what can be worked out again: behind lists that no file answers quickly.

It holds nothing that is not derived. Whoever finds it broken, of another version or gone makes it
anew; where it cannot be written it lives in memory. Every query is counted, and one thread at a
time uses it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path
from typing import Any

from reverie.store.recall.base import discard

PATIENCE = 5.0
VERSION = "4"
NAME = "page.sqlite3"
_SAFE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_SCHEMA = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE session (
    id TEXT PRIMARY KEY, stamp TEXT, title TEXT, at REAL, began REAL, size INTEGER,
    messages INTEGER, turns INTEGER, tokens INTEGER, faults INTEGER, error TEXT, program TEXT,
    model TEXT, requests INTEGER, uncached INTEGER, read INTEGER, written INTEGER,
    output INTEGER, hit_rate REAL, cost REAL, breaks INTEGER, compactions INTEGER,
    seals INTEGER, stored INTEGER, folded TEXT
) WITHOUT ROWID;
CREATE INDEX session_at ON session (at DESC, id);
CREATE TABLE timeline (id TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE saving (
    id TEXT, policy TEXT, stamp TEXT, naive REAL, cost REAL, saved REAL, requests INTEGER,
    back REAL, breaks INTEGER, lost INTEGER, facts INTEGER, facts_here INTEGER,
    summaries INTEGER, peak INTEGER, value TEXT, PRIMARY KEY (id, policy)
) WITHOUT ROWID;
CREATE INDEX saving_saved ON saving (policy, saved DESC, id);
CREATE INDEX saving_naive ON saving (policy, naive DESC, id);
CREATE TABLE recalled (
    file TEXT, at REAL, session TEXT, said TEXT, outcome TEXT, score REAL, cited INTEGER, why TEXT
);
CREATE INDEX recalled_file ON recalled (file, at DESC);
CREATE INDEX recalled_session ON recalled (session);
CREATE TABLE memory (
    rank INTEGER PRIMARY KEY, file TEXT UNIQUE, stamp TEXT, type TEXT, name TEXT,
    description TEXT, modified REAL, bytes INTEGER, trust TEXT, folded TEXT
);
CREATE INDEX memory_type ON memory (type);
CREATE INDEX memory_trust ON memory (trust);
CREATE VIRTUAL TABLE memory_text USING fts5(text, tokenize='trigram');
CREATE VIRTUAL TABLE memory_letters USING fts5vocab(memory_text, 'instance');
CREATE TABLE finding (
    rank INTEGER PRIMARY KEY, kind TEXT, file TEXT, line INTEGER, evidence TEXT, fixable INTEGER
);
CREATE INDEX finding_file ON finding (file)
"""


class Derived:
    """The database, shared by the threads of one process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.queries = 0
        self._kept: dict[Any, Any] = {}
        self._lock = threading.RLock()
        self._base, self._on_disk = _opened(path)

    def close(self) -> None:
        with self._lock:
            self._base.close()

    def rows(self, query: str, given: Sequence[Any] = ()) -> list[sqlite3.Row]:
        with self._lock:
            self.queries += 1
            try:
                return self._base.execute(query, given).fetchall()
            except sqlite3.DatabaseError:
                self._again()
                return self._base.execute(query, given).fetchall()

    def one(self, query: str, given: Sequence[Any] = ()) -> sqlite3.Row:
        """The first row of an answer that always has one."""
        return self.rows(query, given)[0]

    def kept(self, name: Any, make: Callable[[], Any]) -> Any:
        """What `make` gives, asked for once between two changes."""
        with self._lock:
            if name not in self._kept:
                self._kept[name] = make()
            return self._kept[name]

    @contextlib.contextmanager
    def writing(self) -> Generator[sqlite3.Connection]:
        """One step: all of it is kept, or nothing."""
        with self._lock:
            self.must_be_there()
            self._kept.clear()
            self._base.execute("BEGIN IMMEDIATE")
            try:
                yield self._base
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._base.execute("ROLLBACK")
                raise
            self._base.execute("COMMIT")

    def note(self, values: Iterable[tuple[str, str]]) -> None:
        """Keep facts by name."""
        with self.writing() as base:
            base.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", list(values))

    def fact(self, name: str) -> str:
        found = self.rows("SELECT value FROM about WHERE name = ? LIMIT 1", (name,))
        return str(found[0][0]) if found else ""

    def facts(self, names: Sequence[str]) -> dict[str, str]:
        """Several facts from one query; those that are not there are left out."""
        marks = ", ".join("?" * len(names))
        query = f"SELECT name, value FROM about WHERE name IN ({marks}) LIMIT ?"
        return {row[0]: row[1] for row in self.rows(query, [*names, len(names)])}

    def must_be_there(self) -> None:
        """Make a file again that was deleted under us: what is forgotten must not live on."""
        with self._lock:
            if self._on_disk and not self.path.exists():
                self._again()

    def _again(self) -> None:
        self._base.close()
        self._kept.clear()
        discard(self.path)
        self._base, self._on_disk = _opened(self.path)


def _opened(path: Path) -> tuple[sqlite3.Connection, bool]:
    """The database, and whether it is on the disk."""
    for _ in range(2):
        try:
            return _ready(path), True
        except sqlite3.DatabaseError:
            discard(path)
        except OSError:
            break
    return _made(_connected(":memory:")), False


def _ready(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | _SAFE, 0o600))
    base = _connected(str(path))
    try:
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("PRAGMA secure_delete = ON")
        if not base.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            return _made(base)
        row = base.execute("SELECT value FROM about WHERE name = 'version'").fetchone()
        if row is None or row[0] != VERSION:
            raise sqlite3.DatabaseError("it is of another version")
    except BaseException:
        base.close()
        raise
    return base


def _connected(name: str) -> sqlite3.Connection:
    base = sqlite3.connect(name, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    base.row_factory = sqlite3.Row
    base.execute("PRAGMA synchronous = OFF")
    return base


def _made(base: sqlite3.Connection) -> sqlite3.Connection:
    base.execute("BEGIN IMMEDIATE")
    for statement in _SCHEMA.split(";\n"):
        base.execute(statement)
    base.execute("INSERT INTO about VALUES ('version', ?)", (VERSION,))
    base.execute("COMMIT")
    return base
