"""The recall index: every memory file, and on request every transcript, found in milliseconds.

A file is read again when its times, size or inode have changed, a told path at once. Several
processes may refresh and search at the same time. The index is derived: broken, held or deleted
under whoever has it open, it is made anew or done without, and nothing here raises for what it
holds or for what a file holds. Hits come best first, each with what every signal gave.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias, TypeVar

from reverie.errors import InvalidMessage, NotFound, StoreError
from reverie.light import dataclass
from reverie.recall.gate import CLEAR, QueryVector, Vector, sentences
from reverie.recall.passages import Utterance, best_lines, utterances
from reverie.recall.ranker import Query, QueryTerms, RankReasons
from reverie.store import home as places
from reverie.store.files import Folder
from reverie.store.journal import BadLine, Journal
from reverie.store.recall import database as bases
from reverie.store.recall.database import NOTHING, TextKind, Vectors, VectorScores
from reverie.store.recall.memories import (
    FileStamp,
    FolderScan,
    KnownFiles,
    NoteIndex,
    RefreshResult,
    ScoredMemory,
    is_text,
    mark_of,
    scan,
)
from reverie.store.recall.turns import PLACES, Turns
from reverie.topics.entry import is_topic
from reverie.topics.manifest import HEADER_LINES
from reverie.topics.times import TOGETHER
from reverie.transcript.records import Entry, Started
from reverie.world import Notice, Say, say_nothing

HitKind: TypeAlias = TextKind
KINDS: tuple[HitKind, ...] = ("memory", "transcript")
T = TypeVar("T")

INDEX_NAME = "recall.sqlite3"
MAX_INDEXED = 256 * 1024
"""Bytes of a memory file that are indexed; a longer one is found by its beginning."""
BATCH = 200
"""Files that are taken in at a time, so that other processes get their turn."""
_SETTLED = 50_000_000
"""Nanoseconds after which a file's time tells a later change apart from this one."""
_UNSETTLED: FileStamp = (0, 0, 0, 0)
"""Stands for a file that may change again within one tick of its clock: it is read again."""


@dataclass(frozen=True, slots=True)
class RecallHit:
    """One text that answers a query, and why. `file` is a key below the memory folder, or for a
    transcript its key below the project, which is the session's id where it was not recorded;
    `saved` is when it was written, in seconds; `line` is the first of `passage` in the file,
    counted from 1, or the turn's place in its session."""

    file: str
    score: float
    kind: HitKind
    type: str = ""
    name: str = ""
    description: str = ""
    saved: float = 0.0
    why: RankReasons = ()
    passage: str = ""
    line: int = 0
    session: str = ""
    message: str = ""
    evidence: float = 0.0
    sentence: int = 0  # of a message, the one that it was found for
    body: str = ""  # of a memory, as far as it is indexed

    @property
    def clear(self) -> bool:
        """Whether it is clearly about the query: the gate for what is injected unasked."""
        return self.evidence >= CLEAR


class _Sessions:
    """The keys of sessions' transcripts, as against those of recorded dialogues."""

    def __contains__(self, key: object) -> bool:
        return not str(key).startswith(f"{places.DIALOGUES}/")


SESSIONS: Container[str] = _Sessions()


