"""Memories in the recall index: seen in their folder, put, removed and looked up.

A scan opens no file: it sees every `.md` below the folder, but any index and the daily logs.
Links and special files are not followed; a folder that vanishes on the way has nothing in it.

A look-up, inside a transaction of the caller's, is in two steps. The database gives the texts
that have the query's rarer terms, the best of them by its own measure; then each of these is
scored with every signal. What a query may cost is bounded: terms that most texts have find
nothing by themselves.
"""

from __future__ import annotations

import heapq
import os
import sqlite3
import stat
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from reverie.light import dataclass
from reverie.recall.gate import evidence, telling
from reverie.recall.passages import headings
from reverie.recall.ranker import (
    FIELDS,
    Query,
    QueryTerms,
    RankedNote,
    RankReasons,
    TermMatches,
    explain_note,
    find_terms,
    score_note,
)
from reverie.store.paths import DEPTH
from reverie.store.recall.database import LIKEST, Counts, VectorScores, choose_terms
from reverie.text.tokens import terms
from reverie.topics import frontmatter
from reverie.topics.entry import LOGS, decode_text, is_topic, stem, superseded_by, type_of, uncut
from reverie.topics.manifest import HEADER_LINES

FileStamp = tuple[int, int, int, int]
"""When it was written in nanoseconds, size, inode, and when anything about it changed: another
one may be another content. The last alone tells of an edit that set its time back."""


@dataclass(frozen=True, slots=True)
class RefreshResult:
    """What a look at the files did; `whole` is False where it was cut off or kept out."""

    seen: int = 0
    changed: int = 0
    removed: int = 0
    whole: bool = True


@dataclass(slots=True)
class FolderScan:
    """What differs from what is known: files that are new or changed, and files that are gone."""

    seen: int = 0
    changed: dict[str, FileStamp] = field(default_factory=dict[str, FileStamp])
    gone: list[str] = field(default_factory=list[str])
    folders: dict[str, int] = field(default_factory=dict[str, int])


KnownFiles = Mapping[str, Mapping[str, FileStamp]]
"""The marks of known files, by folder (`""`, `team/`) and name."""


def scan(folder: Path, known: KnownFiles) -> FolderScan:
    """Every memory below a folder against what is known of them."""
    found = FolderScan()
    visited: set[str] = set()
    pending = [(str(folder), "", 1)]
    while pending:
        path, prefix, depth = pending.pop()
        visited.add(prefix)
        found.folders[path] = folder_time(path)
        here = known.get(prefix, {})
        entries = _entries(path)
        others: list[os.DirEntry[str]] = []
        for entry in entries:
            mark = here.get(entry.name)
            if mark is None or mark != _mark(entry):
                others.append(entry)
        found.seen += len(entries) - len(others)
        for entry in others:
            key = prefix + entry.name
            mark = _mark(entry) if is_topic(key) and is_text(key) else None
            if mark is not None:
                found.changed[key] = mark
                found.seen += 1
            elif depth < DEPTH and key.casefold() != LOGS and _is_folder(entry):
                pending.append((entry.path, f"{key}/", depth + 1))
        if len(entries) - len(others) < len(here):
            there = {entry.name for entry in entries if _mark(entry) is not None}
            found.gone += [prefix + name for name in here if name not in there]
    found.gone += [p + name for p in known if p not in visited for name in known[p]]
    return found


def folder_time(path: str) -> int:
    """When a folder got, lost or renamed an entry last; 0 where there is none."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def is_text(key: str) -> bool:
    """Whether a name is text at all; some file systems have names that are none."""
    try:
        key.encode()
    except UnicodeEncodeError:
        return False
    return True


def mark_of(found: os.stat_result) -> FileStamp | None:
    if not stat.S_ISREG(found.st_mode):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns


def _mark(entry: os.DirEntry[str]) -> FileStamp | None:
    try:
        return mark_of(entry.stat(follow_symlinks=False))
    except OSError:
        return None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _entries(path: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as found:
            return list(found)
    except OSError:
        return []


FACT = 400
"""Characters of a memory that may be one fact."""
CANDIDATES = 100
MAX_MATCHES = 1_500
"""Texts that the terms of one query may bring up together; the rarest terms go first."""
MIN_CANDIDATES, MIN_MATCHES, MIN_LIKEST = 25, 300, 8
"""What each of many sentences has of them."""

_COLUMNS = ", ".join(FIELDS)
_RANK = "bm25(0.3, 0.4, 0.3, 0.15, 0.08)"


@dataclass(frozen=True, slots=True)
class ScoredMemory:
    """A text's number in the index, its score and why, and what speaks for it unasked."""

    id: int
    score: float
    why: RankReasons
    evidence: float = 0.0
    sentence: int = 0


@dataclass(frozen=True, slots=True)
class _ScoredRow:
    id: int
    score: float
    note: RankedNote
    found: TermMatches

    def told(self, weighed: QueryTerms, speaks: float, sentence: int = 0) -> ScoredMemory:
        why = explain_note(self.note, weighed, self.found)
        return ScoredMemory(self.id, self.score, why, speaks, sentence)


