"""The database behind recall: made when it is missing, made anew when it cannot be read.

It holds nothing that is not derived from files: whoever finds it broken, of another version or
held by a program that does not let go, is given an empty one, in memory where there is no other
way. Opening never fails, and never waits longer than a moment.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

from reverie.world import Notice, Say

VERSION = "1"
PATIENCE = 0.5
"""Seconds to wait for another process that is writing."""

_SCHEMA = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE total (kind TEXT PRIMARY KEY, texts, path, name, about, heads, body) WITHOUT ROWID;
INSERT INTO total VALUES ('memory', 0, 0, 0, 0, 0, 0), ('transcript', 0, 0, 0, 0, 0, 0);
CREATE TABLE file (
    id INTEGER PRIMARY KEY, kind TEXT, key TEXT, modified INTEGER, size INTEGER, inode INTEGER,
    type TEXT, name TEXT, description TEXT, saved REAL, line INTEGER, body TEXT,
    UNIQUE (kind, key)
);
CREATE INDEX file_saved ON file (kind, saved);
CREATE TABLE note (id INTEGER PRIMARY KEY, path TEXT, name TEXT, about TEXT, heads TEXT, body TEXT);
CREATE VIRTUAL TABLE note_index USING fts5(
    path, name, about, heads, body, content='note', content_rowid='id',
    tokenize="unicode61 remove_diacritics 0"
);
CREATE VIRTUAL TABLE note_terms USING fts5vocab(note_index, row);
CREATE TABLE turn (
    id INTEGER PRIMARY KEY, message TEXT, speaker TEXT, at REAL, asks REAL, ends_asking INTEGER,
    first_person INTEGER, said TEXT, words TEXT
);
CREATE INDEX turn_at ON turn (at);
CREATE VIRTUAL TABLE turn_index USING fts5(
    words, content='turn', content_rowid='id', tokenize="unicode61 remove_diacritics 0"
);
CREATE VIRTUAL TABLE turn_terms USING fts5vocab(turn_index, row);
CREATE TABLE speaker (term TEXT PRIMARY KEY, name TEXT) WITHOUT ROWID;
CREATE TABLE vector (file INTEGER, model TEXT, value BLOB, PRIMARY KEY (file, model)) WITHOUT ROWID;
"""


def opened(path: Path, say: Say) -> sqlite3.Connection:
    """The database at a path, ready to use; whatever is there, and whatever happens."""
    for _ in range(2):
        try:
            return _ready(path)
        except sqlite3.OperationalError as error:
            if not _is_broken(error):
                return _instead(path, say, str(error))
            _discard(path, say, str(error))
        except sqlite3.DatabaseError as error:
            _discard(path, say, str(error))
        except OSError as error:
            return _instead(path, say, os.strerror(error.errno or 0))
    return _instead(path, say, "it cannot be made anew")


def _ready(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    base = _connected(str(path))
    try:
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("PRAGMA secure_delete = ON")
        version = _version(base)
        if version == "":
            _make(base)
        elif version != VERSION:
            raise sqlite3.DatabaseError(f"it is of version {version}")
    except BaseException:
        base.close()
        raise
    return base


def _connected(name: str) -> sqlite3.Connection:
    base = sqlite3.connect(name, PATIENCE, isolation_level=None, check_same_thread=False)
    base.execute("PRAGMA synchronous = NORMAL")
    base.execute("PRAGMA temp_store = MEMORY")
    return base


def _version(base: sqlite3.Connection) -> str:
    """The version that made it; "" where it is empty."""
    if not base.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        return ""
    row = base.execute("SELECT value FROM about WHERE name = 'version'").fetchone()
    return "unknown" if row is None else str(row[0])


def _make(base: sqlite3.Connection) -> None:
    base.execute("BEGIN IMMEDIATE")
    try:
        if not _version(base):
            for statement in _SCHEMA.split(";\n"):
                base.execute(statement)
            base.execute("INSERT INTO about VALUES ('version', ?)", (VERSION,))
        base.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            base.execute("ROLLBACK")
        raise


def _is_broken(error: sqlite3.OperationalError) -> bool:
    words = str(error)
    return "no such" in words or "malformed" in words or "disk image" in words


def discard(path: Path) -> None:
    """Remove the database and what SQLite keeps beside it."""
    for ending in ("", "-wal", "-shm", "-journal"):
        with contextlib.suppress(OSError):
            os.unlink(f"{path}{ending}")


def _discard(path: Path, say: Say, why: str) -> None:
    discard(path)
    say(Notice("recall", f"the index is made anew: {why} ({path})"))


def _instead(path: Path, say: Say, why: str) -> sqlite3.Connection:
    text = f"the index cannot be used, recall works without its file: {why} ({path})"
    say(Notice("recall", text, "warning"))
    base = _connected(":memory:")
    _make(base)
    return base