class RecallIndex:
    """One index file, open. Any thread may use it; calls wait for one another."""

    def __init__(self, path: Path, say: Say, header_lines: int = HEADER_LINES) -> None:
        self.path = path
        self._header_lines = header_lines
        self._say = say
        self._turn = threading.RLock()
        self._is_closed = False
        self.folders: dict[str, int] = {}  # that were looked at, and when each changed last
        self.begun = 0  # how often it had to be made anew, and is empty until a refresh
        self._begin(bases.open_database(path, say))

    def _begin(self, base: sqlite3.Connection) -> None:
        self._base = base
        self._place = _place(self.path)
        self._notes = NoteIndex(base, self._header_lines)
        self._turns = Turns(base)
        self._vectors = {kind: Vectors(base, kind) for kind in KINDS}

    @classmethod
    def open(
        cls, path: Path, *, say: Say = say_nothing, header_lines: int = HEADER_LINES
    ) -> RecallIndex:
        """The index at a path, made if missing, and made anew where it is broken. Frontmatter
        counts where it closes within so many lines."""
        return cls(path, say, header_lines)

    def close(self) -> None:
        with self._turn:
            self._is_closed = True
            self._base.close()

    def __enter__(self) -> RecallIndex:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()

    # Keeping up with the files

    def refresh(self, folder: Path, *, paths: Sequence[str] | None = None) -> RefreshResult:
        """Bring the index up to date with a memory folder, or with these of its files."""
        keys = (
            None
            if paths is None
            else [key for key in dict.fromkeys(paths) if is_topic(key) and is_text(key)]
        )
        found = FolderScan()
        if keys is None:  # files are looked at beside searches: only the database is held
            known = self._with_rebuild(self._known_files, None)
            if known is None:
                return RefreshResult(whole=False)
            found = scan(folder, known)
        else:
            found = self._with_rebuild(lambda: self._look(folder, keys), found)
        done = removed = 0
        if found.changed:
            try:
                with Folder(folder, create=False) as files:
                    for batch in _batches(_read(files, found)):
                        put = self._with_rebuild(partial(self._put, batch), None)
                        if put is None:
                            return RefreshResult(found.seen, done, whole=False)
                        done += put
            except (StoreError, NotFound):
                found.gone += found.changed
        for gone in _batches(found.gone):
            removed += self._with_rebuild(partial(self._remove, gone), 0)
        self.folders = found.folders or self.folders
        return RefreshResult(found.seen, done, removed)

    def _known_files(self) -> KnownFiles:
        if self._notes.other_heads:
            with self._writing():
                self._notes.read_anew()
        return self._notes.known()

    def _put(self, batch: Sequence[tuple[str, bytes, FileStamp, float]]) -> int:
        with self._writing():
            return sum(self._notes.put(*one) for one in batch)

    def _remove(self, gone: Sequence[str]) -> int:
        with self._writing():
            return sum(self._notes.remove(key) for key in gone)

    def _look(self, folder: Path, keys: Iterable[str]) -> FolderScan:
        """The files at these keys against what is known of them."""
        found = FolderScan()
        for key in keys:
            mark = _file_stamp(folder / key)
            if mark is None:
                found.gone.append(key)
                continue
            found.seen += 1
            if mark != self._notes.mark(key):
                found.changed[key] = mark
        return found

    def refresh_transcripts(self, folder: Path, *, recorded: bool = False) -> RefreshResult:
        """Bring the index up to date with the transcripts of a project, or with the recorded
        dialogues alone."""
        instead = RefreshResult(whole=False)
        return self._with_rebuild(lambda: self._refresh_turns(folder, recorded), instead)

    def _refresh_turns(self, folder: Path, only_recorded: bool) -> RefreshResult:
        own = () if only_recorded else places.sessions(folder)
        found = {one.id: _file_stamp(one.path) for one in own}
        recorded = places.sessions(folder / places.DIALOGUES)
        found |= {f"{places.DIALOGUES}/{one.id}": _file_stamp(one.path) for one in recorded}
        known = self._turns.known()
        if only_recorded:
            known = {key: mark for key, mark in known.items() if key not in SESSIONS}
        changed = [key for key, mark in found.items() if mark and known.get(key) != mark]
        gone = [key for key in known if not found.get(key)]
        if changed:
            with Folder(folder, create=False) as files:
                for session in changed:
                    read = list(_entries(files, session))
                    first = read[0].record if read and session not in SESSIONS else None
                    name = first.session if isinstance(first, Started) else ""
                    mark = found[session] or _UNSETTLED
                    self.put_session(session, utterances(read), mark, name)
        with self._writing():
            for session in gone:
                self._turns.remove(session)
        return RefreshResult(len(found), len(changed), len(gone))

    def put_session(
        self,
        session: str,
        said: Iterable[Utterance],
        mark: FileStamp = _UNSETTLED,
        name: str = "",
    ) -> None:
        """Take in the turns of one session, in place of what was known of it."""
        with self._turn, self._writing():
            self._turns.put(session, said, mark, name)

    @contextlib.contextmanager
    def _writing(self) -> Generator[None]:
        self._base.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._base.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._base.execute("ROLLBACK")
            raise

    # Meaning

    def without_vector(
        self, model: str, most: int = 64, kind: HitKind = "memory"
    ) -> list[tuple[int, str]]:
        """Texts that have no vector of this model yet, by number."""
        return self._with_rebuild(lambda: self._vectors[kind].missing(model, most), [])

    def put_vectors(
        self, model: str, vectors: Sequence[tuple[int, Vector]], kind: HitKind = "memory"
    ) -> int:
        """Keep the vectors of texts; gives how many were kept."""

        def store_vectors() -> int:
            with self._writing():
                return self._vectors[kind].put(model, vectors)

        return self._with_rebuild(store_vectors, 0)

    # Searching

    @property
    def count(self) -> int:
        """How many memories it has."""
        asked = "SELECT texts FROM total WHERE kind = 'memory'"
        return self._with_rebuild(lambda: int(self._base.execute(asked).fetchone()[0]), 0)

    def newest(self, k: int) -> list[RecallHit]:
        """The memories that were written last."""
        asked = "SELECT key FROM file WHERE kind = 'memory' ORDER BY saved DESC LIMIT ?"
        rows = self._with_rebuild(lambda: self._base.execute(asked, (k,)).fetchall(), [])
        return [RecallHit(key, 0.0, "memory") for (key,) in rows]

    def search(
        self,
        query: Query,
        *,
        k: int = 10,
        kinds: Sequence[HitKind] = ("memory",),
        exclude: Container[str] = (),
        meaning: QueryVector | None = None,
    ) -> list[RecallHit]:
        """The texts that answer a query best, at most `k`.

        `exclude` names files and sessions; `meaning` adds what a model of the user's makes of
        the query.
        """
        if k < 1 or not (query or meaning):
            return []

        def find_hits() -> list[RecallHit]:
            hits: list[RecallHit] = []
            if "memory" in kinds:
                hits += self._memories(query, k, exclude, meaning)
            if "transcript" in kinds:
                likeness = self._likeness("transcript", meaning)
                turns = self._turns.ranked(query, exclude=exclude, likeness=likeness)
                hits += [hit for one in turns[:k] if (hit := self._turn_hit(one))]
            return sorted(hits, key=lambda hit: -hit.score)[:k]

        return self._with_rebuild(find_hits, [])

    def about(
        self,
        text: str,
        now: float,
        *,
        k: int = 10,
        exclude: Container[str] = (),
        meanings: Sequence[QueryVector] = (),
    ) -> list[RecallHit]:
        """The memories for which most speaks in some sentence of a message, at most `k`.

        `meanings` are what a model makes of the message's sentences, in their order.
        """
        asked = sentences(text, now)

        def find_related() -> list[RecallHit]:
            known = self._vectors["memory"].closeness(meanings) or [NOTHING] * len(asked)
            rows = self._notes.about(asked, k, exclude=exclude, likeness=known)
            return [hit for weighed, one in rows if (hit := self._note(one, weighed))]

        return self._with_rebuild(find_related, [])

    def _memories(
        self,
        query: Query,
        k: int,
        exclude: Container[str],
        meaning: QueryVector | None,
    ) -> list[RecallHit]:
        likeness = self._likeness("memory", meaning)
        weighed, notes = self._notes.ranked(query, k, exclude=exclude, likeness=likeness)
        return [hit for one in notes if (hit := self._note(one, weighed))]

    def _likeness(self, kind: HitKind, meaning: QueryVector | None) -> VectorScores:
        return NOTHING if meaning is None else self._vectors[kind].closeness([meaning])[0]

    def alone(self, at: float) -> bool:
        """Whether at most one memory's file is of this time, and not many of a checkout or copy."""

        def has_own_time() -> bool:
            row = self._base.execute(
                "SELECT count(*) FROM (SELECT 1 FROM file WHERE kind = 'memory'"
                " AND saved >= ? AND saved < ? LIMIT 2)",
                (at - TOGETHER, at + TOGETHER),
            ).fetchone()
            return bool(row[0] < 2)

        return self._with_rebuild(has_own_time, False)

    def around(self, hit: RecallHit) -> list[tuple[int, str, str]]:
        """Place, speaker and words of a turn that was found, and of those beside it."""
        return self._with_rebuild(lambda: self._turns.around(hit.file, hit.line), [])

    def sessions(
        self, query: Query, *, k: int = 10, exclude: Container[str] = ()
    ) -> list[RecallHit]:
        """The sessions that answer a query best, each by its best turn."""
        if not query or k < 1:
            return []

        def find_sessions() -> list[RecallHit]:
            ranked = self._turns.sessions(query, k, exclude=exclude)
            return [hit for one in ranked if (hit := self._turn_hit(one))]

        return self._with_rebuild(find_sessions, [])

    def _note(self, one: ScoredMemory, weighed: QueryTerms) -> RecallHit | None:
        row = self._base.execute(
            "SELECT key, type, name, description, saved, line, body FROM file WHERE id = ?",
            (one.id,),
        ).fetchone()
        if row is None:
            return None
        key, kind, name, description, saved, line, body = row
        at, lines = best_lines(body, ((term.text, term.weight) for term in weighed.all))
        about = (kind, name, description, saved)
        where = (one.why, lines, line + at)
        made = RecallHit(key, one.score, "memory", *about, *where, body=body)
        return replace(made, evidence=one.evidence, sentence=one.sentence)

    def _turn_hit(self, one: ScoredMemory) -> RecallHit | None:
        row = self._base.execute(
            "SELECT file.key, file.name, turn.message, turn.speaker, turn.at, turn.said"
            " FROM turn, file WHERE turn.id = ? AND file.id = ?",
            (one.id, one.id >> PLACES),
        ).fetchone()
        if row is None:
            return None
        key, name, message, speaker, at, said = row
        place = (one.id & ((1 << PLACES) - 1)) + 1
        where = (said, place, name or key, message)
        return RecallHit(key, one.score, "transcript", "", speaker, "", at, one.why, *where)

    def _with_rebuild(self, work: Callable[[], T], instead: T) -> T:
        """The work's result. A broken index is made anew once, to be filled by the next refresh;
        a held one is left alone."""
        with self._turn:
            if self._is_closed:
                raise StoreError("the recall index is closed", where=str(self.path))
            if self._place and _place(self.path) != self._place:
                self._anew()
            try:
                return work()
            except sqlite3.OperationalError as error:
                self._say(Notice("recall", f"the index could not be used: {error}", "warning"))
            except sqlite3.DatabaseError as error:
                self._say(Notice("recall", f"the index is broken and made anew: {error}"))
                self._base.close()
                bases.discard(self.path)
                self._anew()
                with contextlib.suppress(sqlite3.Error):
                    return work()
            return instead

    def _anew(self) -> None:
        """Begin with what lies at the path, which is another file or none."""
        self._base.close()
        self._begin(bases.open_database(self.path, self._say))
        self.begun += 1


