"""The derived database and the list of sessions.

A small database of what can be worked out again: behind lists that no file answers quickly.

It holds nothing that is not derived. Whoever finds it broken, of another version or gone makes it
anew; where it cannot be written it lives in memory. Every query is counted, and one thread at a
time uses it.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from reverie.errors import NotFound, ReverieError
from reverie.memory.values import fold_case
from reverie.reports.cache import cache_report
from reverie.reports.timeline import Values, count_events, timeline
from reverie.session.library import SessionLibrary
from reverie.session.recall.ledger import ledgers
from reverie.session.summaries import Transcript, summary_of
from reverie.settings.catalog import Settings
from reverie.store.home import SessionFile
from reverie.store.recall.database import DerivedSchema, discard, is_on_disk, open_database
from reverie.transcript.records import AssistantMessage, Sent
from reverie.world import say_nothing

PATIENCE = 5.0
VERSION = "4"
NAME = "page.sqlite3"
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
_PAGE_SCHEMA = DerivedSchema(VERSION, _SCHEMA)


class DerivedDatabase:
    """The database, shared by the threads of one process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.queries = 0
        self._kept: dict[Any, Any] = {}
        self._lock = threading.RLock()
        self._open()

    def _open(self) -> None:
        self._base = open_database(self.path, say_nothing, _PAGE_SCHEMA, PATIENCE)
        self._base.row_factory = sqlite3.Row
        self._on_disk = is_on_disk(self._base)

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
        self._open()


# --- The sessions of a project as a list needs them: titles, times, counts, tokens, sums.
#
# Each row is derived from one transcript and names the stamp it was made from; one whose stamp has
# changed is made again, one whose file is gone is taken out. A transcript that cannot be read is a
# row that says why. A page asks for rows by the fifty and opens no transcript.


PAGE = 50
SessionSort = Literal["at", "title", "turns", "requests", "tokens", "hit_rate", "saved"]
SORTS: tuple[SessionSort, ...] = get_args(SessionSort)
_COLUMNS = (
    *("id", "stamp", "title", "at", "began", "size", "messages", "turns", "tokens", "faults"),
    *("error", "program", "model", "requests", "uncached", "read", "written", "output"),
    *("hit_rate", "cost", "breaks", "compactions", "seals", "stored", "folded"),
)
_LISTED = ", ".join(f"session.{name}" for name in _COLUMNS if name not in ("stamp", "folded"))
_PUT = f"INSERT OR REPLACE INTO session VALUES ({', '.join('?' * len(_COLUMNS))})"
_WHERE = {"": "", "breaks": "session.breaks > 0", "compacted": "session.compactions > 0"}


@dataclass(frozen=True, slots=True)
class SessionQuery:
    """What a list of sessions shows."""

    words: str = ""
    only: str = ""  # breaks, compacted, here or imported
    sort: SessionSort = "at"
    descending: bool = True
    page: int = 1


