"""Vectors of memories in the recall index, and which of them are closest to a query's.

Kept as 32-bit numbers of length one, so that closeness is one product. They are held in memory
while nothing changes; with numpy at hand the product is one call. A vector of another length
than the query's is as good as none.
"""

from __future__ import annotations

import importlib
import math
import sqlite3
from array import array
from collections.abc import Iterable
from operator import mul
from typing import Any

from reverie.memory.recall.meaning import Meaning, Vector

MAX_TEXT = 300
"""Characters of a memory that its vector is made from."""


class Vectors:
    """The vectors of an index."""

    def __init__(self, base: sqlite3.Connection) -> None:
        self._base = base
        self._stamp: tuple[object, ...] = ()
        self._ids: list[int] = []
        self._rows: list[array[float]] = []
        self._matrix: Any = None

    def missing(self, model: str, most: int) -> list[tuple[int, str]]:
        """Memories that have no vector of this model yet, each with the text to make it from."""
        rows = self._base.execute(
            "SELECT id, key, name, description, substr(body, 1, ?) FROM file WHERE kind = 'memory'"
            " AND id NOT IN (SELECT file FROM vector WHERE model = ?) ORDER BY saved DESC LIMIT ?",
            (MAX_TEXT, model, most),
        )
        return [
            (ident, f"{name}. {description} {' '.join(body.split())}"[:MAX_TEXT])
            for ident, _, name, description, body in rows
        ]

    def put(self, model: str, vectors: Iterable[tuple[int, Vector]]) -> int:
        """Keep vectors; those of memories that are gone by now are left out."""
        done = 0
        for ident, vector in vectors:
            values = _unit(vector)
            if values is not None:
                done += self._base.execute(
                    "INSERT OR REPLACE INTO vector SELECT id, ?, ? FROM file WHERE id = ?",
                    (model, values.tobytes(), ident),
                ).rowcount
        return done

    def closeness(self, meaning: Meaning) -> dict[int, float]:
        """How close each memory is to what a query means, -1 to 1."""
        asked = _unit(meaning.vector)
        if asked is None:
            return {}
        self._load(meaning.model, len(asked))
        if self._matrix is not None:
            found: list[float] = (self._matrix @ _numpy().asarray(asked, "f")).tolist()
        else:
            found = [sum(map(mul, row, asked)) for row in self._rows]
        return dict(zip(self._ids, found, strict=True))

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
            (model, 4 * size),
        ).fetchall()
        numpy = _numpy()
        self._ids = [row[0] for row in rows]
        if numpy is not None:
            joined = b"".join(row[1] for row in rows)
            self._matrix = numpy.frombuffer(joined, "f").reshape(len(rows), size)
        else:
            self._rows = [array("f", row[1]) for row in rows]
        self._stamp = stamp


def _numpy() -> Any:
    """numpy where it is installed; it comes with local models and is never needed."""
    try:
        return importlib.import_module("numpy")
    except ImportError:
        return None


def _unit(vector: Vector) -> array[float] | None:
    """The vector at length one; None where it has no direction."""
    size = math.sqrt(sum([value * value for value in vector]))
    if not vector or not math.isfinite(size) or not size:
        return None
    return array("f", [value / size for value in vector])
