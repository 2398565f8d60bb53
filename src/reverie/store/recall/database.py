"""The SQLite file behind recall, rebuilt when unreadable.

The database behind recall: made when it is missing, made anew when it cannot be read.

It holds nothing that is not derived from files: whoever finds it broken, of another version or
held by a program that does not let go, is given an empty one, in memory where there is no other
way. Opening never fails, and never waits longer than a moment.

Vectors of memories lie in it at length one, each as eight-bit numbers and what one of them is
worth, so that closeness is one product. They are held in memory while nothing changes; with numpy
at hand the product is one call. A vector of another length than the query's is as good as none.
"""

from __future__ import annotations

import contextlib
import heapq
import math
import os
import sqlite3
import struct
from array import array
from collections.abc import Iterable, Mapping, Sequence
from operator import mul
from pathlib import Path
from typing import Any, Literal, TypeAlias

from reverie.concurrency import numpy, one_thread
from reverie.light import dataclass
from reverie.recall.gate import QueryVector, Vector
from reverie.recall.ranker import QueryTerms
from reverie.store.fs import SAFE, read_plain
from reverie.world import Notice, Say

VERSION = "4"
PATIENCE = 0.5
"""Seconds to wait for another process that is writing."""

_HEADER = 100
_SCHEMA = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE total (kind TEXT PRIMARY KEY, texts, path, name, about, heads, body) WITHOUT ROWID;
INSERT INTO total VALUES
    ('memory', 0, 0, 0, 0, 0, 0), ('transcript', 0, 0, 0, 0, 0, 0), ('reply', 0, 0, 0, 0, 0, 0);
CREATE TABLE file (
    id INTEGER PRIMARY KEY, kind TEXT, key TEXT, modified INTEGER, size INTEGER, inode INTEGER,
    changed INTEGER, type TEXT, name TEXT, description TEXT, saved REAL, line INTEGER, body TEXT,
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
CREATE VIRTUAL TABLE reply_index USING fts5(
    words, content='turn', content_rowid='id', tokenize="unicode61 remove_diacritics 0"
);
CREATE VIRTUAL TABLE reply_terms USING fts5vocab(reply_index, row);
CREATE TABLE speaker (term TEXT PRIMARY KEY, name TEXT) WITHOUT ROWID;
CREATE TABLE vector (file INTEGER, model TEXT, value BLOB, PRIMARY KEY (file, model)) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class DerivedSchema:
    """The tables of a database that can be made anew, with `about` among them, and which version
    of them they are."""

    version: str
    tables: str


RECALL = DerivedSchema(VERSION, _SCHEMA)


def open_database(
    path: Path, say: Say, schema: DerivedSchema = RECALL, patience: float = PATIENCE
) -> sqlite3.Connection:
    """The database at a path, ready to use; whatever is there, and whatever happens."""
    why = "it cannot be made anew"
    for _ in range(2):
        try:
            return _ready(path, schema, patience)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError) and not _is_broken(error):
                why = str(error)
                break
            discard(path)
            say(Notice("recall", f"the index is made anew: {error} ({path})"))
        except OSError as error:
            why = os.strerror(error.errno or 0)
            break
    text = f"the index cannot be used, recall works without its file: {why} ({path})"
    say(Notice("recall", text, "warning"))
    base = _connect(":memory:", patience)
    _make(base, schema)
    return base


def is_on_disk(base: sqlite3.Connection) -> bool:
    """Whether a database has a file, and does not live in memory."""
    return bool(base.execute("PRAGMA database_list").fetchone()[2])


def _ready(path: Path, schema: DerivedSchema, patience: float) -> sqlite3.Connection:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | SAFE, 0o600))
    _check_header(path)
    base = _connect(str(path), patience)
    try:
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("PRAGMA secure_delete = ON")
        version = _version(base)
        if version == "":
            _make(base, schema)
        elif version != schema.version:
            raise sqlite3.DatabaseError(f"it is of version {version}")
    except BaseException:
        base.close()
        raise
    return base


def _check_header(path: Path) -> None:
    """Refuse a header that SQLite would open, and then not write to or not understand."""
    head = read_plain(path, _HEADER) or b""
    formats = set(head[18:20]) <= {1, 2} and int.from_bytes(head[44:48]) <= 4
    if len(head) > _HEADER and not (formats and head[20:24] == b"\0@  "):
        raise sqlite3.DatabaseError("its header is damaged")


def _connect(name: str, patience: float) -> sqlite3.Connection:
    base = sqlite3.connect(name, timeout=patience, isolation_level=None, check_same_thread=False)
    base.execute("PRAGMA synchronous = NORMAL")
    base.execute("PRAGMA temp_store = MEMORY")
    return base


