"""The memories of a project as a list needs them, and what a check found in them.

Each row is derived from one file and names the stamp it was made from. A page asks for rows by
the fifty, by words, kind, trust or finding, and opens no file for a list; the check, which reads
them all, is made beside it and kept. Rows are numbered in the order in which they were written,
so that every index gives the newest first and nothing is sorted for a page.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from reverie.errors import NotFound, StoreError
from reverie.memory.check import check_memory, report_value
from reverie.memory.values import fold_case
from reverie.reports.session_index import DerivedDatabase
from reverie.reports.timeline import Values
from reverie.store.memory_store import MemoryStore
from reverie.store.project import Project
from reverie.topics.versions import Version, trust_in

PAGE = 50
COUNTED = 1_000
"""Memories that a search counts; there may be more."""
SHORTEST = 3  # letters that the index of words tells apart
RARE = 700  # memories in which fewer letters may be for them to be looked up
LATE = 5.0
"""Seconds by which a file may be older than the newest row and still come behind it."""
_COLUMNS = "file, type, name, description, modified, bytes, trust"
_LISTED = ", ".join(f"memory.{name}" for name in _COLUMNS.split(", "))
_MODIFIED = _COLUMNS.split(", ").index("modified")
_LAST = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class MemoryQuery:
    """What a list of memories shows."""

    words: tuple[str, ...] = ()
    type: str = ""
    trust: str = ""
    finding: str = ""  # a kind of finding, or any
    page: int = 1

    @property
    def narrows(self) -> bool:
        """Whether it leaves any memory out."""
        return bool(self.words or self.type or self.trust or self.finding)

    @classmethod
    def of(cls, text: str, page: int = 1, **given: str) -> MemoryQuery:
        """The query that a person wrote: words, and `type:`, `trust:`, `finding:`."""
        found = {name: given.get(name, "") for name in ("type", "trust", "finding")}
        words: list[str] = []
        for word in text.split():
            name, colon, value = word.partition(":")
            if colon and name in found:
                found[name] = value
            else:
                words.append(fold_case(word))
        return cls(tuple(words), page=page, **found)


class MemoryRows:
    """The derived rows of one project's memories."""

    def __init__(self, base: DerivedDatabase, place: Project) -> None:
        self.base = base
        self.place = place

    # Bringing up to date

    def refresh(self, memories: MemoryStore, only: Collection[str] | None = None) -> list[str]:
        """Read what has changed, of all files or of those named; gives the files that did."""
        self.base.must_be_there()
        known = self._known_stamps(only)
        if only is None or not self._newest():
            only, known = memories.folder.keys(), self._known_stamps(None)
        stamps = dict(_stamps(memories, only))
        stale = [key for key, stamp in stamps.items() if known.get(key) != stamp]
        gone = [key for key in known if key not in stamps]
        if not stale and not gone:
            return []
        rows = self._read(memories, stale)
        if rows and rows[0][0][_MODIFIED] < self._newest() - LATE:
            known = self._known_stamps(None)  # an old file has come: all are numbered again
            stamps = dict(_stamps(memories, memories.folder.keys()))
            stale, gone = list(stamps), [key for key in known if key not in stamps]
            rows = self._read(memories, stale)
        with self.base.writing() as base:
            for key in (*stale, *gone):
                for (rank,) in base.execute("SELECT rank FROM memory WHERE file = ?", (key,)):
                    base.execute("DELETE FROM memory_text WHERE rowid = ?", (rank,))
                base.execute("DELETE FROM memory WHERE file = ?", (key,))
            for row, text in rows:
                put = base.execute(
                    f"INSERT INTO memory (stamp, folded, {_COLUMNS}) VALUES"
                    " (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (stamps[row[0]], text, *row),
                )
                base.execute(
                    "INSERT INTO memory_text (rowid, text) VALUES (?, ?)",
                    (put.lastrowid, text + " " * (SHORTEST - 1)),
                )
        return [*stale, *gone]

    def _known_stamps(self, only: Collection[str] | None) -> dict[str, str]:
        """The stamps of files, as their rows have them."""
        where = "" if only is None else " WHERE file IN (SELECT value FROM json_each(?))"
        given = () if only is None else (json.dumps(list(only)),)
        return {
            row[0]: row[1]
            for row in self.base.rows(f"SELECT file, stamp FROM memory{where}", given)
        }

    def _read(
        self, memories: MemoryStore, keys: Sequence[str]
    ) -> list[tuple[tuple[Any, ...], str]]:
        """The rows of some files and their words, the oldest first."""
        steps: dict[str, list[Version]] = {}
        if len(keys) <= PAGE:
            steps = {key: memories.history.log(key) for key in keys}
        else:
            for version in memories.history.log():
                steps.setdefault(version.key, []).append(version)
        now = time.time()
        found = (_row(memories, key, steps.get(key, ()), now) for key in keys)
        return sorted((row for row in found if row), key=lambda row: row[0][_MODIFIED])

    def _newest(self) -> float:
        rows = self.base.rows("SELECT modified FROM memory ORDER BY rank DESC LIMIT 1")
        return rows[0][0] if rows else 0.0

    def check(self, memories: MemoryStore | None) -> None:
        """Look for what is wrong with them, and keep what was found."""
        found = report_value(check_memory(memories, self.place))
        with self.base.writing() as base:
            base.execute("DELETE FROM finding")
            base.executemany(
                "INSERT INTO finding (kind, file, line, evidence, fixable) VALUES (?, ?, ?, ?, ?)",
                [
                    (one["kind"], one["file"], one["line"], one["evidence"], one["fixable"])
                    for one in found["findings"]
                ],
            )
        self.base.note([("score", str(found["score"])), ("checked", str(found["memories"]))])

    # Asking

    def page(self, query: MemoryQuery) -> tuple[list[Values], int]:
        """Fifty rows, the newest first, and how many there are in all, up to `COUNTED` where
        something is looked for."""
        asked, order, given = self._query_parts(query)
        rows = self.base.rows(
            f"SELECT {_LISTED}, (SELECT group_concat(DISTINCT kind) FROM finding WHERE"
            f" finding.file = memory.file) AS findings{asked} ORDER BY {order} DESC"
            " LIMIT ? OFFSET ?",
            [*given, PAGE, (query.page - 1) * PAGE],
        )
        listed = [{**dict(row), "findings": _split(row["findings"])} for row in rows]
        if not query.narrows:
            return listed, self.sums()["memories"]
        counting = f"SELECT count(*) FROM (SELECT 1{asked} LIMIT {COUNTED})"
        key = (counting, *given)
        return listed, self.base.kept(key, lambda: self.base.one(counting, given)[0])

    def _query_parts(self, query: MemoryQuery) -> tuple[str, str, list[Any]]:
        """Where the rows come from, what numbers them, and the values. Two letters that are rare
        are looked up; else the words are, one memory after the other from the newest on."""
        parts, given = _kinds(query)
        long = tuple(word for word in query.words if len(word) >= SHORTEST)
        looked_up, few = self._few([word for word in query.words if word not in long])
        tables, order = "memory", "memory.rank"
        if looked_up:
            parts.append("memory.rank IN (SELECT value FROM json_each(?))")
            given.append(json.dumps(few))
        elif long:
            tables = "memory_text CROSS JOIN memory ON memory.rank = memory_text.rowid"
            parts.append("memory_text MATCH ?")
            given.append(" AND ".join('"' + word.replace('"', '""') + '"' for word in long))
            looked_up, order = long, "memory_text.rowid"
        for word in query.words:
            if word not in looked_up:
                parts.append("instr(memory.folded, ?)")
                given.append(word)
        where = f" WHERE {' AND '.join(parts)}" if parts else ""
        return f" FROM {tables}{where}", order, given

    def _few(self, words: Sequence[str]) -> tuple[tuple[str, ...], list[int]]:
        """The first of some short words that is rare, and the memories that have it."""
        for word in words[:2]:
            rows = self.base.rows(
                "SELECT DISTINCT doc FROM memory_letters WHERE term >= ? AND term < ? LIMIT ?",
                (word, word + _LAST, RARE),
            )
            if len(rows) < RARE:
                return (word,), [row[0] for row in rows]
        return (), []

    def sums(self) -> Values:
        """How many there are, of each kind, and what a check said."""
        return dict(self.base.kept("memories", self._sums))

    def _sums(self) -> Values:
        row = self.base.one(
            "SELECT count(*) AS memories, (SELECT count(*) FROM finding) AS findings,"
            " (SELECT count(DISTINCT file) FROM finding) AS files,"
            " (SELECT count(*) FROM finding WHERE fixable) AS fixable,"
            " (SELECT value FROM about WHERE name = 'score') AS score FROM memory LIMIT 1"
        )
        kinds = self.base.rows(
            "SELECT type, count(*) FROM memory GROUP BY type ORDER BY 2 DESC LIMIT 8"
        )
        return {**dict(row), "kinds": [(one[0], one[1]) for one in kinds if one[0]]}

    def findings(self, file: str = "") -> list[Values]:
        """What is wrong with one memory, or the first fifty of all."""
        where = " WHERE file = ?" if file else ""
        rows = self.base.rows(
            f"SELECT kind, file, line, evidence, fixable, (SELECT name FROM memory WHERE"
            f" memory.file = finding.file) AS name FROM finding{where} ORDER BY rank LIMIT ?",
            [*([file] if file else []), PAGE],
        )
        return [dict(row) for row in rows]