class SessionIndex:
    """The derived rows of one project's sessions."""

    def __init__(self, base: DerivedDatabase, library: SessionLibrary, settings: Settings) -> None:
        self.base = base
        self.library = library
        self.settings = settings

    # Bringing up to date

    def refresh(self, step: Callable[[int, int], None] | None = None) -> list[str]:
        """Read what has changed; gives the ids of sessions that did."""
        self.base.must_be_there()
        files = {file.id: file for file in self.library.sessions()}
        known = {row[0]: row[1] for row in self.base.rows("SELECT id, stamp FROM session")}
        stale = [file for file in files.values() if known.get(file.id) != file.stamp]
        gone = [name for name in known if name not in files]
        if gone:
            self._remove(gone)
        for count, file in enumerate(stale, 1):
            self._take(file)
            if step is not None:
                step(count, len(stale))
        return [file.id for file in stale] + gone

    def _take(self, file: SessionFile) -> None:
        try:
            found = self.library.read(file.id)
            row, told = self._row(file, found)
            recalled = list(_recall_rows(file.id, found))
        except NotFound:
            self._remove([file.id])
            return
        except ReverieError as error:
            row = dict.fromkeys(_COLUMNS, 0) | {"id": file.id, "at": file.mtime, "size": file.size}
            row |= {"title": "", "error": str(error), "program": "", "model": "", "folded": ""}
            told = {"requests": [], "events": [], "recorded": False, "faults": [str(error)]}
            recalled = []
        row["stamp"] = file.stamp
        with self.base.writing() as base:
            base.execute(_PUT, [row[name] for name in _COLUMNS])
            base.execute(
                "INSERT OR REPLACE INTO timeline VALUES (?, ?)", (file.id, json.dumps(told))
            )
            base.execute("DELETE FROM recalled WHERE session = ?", (file.id,))
            base.executemany("INSERT INTO recalled VALUES (?, ?, ?, ?, ?, ?, ?, ?)", recalled)

    def _remove(self, names: Sequence[str]) -> None:
        with self.base.writing() as base:
            for table in ("session", "timeline", "saving"):
                base.executemany(f"DELETE FROM {table} WHERE id = ?", [(n,) for n in names])
            base.executemany("DELETE FROM recalled WHERE session = ?", [(n,) for n in names])

    def _row(self, file: SessionFile, found: Transcript) -> tuple[Values, Values]:
        told = timeline(found)
        report = cache_report(self.library, file.id, self.settings)
        whole = report.whole()
        counts = count_events(told["events"])
        row: Values = {**asdict(summary_of(file, found)), "error": ""}
        row |= {name: whole[name] for name in ("requests", "uncached", "read", "written")}
        row |= {name: whole[name] for name in ("output", "hit_rate", "cost", "breaks")}
        row["compactions"] = counts.get("compaction", 0)
        row["seals"], row["stored"] = counts.get("sealed", 0), counts.get("stored", 0)
        row["began"] = found.entries[0].at if found.entries else file.mtime
        row["program"], row["model"] = _program(found), _model(found)
        row["folded"] = fold_case(row["title"])
        told["cache"] = report.value(0)
        return row, told

    # Asking

    def page(self, query: SessionQuery) -> tuple[list[Values], int]:
        """Fifty rows, and how many there are in all."""
        where, given = _where(query)
        counting = f"SELECT count(*) FROM session{where} LIMIT 1"
        key = (counting, *given)
        count: int = self.base.kept(key, lambda: self.base.one(counting, given)[0])
        order = f"saved {_way(query)}, at DESC" if query.sort == "saved" else _order(query)
        rows = self.base.rows(
            f"SELECT {_LISTED}, 1 - saving.cost / nullif(saving.naive, 0) AS saved FROM session"
            f" LEFT JOIN saving ON saving.id = session.id AND saving.policy = ?{where}"
            f" ORDER BY {order} LIMIT ? OFFSET ?",
            [self.settings.context_policy, *given, PAGE, (query.page - 1) * PAGE],
        )
        return [dict(row) for row in rows], count

    def sums(self) -> Values:
        """What stands over the list."""
        return dict(self.base.kept("sessions", self._sums))

    def _sums(self) -> Values:
        row = self.base.one(
            "SELECT count(*) AS sessions, sum(requests) AS requests, sum(breaks > 0) AS broken,"
            " sum(hit_rate * (uncached + read + written)) AS read,"
            " sum((cost > 0) * (uncached + read + written)) AS billed,"
            " sum(compactions > 0) AS compacted, sum(error != '') AS unreadable,"
            " sum(cost) AS cost FROM session LIMIT 1"
        )
        return {name: row[name] or 0 for name in row.keys()}  # noqa: SIM118 - a row, no dict

    def programs(self) -> list[tuple[str, int]]:
        """How many sessions ran here, and how many came from elsewhere."""
        return list(self.base.kept("programs", self._programs))

    def find(self, given: str) -> str:
        """The session that an id, or the beginning of one, names."""
        rows = self.base.rows(
            "SELECT id FROM session WHERE id >= ? AND id < ? LIMIT 2", (given, given + "\x7f")
        )
        if len(rows) == 1 and given:
            return rows[0][0]
        raise NotFound(
            "Several sessions begin like this" if rows else "There is no such session here",
            where=given,
            do="The list of sessions shows those there are",
            code="ambiguous" if rows else "",
        )

    def recalled(self, file: str) -> list[Values]:
        """The turns in which a memory was thought of, the newest first: fifty of them."""
        rows = self.base.rows(
            "SELECT recalled.*, (SELECT title FROM session WHERE session.id = recalled.session) AS"
            " title FROM recalled WHERE file = ? ORDER BY at DESC LIMIT ?",
            (file, PAGE),
        )
        return [dict(row) for row in rows]

    def newest(self) -> str:
        """The id of the newest session, or nothing."""
        rows = self.base.rows("SELECT id FROM session ORDER BY at DESC, id LIMIT 1")
        return rows[0][0] if rows else ""

    def _programs(self) -> list[tuple[str, int]]:
        rows = self.base.rows(
            "SELECT program, count(*) FROM session GROUP BY program ORDER BY 2 DESC LIMIT 6"
        )
        return [(row[0], row[1]) for row in rows if row[0]]

    def session(self, name: str) -> tuple[Values, Values]:
        """One session's row and its timeline."""
        rows = self.base.rows(
            f"SELECT {_LISTED}, timeline.value AS told, saving.naive AS naive, saving.cost AS"
            " with_policy, json_extract(saving.value, '$.rounds.naive') AS untouched FROM session"
            " JOIN timeline ON timeline.id = session.id LEFT JOIN saving ON saving.id = session.id"
            " AND saving.policy = ? WHERE session.id = ? LIMIT 1",
            (self.settings.context_policy, name),
        )
        if not rows:
            raise NotFound(
                "There is no such session in this project",
                where=name,
                do="The list of sessions shows those there are",
                code="ambiguous" if rows else "",
            )
        row = dict(rows[0])
        told = cast("Values", json.loads(row.pop("told")))
        row["untouched"] = json.loads(row["untouched"] or "[]")
        return row, told