class NoteIndex:
    """The memories of an index."""

    def __init__(self, base: sqlite3.Connection, header_lines: int = HEADER_LINES) -> None:
        self._base = base
        self._header_lines = header_lines
        self._known: KnownFiles = {}
        self._stamp: tuple[int, int] | None = None

    def put(self, key: str, data: bytes, mark: FileStamp, saved: float) -> bool:
        """Take a file in, in place of what was known of it. One that says what it said keeps its
        place, and with it its vector; gives whether it says something else."""
        front = frontmatter.parse_frontmatter(data, lines=self._header_lines)
        name, about = _plain(front.get("name") or stem(key)), _plain(front.get("description"))
        text = _plain(decode_text(data[front.body :]))
        body = text.lstrip("\r\n")
        above = data[: front.body].count(b"\n") + text[: len(text) - len(body)].count("\n")
        said = (type_of(front), name, about, above + 1, body)
        superseded = bool(superseded_by(front))
        if superseded:  # known, and found by nothing: the newer rule is
            name, about, body, said = "", "", "", (type_of(front), "", "", 1, "")
        if self._says(key, said):
            self._base.execute(
                "UPDATE file SET modified = ?, size = ?, inode = ?, changed = ?, saved = ?"
                " WHERE kind = 'memory' AND key = ?",
                (*mark, saved, key),
            )
            return False
        self.remove(key)
        made = self._base.execute(
            "INSERT INTO file (kind, key, modified, size, inode, changed, type, name, description,"
            " saved, line, body) VALUES ('memory', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (key, *mark, *said[:3], saved, *said[3:]),
        )
        path = "" if superseded else key.removesuffix(".md")
        texts = (path, name, about, headings(body), body)
        if is_own_name(body, name, about):  # its first words count no more than its last
            texts = ("", body, body, "", body)
        row = (made.lastrowid, *(" ".join(terms(text)) for text in texts))
        self._base.execute("INSERT INTO note VALUES (?, ?, ?, ?, ?, ?)", row)
        self._base.execute(
            f"INSERT INTO note_index (rowid, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", row
        )
        self._count(row, 1)
        return True

    def _says(self, key: str, said: tuple[object, ...]) -> bool:
        """Whether the file of a key is known with just these words."""
        found = self._base.execute(
            "SELECT type, name, description, line, body FROM file"
            " WHERE kind = 'memory' AND key = ?",
            (key,),
        ).fetchone()
        return found == said

    @property
    def other_heads(self) -> bool:
        """Whether the files were read with another number of lines for their frontmatter."""
        asked = "SELECT value FROM about WHERE name = 'header lines'"
        row = self._base.execute(asked).fetchone()
        return str(self._header_lines) != (str(HEADER_LINES) if row is None else row[0])

    def read_anew(self) -> None:
        """Have every file read again by the next look at the folder."""
        self._base.execute(
            "UPDATE file SET modified = 0, size = 0, inode = 0, changed = 0 WHERE kind = 'memory'"
        )
        self._base.execute(
            "INSERT OR REPLACE INTO about VALUES ('header lines', ?)", (str(self._header_lines),)
        )

    def remove(self, key: str) -> bool:
        """Take a file out; says whether it was there."""
        found = self._base.execute(
            f"SELECT id, {_COLUMNS} FROM note WHERE id ="
            " (SELECT id FROM file WHERE kind = 'memory' AND key = ?)",
            (key,),
        ).fetchone()
        if found is None:
            return False
        self._base.execute(
            f"INSERT INTO note_index (note_index, rowid, {_COLUMNS})"
            " VALUES ('delete', ?, ?, ?, ?, ?, ?)",
            found,
        )
        for table, column in (("note", "id"), ("file", "id"), ("vector", "file")):
            self._base.execute(f"DELETE FROM {table} WHERE {column} = ?", found[:1])
        self._count(found, -1)
        return True

    def _count(self, row: Sequence[object], sign: int) -> None:
        sizes = [sign * _length(str(text)) for text in row[1:]]
        sets = ", ".join(f"{name} = {name} + ?" for name in ("texts", *FIELDS))
        self._base.execute(f"UPDATE total SET {sets} WHERE kind = 'memory'", (sign, *sizes))

    def known(self) -> KnownFiles:
        """The marks of all files. They are looked up again only when the index has changed."""
        stamp = (
            self._base.execute("PRAGMA data_version").fetchone()[0],
            self._base.total_changes,
        )
        if stamp != self._stamp:
            found: dict[str, dict[str, FileStamp]] = {}
            for key, *mark in self._base.execute(
                "SELECT key, modified, size, inode, changed FROM file WHERE kind = 'memory'"
            ):
                folder, slash, name = key.rpartition("/")
                found.setdefault(folder + slash, {})[name] = (mark[0], mark[1], mark[2], mark[3])
            self._known, self._stamp = found, stamp
        return self._known

    def mark(self, key: str) -> FileStamp | None:
        """The mark of one file, or None where it is not known."""
        return self._base.execute(
            "SELECT modified, size, inode, changed FROM file WHERE kind = 'memory' AND key = ?",
            (key,),
        ).fetchone()

    # Looking up

    def ranked(
        self,
        query: Query,
        k: int,
        *,
        exclude: Container[str],
        likeness: VectorScores,
    ) -> tuple[QueryTerms, list[ScoredMemory]]:
        """The `k` memories that answer a query best, with how its terms were weighed."""
        weighed, found = self._score_candidates(query, exclude, likeness, least=k)
        weights = telling(weighed)
        best = heapq.nsmallest(k, found, key=lambda one: (-one.score, one.id))
        return weighed, [
            one.told(weighed, evidence(one.found, weights, 1, one.note.likeness)) for one in best
        ]

    def about(
        self,
        asked: Sequence[Query],
        k: int,
        *,
        exclude: Container[str],
        likeness: Sequence[VectorScores],
    ) -> list[tuple[QueryTerms, ScoredMemory]]:
        """The `k` memories for which most speaks in one of a message's sentences, each with how
        that one's terms were weighed."""
        count = len(asked)
        found: dict[int, tuple[float, int, QueryTerms, _ScoredRow]] = {}
        for n, (query, like) in enumerate(zip(asked, likeness, strict=True)):
            weighed, scored = self._score_candidates(query, exclude, like, count)
            weights = telling(weighed)
            for one in scored:
                speaks = evidence(one.found, weights, count, one.note.likeness)
                if one.id not in found or speaks > found[one.id][0]:
                    found[one.id] = (speaks, n, weighed, one)
        best = heapq.nsmallest(
            k, found.values(), key=lambda row: (-row[0], -row[3].score, row[3].id)
        )
        return [(weighed, one.told(weighed, speaks, n)) for speaks, n, weighed, one in best]

    def _score_candidates(
        self,
        query: Query,
        exclude: Container[str],
        likeness: VectorScores,
        of: int = 1,
        least: int = MIN_CANDIDATES,
    ) -> tuple[QueryTerms, list[_ScoredRow]]:
        """The candidates of one of so many queries, scored; `least` are looked at."""
        texts, *sizes = self._base.execute(
            f"SELECT texts, {_COLUMNS} FROM total WHERE kind = 'memory'"
        ).fetchone()
        counts = Counts(self._base, "note_terms")
        weighed = QueryTerms.of(query, texts, counts, akin=counts.akin)
        means = [size / texts if texts else 1.0 for size in sizes]
        likest = likeness.likest[: max(LIKEST // of, MIN_LIKEST)]
        out: list[_ScoredRow] = []
        for ident, key, kind, saved, *fields in self._candidates(
            query, weighed, counts, likest, of, least
        ):
            if key not in exclude:
                note = RankedNote(tuple(fields), kind, saved, likeness.of(ident))
                found = find_terms(note, weighed, means)
                out.append(_ScoredRow(ident, score_note(note, weighed, found), note, found))
        return weighed, out

    def _candidates(
        self,
        query: Query,
        weighed: QueryTerms,
        counts: Counts,
        likest: Iterable[int],
        of: int,
        least: int,
    ) -> Iterable[tuple[int, str, str, float, str]]:
        """The rows of the memories that may answer a query; the more queries, the fewer."""
        columns = f"file.id, key, type, saved, {', '.join(f'note.{one}' for one in FIELDS)}"
        found: dict[int, tuple[int, str, str, float, str]] = {}
        asked = choose_terms(weighed, counts, max(MAX_MATCHES // of, MIN_MATCHES))
        if asked:
            rows = self._base.execute(
                "WITH best (id) AS MATERIALIZED (SELECT rowid FROM note_index"
                " WHERE note_index MATCH ? AND rank MATCH ? ORDER BY rank LIMIT ?)"
                f" SELECT {columns} FROM best CROSS JOIN note ON note.id = best.id"
                " CROSS JOIN file ON file.id = best.id",
                (asked, _RANK, max(CANDIDATES // of, MIN_CANDIDATES, least)),
            )
            found.update((row[0], row) for row in rows)
        one = f"SELECT {columns} FROM file JOIN note ON note.id = file.id WHERE file.id = ?"
        for ident in likest:
            if ident not in found:
                found.update((row[0], row) for row in self._base.execute(one, (ident,)))
        for span in query.dates:
            rows = self._base.execute(
                f"SELECT {columns} FROM file JOIN note ON note.id = file.id"
                " WHERE kind = 'memory' AND saved >= ? AND saved < ? ORDER BY saved DESC LIMIT 20",
                (span.start, span.end),
            )
            found.update((row[0], row) for row in rows)
        return found.values()


def is_own_name(body: str, name: str, about: str) -> bool:
    """Whether a memory is one fact whose name and description are its own first words."""
    text = body.strip()
    names = name, uncut(about)
    return 0 < len(text) <= FACT and bool(name) and all(text.startswith(one) for one in names)


def _plain(text: str) -> str:
    """The text without the byte at which the database would end it."""
    return text.replace("\0", " ")


def _length(text: str) -> int:
    return text.count(" ") + 1 if text else 0