def _split(kinds: str | None) -> list[str]:
    return sorted(kinds.split(",")) if kinds else []


def _stamps(memories: MemoryStore, keys: Iterable[str]) -> Sequence[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key in keys:
        try:
            seen = memories.folder.stat(key)
        except (NotFound, StoreError):
            continue
        found.append((key, f"{seen.size} {seen.modified}"))
    return found


def _row(
    memories: MemoryStore, key: str, steps: Sequence[Version], now: float
) -> tuple[tuple[Any, ...], str] | None:
    try:
        one = memories.folder.read(key)
    except (NotFound, StoreError):
        return None
    trust = trust_in(steps, key).label
    at = min(one.modified, now)
    row = (one.key, one.type, one.name, one.description, at, one.size, trust)
    return row, fold_case(f"{one.name}\n{one.text}")


def _kinds(query: MemoryQuery) -> tuple[list[str], list[Any]]:
    parts: list[str] = []
    given: list[Any] = []
    for name in ("type", "trust"):
        if value := getattr(query, name):
            parts.append(f"memory.{name} = ?")
            given.append(value)
    if query.finding:
        only = "" if query.finding == "any" else " WHERE kind = ?"
        parts.append(f"memory.file IN (SELECT file FROM finding{only})")
        given += [query.finding] if only else []
    return parts, given