def _version(base: sqlite3.Connection) -> str:
    """The version that made it; "" where it is empty."""
    if not base.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        return ""
    row = base.execute("SELECT value FROM about WHERE name = 'version'").fetchone()
    return "unknown" if row is None else str(row[0])


def _make(base: sqlite3.Connection, schema: DerivedSchema) -> None:
    base.execute("BEGIN IMMEDIATE")
    try:
        if not _version(base):
            for statement in schema.tables.split(";\n"):
                base.execute(statement)
            base.execute("INSERT INTO about VALUES ('version', ?)", (schema.version,))
        base.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            base.execute("ROLLBACK")
        raise


def _is_broken(error: sqlite3.OperationalError) -> bool:
    code: int = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT)


def discard(path: Path) -> None:
    """Remove the database and what SQLite keeps beside it."""
    for ending in ("", "-wal", "-shm", "-journal"):
        with contextlib.suppress(OSError):
            os.unlink(f"{path}{ending}")


MAX_TEXT = 300
"""Characters of a memory that its vector is made from."""


TextKind: TypeAlias = Literal["memory", "transcript"]
_TABLES: Mapping[TextKind, str] = {"memory": "file", "transcript": "turn"}
_MISSING: Mapping[TextKind, str] = {
    "memory": (
        "SELECT id, name || '. ' || description || ' ' || substr(body, 1, ?) FROM file"
        " WHERE kind = 'memory' AND id NOT IN (SELECT file FROM vector WHERE model = ?)"
        " ORDER BY saved DESC LIMIT ?"
    ),
    "transcript": (
        "SELECT id, substr(said, 1, ?) FROM turn WHERE speaker != 'tool'"
        " AND id NOT IN (SELECT file FROM vector WHERE model = ?) ORDER BY at DESC LIMIT ?"
    ),
}


LIKEST = 30
"""Texts that closeness of meaning alone brings up."""


@dataclass(frozen=True, slots=True)
class VectorScores:
    """How close texts are to what a query means, -1 to 1; `likest` are the closest of them."""

    places: Mapping[int, int]
    values: Sequence[float]
    likest: tuple[int, ...] = ()

    def of(self, ident: int) -> float:
        """0 for a text that has no vector."""
        place = self.places.get(ident)
        return 0.0 if place is None else float(self.values[place])


NOTHING = VectorScores({}, ())


class Vectors:
    """The vectors of an index: of its memories, or of the turns of its transcripts. Those of
    tools' results are not made: they are many, and no sentences."""

    def __init__(self, base: sqlite3.Connection, kind: TextKind = "memory") -> None:
        self._base = base
        self._kind: TextKind = kind
        self._stamp: tuple[object, ...] = ()
        self._ids: list[int] = []
        self._places: dict[int, int] = {}
        self._rows: list[tuple[float, array[int]]] = []
        self._matrix: Any = None

    def _model_key(self, model: str) -> str:
        return model if self._kind == "memory" else f"{model} {self._kind}"

    def missing(self, model: str, most: int) -> list[tuple[int, str]]:
        """Texts that have no vector of this model yet, each with what to make it from."""
        given = (MAX_TEXT, self._model_key(model), most)
        rows = self._base.execute(_MISSING[self._kind], given)
        return [(ident, " ".join(text.split())[:MAX_TEXT]) for ident, text in rows]

    def put(self, model: str, vectors: Iterable[tuple[int, Vector]]) -> int:
        """Keep vectors; those of texts that are gone by now are left out."""
        done = 0
        table = _TABLES[self._kind]
        for ident, vector in vectors:
            values = _unit(vector)
            if values is not None:
                done += self._base.execute(
                    f"INSERT OR REPLACE INTO vector SELECT id, ?, ? FROM {table} WHERE id = ?",
                    (self._model_key(model), _packed(values), ident),
                ).rowcount
        return done

    def closeness(self, meanings: Sequence[QueryVector]) -> list[VectorScores]:
        """How close each text is to what queries of one model mean, each for itself."""
        asked = [_unit(meaning.vector) for meaning in meanings]
        known = [vector for vector in asked if vector is not None]
        if len(known) < len(asked) or len({len(vector) for vector in known}) != 1:
            return [NOTHING] * len(asked)
        self._load(self._model_key(meanings[0].model), len(known[0]))
        np = numpy()
        if np is None:
            return [
                self._likeness([worth * sum(map(mul, row, v)) for worth, row in self._rows])
                for v in known
            ]
        with one_thread():
            values = (self._matrix @ np.asarray(known, "f").T).T  # one walk over all vectors
        return [self._likeness(row) for row in values]

    def _likeness(self, values: Any) -> VectorScores:
        np = numpy()
        count = min(LIKEST, len(self._ids))
        near: Sequence[int] = range(len(self._ids))
        if np is not None and count:
            near = np.argpartition(-values, count - 1)[:count].tolist()
        best = heapq.nlargest(count, near, key=lambda n: float(values[n]))
        return VectorScores(self._places, values, tuple(self._ids[n] for n in best))

    def _load(self, model: str, size: int) -> None:
        stamp = (
            model,
            size,
            self._base.execute("PRAGMA data_version").fetchone()[0],
            self._base.total_changes,
        )
        if stamp == self._stamp:
            return
        rows = self._base.execute(
            "SELECT file, value FROM vector WHERE model = ? AND length(value) = ?",
            (model, _WORTH + size),
        ).fetchall()
        np = numpy()
        self._ids = [row[0] for row in rows]
        self._places = {ident: n for n, ident in enumerate(self._ids)}
        if np is not None:
            joined = np.frombuffer(b"".join(row[1] for row in rows), "b")
            packed = joined.reshape(len(rows), _WORTH + size)
            worth = np.ascontiguousarray(packed[:, :_WORTH]).view("<f4")
            self._matrix = packed[:, _WORTH:].astype("f") * worth
        else:
            self._rows = [_unpacked(row[1]) for row in rows]
        self._stamp = stamp