def _place(path: Path) -> tuple[int, int] | None:
    """Which file lies at a path; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _batches(items: Iterable[T]) -> Iterator[list[T]]:
    batch: list[T] = []
    for item in items:
        batch.append(item)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _read(files: Folder, found: FolderScan) -> Iterator[tuple[str, bytes, FileStamp, float]]:
    """The bytes of changed files; one that cannot be read by now, or is none of ours, is gone."""
    now = time.time_ns()
    for key, seen in found.changed.items():
        mark = seen if now - seen[3] > _SETTLED else _UNSETTLED
        try:
            yield key, files.read(key, MAX_INDEXED), mark, seen[0] / 1e9
        except (StoreError, NotFound):
            found.gone.append(key)


def _file_stamp(path: Path) -> FileStamp | None:
    try:
        return mark_of(os.lstat(path))
    except (OSError, ValueError):
        return None


def _entries(files: Folder, session: str) -> Iterator[Entry]:
    """What can be read of a transcript; parts of requests that lie beside it are not needed."""
    from reverie.transcript.codec import decode  # due where there are sessions

    with contextlib.suppress(StoreError, NotFound):
        for line in Journal.open(files, f"{session}.jsonl", write=False).read():
            if not isinstance(line, BadLine):
                with contextlib.suppress(InvalidMessage):
                    yield decode(line.text, lambda _: "")