def _recall_rows(session: str, found: Transcript) -> Iterator[tuple[Any, ...]]:
    """What recall thought of in each turn of a session."""
    for turn in ledgers(found.entries):
        for row in turn.value()["candidates"]:
            words = (turn.said[:200], row["outcome"], row["score"], row["cited"], row["why"])
            yield (row["file"], turn.at, session, *words)


def _where(query: SessionQuery) -> tuple[str, list[Any]]:
    parts: list[str] = []
    given: list[Any] = []
    for word in fold_case(query.words).split():
        parts.append("instr(folded, ?)")
        given.append(word)
    known = _WHERE.get(query.only)
    if known:
        parts.append(known)
    elif query.only:
        parts.append("program = ?")
        given.append(query.only)
    return (f" WHERE {' AND '.join(parts)}" if parts else ""), given


def _way(query: SessionQuery) -> str:
    return "DESC" if query.descending else "ASC"


def _order(query: SessionQuery) -> str:
    assert query.sort in SORTS
    return f"session.{query.sort} {_way(query)}, session.id"


def _program(found: Transcript) -> str:
    """Where a session ran: here, or in another program, whose requests were not recorded."""
    sent = any(isinstance(entry.record, Sent) for entry in found.entries)
    return "here" if sent else "imported"


def _model(found: Transcript) -> str:
    if found.view.head and found.view.head.model:
        return found.view.head.model
    return next(_answering_models(found), "")


def _answering_models(found: Transcript) -> Iterator[str]:
    for entry in reversed(found.entries):
        if isinstance(entry.record, AssistantMessage) and entry.record.model:
            yield entry.record.model