def _unit(vector: Vector) -> array[float] | None:
    """The vector at length one; None where it has no direction."""
    size = math.sqrt(sum([value * value for value in vector]))
    if not vector or not math.isfinite(size) or not size:
        return None
    return array("f", [value / size for value in vector])


_WORTH = 4  # bytes of what one step of a packed vector is worth
_STEPS = 127


def _packed(vector: array[float]) -> bytes:
    """A vector in a byte for each of its numbers."""
    worth = max(map(abs, vector)) / _STEPS
    return struct.pack("<f", worth) + array("b", [round(one / worth) for one in vector]).tobytes()


def _unpacked(data: bytes) -> tuple[float, array[int]]:
    return struct.unpack("<f", data[:_WORTH])[0], array("b", data[_WORTH:])


# --- How often the index has a term, and which terms of a query are looked for.
#
# A count is looked up once for each query. Terms that most texts have find nothing by themselves:
# the rarest go first, while what they bring up stays within bounds.


LEAST_PART, AKIN = 5, 3
"""Letters of a compound's part, and how many akin terms stand for one that no text has."""


class Counts:
    """In how many texts a term stands; each is looked up once."""

    def __init__(self, base: sqlite3.Connection, table: str) -> None:
        self._base = base
        self._asked = f"SELECT doc FROM {table} WHERE term = ?"
        self._longer = f"SELECT term FROM {table} WHERE term > ? AND term < ? LIMIT {AKIN}"
        self._known: dict[str, int] = {}

    def __call__(self, term: str) -> int:
        found = self._known.get(term)
        if found is None:
            row = self._base.execute(self._asked, (term,)).fetchone()
            found = self._known[term] = 0 if row is None else int(row[0])
        return found

    def akin(self, term: str) -> tuple[str, ...]:
        """Terms of the index that a term is a part of, or that are parts of it: compounds, as
        German makes them (`datenbankverbindung` and `datenbank`)."""
        if len(term) < LEAST_PART or not term.isalpha():
            return ()
        rows = self._base.execute(self._longer, (term, f"{term}\U0010ffff"))
        found = [str(row[0]) for row in rows]
        cuts = range(LEAST_PART, len(term) - LEAST_PART + 1)
        found += [part for n in cuts for part in (term[:n], term[n:]) if self(part)]
        return tuple(sorted(dict.fromkeys(found), key=len, reverse=True)[:AKIN])


def choose_terms(weighed: QueryTerms, counts: Counts, most: int) -> str:
    """The terms to look for as the database takes them, the rarest first, while what they bring
    up stays within bounds; at least one."""
    own = [(counts(term.text), term.text) for term in weighed.all]
    also = [(counts(other), other) for term in weighed.all for other in term.also]
    kept: dict[str, None] = {}
    total = 0
    for count, text in [*sorted(own), *sorted(also)]:
        if not count or text in kept:
            continue
        total += count
        if kept and total > most:
            continue
        kept[text] = None
    return " OR ".join(f'"{text}"' for text in kept)
