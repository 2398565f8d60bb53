"""The memories of a project as a list needs them, and what a check found in them.

Each row is derived from one file and names the stamp it was made from. A page asks for rows by
the fifty, by words, kind, trust or finding, and opens no file for a list; the check, which reads
them all, is made beside it and kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reverie.errors import NotFound, StoreError
from reverie.memory.versions import Version, trust_in
from reverie.store.memories import Memories
from reverie.upkeep.check import check_memory, report_value
from reverie.upkeep.derived import Derived
from reverie.upkeep.memory import fold_case
from reverie.upkeep.place import ProjectPlace
from reverie.upkeep.timeline import Values

PAGE = 50
SHORTEST = 3  # letters that the index of words tells apart
RARE = 200  # memories in which a word may be for it to be looked up and not met on the way
_COLUMNS = "file, type, name, description, modified, bytes, trust"
_LISTED = ", ".join(f"memory.{name}" for name in _COLUMNS.split(", "))


@dataclass(frozen=True, slots=True)
class MemoryQuery:
    """What a list of memories shows."""

    words: tuple[str, ...] = ()
    type: str = ""
    trust: str = ""
    finding: str = ""  # a kind of finding, or any
    page: int = 1

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


class MemoryIndex:
    """The derived rows of one project's memories."""

    def __init__(self, base: Derived, place: ProjectPlace) -> None:
        self.base = base
        self.place = place

    # Bringing up to date

    def refresh(self, memories: Memories) -> list[str]:
        """Read what has changed; gives the files that did."""
        self.base.must_be_there()
        stamps = dict(_stamps(memories))
        known = {row[0]: row[1] for row in self.base.rows("SELECT file, stamp FROM memory")}
        stale = [key for key, stamp in stamps.items() if known.get(key) != stamp]
        gone = [key for key in known if key not in stamps]
        if not stale and not gone:
            return []
        steps: dict[str, list[Version]] = {}
        for version in memories.history.log():
            steps.setdefault(version.key, []).append(version)
        rows = [row for key in stale if (row := _row(memories, key, steps.get(key, ())))]
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
                    "INSERT INTO memory_text (rowid, text) VALUES (?, ?)", (put.lastrowid, text)
                )
        return [*stale, *gone]

    def check(self, memories: Memories | None) -> None:
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
        """Fifty rows, the newest first, and how many there are in all."""
        where, given = self._where(query)
        counting = f"SELECT count(*) FROM memory{where} LIMIT 1"
        key = (counting, *given)
        count: int = self.base.kept(key, lambda: self.base.one(counting, given)[0])
        rows = self.base.rows(
            f"SELECT {_LISTED}, (SELECT group_concat(DISTINCT kind) FROM finding WHERE"
            f" finding.file = memory.file) AS findings FROM memory{where}"
            " ORDER BY modified DESC, file LIMIT ? OFFSET ?",
            [*given, PAGE, (query.page - 1) * PAGE],
        )
        return [{**dict(row), "findings": _split(row["findings"])} for row in rows], count

    def _where(self, query: MemoryQuery) -> tuple[str, list[Any]]:
        """Words that are rare are looked up; those that are not are met soon enough by walking
        through the newest first."""
        parts, given = _kinds(query)
        long = [word for word in query.words if len(word) >= SHORTEST]
        match = " AND ".join('"' + word.replace('"', '""') + '"' for word in long)
        if match and self._is_rare(match):
            parts.append("rank IN (SELECT rowid FROM memory_text WHERE memory_text MATCH ?)")
            given.append(match)
        else:
            long = []
        for word in query.words:
            if word not in long:
                parts.append("instr(memory.folded, ?)")
                given.append(word)
        return (f" WHERE {' AND '.join(parts)}" if parts else ""), given

    def _is_rare(self, match: str) -> bool:
        row = self.base.one(
            "SELECT count(*) FROM (SELECT 1 FROM memory_text WHERE memory_text MATCH ? LIMIT ?)",
            (match, RARE),
        )
        return row[0] < RARE

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


def _stamps(memories: Memories) -> Sequence[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key in memories.folder.keys():  # noqa: SIM118 - a folder, no dict
        try:
            seen = memories.folder.stat(key)
        except (NotFound, StoreError):
            continue
        found.append((key, f"{seen.size} {seen.modified}"))
    return found


def _row(
    memories: Memories, key: str, steps: Sequence[Version]
) -> tuple[tuple[Any, ...], str] | None:
    try:
        one = memories.folder.read(key)
    except (NotFound, StoreError):
        return None
    trust = trust_in(steps, key).label
    row = (one.key, one.type, one.name, one.description, one.modified, one.size, trust)
    return row, fold_case(f"{one.name}\n{one.text}")


def _kinds(query: MemoryQuery) -> tuple[list[str], list[Any]]:
    parts: list[str] = []
    given: list[Any] = []
    for name in ("type", "trust"):
        if value := getattr(query, name):
            parts.append(f"{name} = ?")
            given.append(value)
    if query.finding:
        only = "" if query.finding == "any" else " WHERE kind = ?"
        parts.append(f"file IN (SELECT file FROM finding{only})")
        given += [query.finding] if only else []
    return parts, given
