"""A write to a memory folder as others see it: what is asked before, and told after it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from reverie.errors import InvalidMessage, NotFound, StoreError
from reverie.light import dataclass
from reverie.store.files import Folder
from reverie.store.fs import SAFE, close, words
from reverie.store.journal import BadLine, Journal
from reverie.store.paths import fold_key
from reverie.topics.entry import is_index
from reverie.topics.index import Pointer, parse_index
from reverie.topics.versions import ABSENT, FileStamp, Version, decode

if TYPE_CHECKING:
    import sqlite3


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """A file before and after a write; None where there was or is none, or where all that
    happened is that something was added at its end."""

    key: str
    before: bytes | None
    after: bytes | None
    added: bytes = b""


@dataclass(frozen=True, slots=True)
class SavedFile:
    """What a write did: the files it changed, and what its caller should be told."""

    key: str
    changes: tuple[PendingWrite, ...]
    warnings: tuple[str, ...] = ()


WriteGuard: TypeAlias = Callable[[str, bytes], None]
"""Called with key and bytes before they are written; refuses by raising a ReverieError."""
OnLanded: TypeAlias = Callable[[PendingWrite], None]
"""Called under the folder's lock for each change that was made, in their order."""


class KnownIndexes(Protocol):
    """What is known of long indexes without reading them; asked under the folder's lock."""

    def known_pointer(self, index: str, name: str) -> KnownPointer: ...
    def grow(self, index: str, line: bytes) -> int: ...
    def twin_of(self, key: str) -> str: ...


# --- What a save must know of a memory folder's past, without reading all of it.
#
# The log of versions and the index are the truth. What a save asks them is little: which bytes a
# file had last, what was begun and not ended, which line of an index points to a file. The answers
# are derived from the log as it is read; once it is long they lie in a database beside it, with
# the place up to which they hold, and only what was added since is read. Where the log was
# rewritten, or the database is of another log, damaged or gone, the log is read from its
# beginning.
#
# Everything happens under the memory folder's lock. Nothing is kept open between two uses, and
# nothing here is missed where it is deleted.


CACHE_NAME = "heads.sqlite3"
FOLD = 64 * 2**10
"""Bytes of the log that are read anew by every process before they go into the database."""
ALIKE = 40
"""Characters of a hook by which a pointer is found."""

T = TypeVar("T")

_MARK = 256
_VERSION = 1
_SCHEMA = """
CREATE TABLE place (inode INTEGER, end INTEGER, mark BLOB);
CREATE TABLE pending (line TEXT);
CREATE TABLE file (key TEXT PRIMARY KEY, folded TEXT, name TEXT) WITHOUT ROWID;
CREATE INDEX file_folded ON file (folded);
CREATE TABLE looks (
    key TEXT PRIMARY KEY, size INTEGER, modified INTEGER, inode INTEGER, lines INTEGER
) WITHOUT ROWID;
CREATE TABLE pointer (
    within TEXT, key TEXT, times INTEGER, line TEXT, title TEXT, about TEXT,
    PRIMARY KEY (within, key)
) WITHOUT ROWID;
CREATE INDEX pointer_about ON pointer (within, about);
"""


@dataclass(slots=True)
class KnownPointer:
    """The lines of an index that point to a file: how many, and the last of them."""

    times: int = 0
    line: str = ""
    title: str = ""
    about: str = ""


@dataclass(slots=True)
class KnownIndex:
    """An index as it was last seen, and how many lines it had."""

    seen: FileStamp
    lines: int = 0


@dataclass(slots=True)
class _Recent:
    """What was read of the log and is not in the database; None stands for what is gone."""

    files: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    indexes: dict[str, KnownIndex | None] = field(default_factory=dict[str, "KnownIndex | None"])
    pointers: dict[tuple[str, str], KnownPointer] = field(
        default_factory=dict[tuple[str, str], KnownPointer]
    )
    cleared: set[str] = field(default_factory=set[str])  # indexes that were read anew


class _CacheUnreadable(Exception):
    """The database cannot be read; nobody outside sees this."""


class HistoryCache:
    """The answers for one history; `log` is the name of its log in `files`."""

    def __init__(self, files: Folder, log: str) -> None:
        self.pending: dict[str, Version] = {}
        self._begun: dict[str, str] = {}  # the lines of those
        self._files = files
        self._log = log
        self._recent = _Recent()
        self._inode = 0
        self._end = 0  # how far the log was read
        self._kept = 0  # how much of it is in the database
        self._looked: tuple[int, ...] = ()

    # Reading the log

    def refresh(self) -> None:
        """Read what was added to the log since; where that is much, put it in the database."""
        try:
            self._read_on()
        except _CacheUnreadable:
            self.discard()
            self._read_on()

    def _read_on(self) -> None:
        try:
            fd = self._files.open_read(self._log)
        except NotFound:
            return
        try:
            info = os.fstat(fd)
            rewritten = info.st_ino != self._inode or info.st_size < self._end
            if rewritten or (info.st_size > self._end and self._look() != self._looked):
                self._begin(fd, info)
        except OSError as error:
            what = f"The history could not be read: {words(error)}"
            raise StoreError(what, where=str(self._files.root / self._log)) from error
        finally:
            close(fd)
        if info.st_size > self._end:
            for line in Journal.open(self._files, self._log, write=False).read(self._end):
                if not isinstance(line, BadLine):
                    self._take(line.text)
                    self._end = line.end
        if self._end - self._kept > FOLD:
            self.keep()

    def _look(self) -> tuple[int, ...]:
        """How the database looks from outside: another process may have put more into it."""
        with contextlib.suppress(OSError):
            found = os.stat(self._files.root / CACHE_NAME, follow_symlinks=False)
            return found.st_ino, found.st_size, found.st_mtime_ns
        return ()

    def _begin(self, fd: int, info: os.stat_result) -> None:
        self.pending, self._begun, self._recent = {}, {}, _Recent()
        self._inode, self._end, self._kept = info.st_ino, 0, 0
        self._looked = self._look()
        for inode, end, mark in self._ask("SELECT inode, end, mark FROM place", always=True):
            if inode == info.st_ino and end <= info.st_size and mark == _mark(fd, end):
                self._end = self._kept = end
        for (line,) in self._ask("SELECT line FROM pending"):
            self._take(line)

    def _take(self, text: str) -> None:
        try:
            told = decode(text)
        except InvalidMessage:
            return
        if isinstance(told, Version):
            self.pending[told.id] = told
            self._begun[told.id] = text
        elif isinstance(told, FileStamp):
            known = self._index(told.key)
            self._recent.indexes[told.key] = KnownIndex(told, known.lines) if known else None
        elif told is not None:
            version = self.pending.pop(told[1], None)
            self._begun.pop(told[1], None)
            if version is not None and told[0] == "landed":
                self._land(version)

    def _land(self, version: Version) -> None:
        key = version.key
        self._recent.files[key] = None if version.added else version.after
        if not is_index(key):
            return
        swap = ("", version.added) if version.added else version.swap
        known = self._index(key)
        if known is None or swap is None:
            self._recent.indexes[key] = None  # to be read anew
            return
        for by, text in zip((-1, 1), swap, strict=True):
            for one, line in _pointers(text.encode("utf-8", "surrogatepass")):
                self._count(key, one, line, by)
        lines = known.lines + swap[1].count("\n") - swap[0].count("\n")
        self._recent.indexes[key] = KnownIndex(FileStamp(key, -1, 0, 0), lines)

    def _count(self, index: str, one: Pointer, line: str, by: int) -> None:
        known = self._pointer(index, one.key)
        times = max(known.times + by, 0)
        if by > 0:
            known = KnownPointer(times, line, one.title, (one.hook or one.title)[:ALIKE])
        self._recent.pointers[index, one.key] = replace(known, times=times)

    # Answers

    def head(self, key: str) -> str | None:
        """What the last bytes of a file are called; None where that was not worked out."""
        return self._sure(lambda: self._head(key))

    def twin_of(self, key: str) -> str:
        """Another file whose name some file system would take for this one, or nothing."""
        return self._sure(lambda: self._twin_of(key))

    def index(self, key: str) -> KnownIndex | None:
        """An index whose pointers are known."""
        return self._sure(lambda: self._index(key))

    def pointer(self, index: str, name: str) -> KnownPointer:
        """The lines of an index that point to a file."""
        return self._sure(lambda: self._pointer(index, name))

    def like(self, index: str, about: str) -> list[str]:
        """The files whose hooks begin like this."""
        return self._sure(lambda: self._like(index, about))

    def _sure(self, look: Callable[[], T]) -> T:
        """An answer; a database that cannot be read is made anew from the log first."""
        try:
            return look()
        except _CacheUnreadable:
            self.discard()
            self.refresh()
            return look()

    def _head(self, key: str) -> str | None:
        if key in self._recent.files:
            return self._recent.files[key]
        rows = self._ask("SELECT name FROM file WHERE key = ?", key)
        return rows[0][0] if rows else ABSENT

    def _twin_of(self, key: str) -> str:
        folded = fold_key(key)
        found = [one for one, name in self._recent.files.items() if name != ABSENT]
        near = [one for one in found if one != key and fold_key(one) == folded]
        asked = "SELECT key FROM file WHERE folded = ? AND key != ? AND name IS NOT ''"
        near += [row[0] for row in self._ask(asked, folded, key)]
        return next((one for one in near if self._head(one) != ABSENT), "")

    def _index(self, key: str) -> KnownIndex | None:
        if key in self._recent.indexes:
            return self._recent.indexes[key]
        rows = self._ask("SELECT size, modified, inode, lines FROM looks WHERE key = ?", key)
        return KnownIndex(FileStamp(key, *rows[0][:3]), rows[0][3]) if rows else None

    def _pointer(self, index: str, name: str) -> KnownPointer:
        known = self._recent.pointers.get((index, name))
        if known is not None or index in self._recent.cleared:
            return known or KnownPointer()
        asked = "SELECT times, line, title, about FROM pointer WHERE within = ? AND key = ?"
        rows = self._ask(asked, index, name)
        return KnownPointer(*rows[0]) if rows else KnownPointer()

    def _like(self, index: str, about: str) -> list[str]:
        recent = self._recent.pointers.items()
        found = [name for (within, name), one in recent if within == index and one.about == about]
        if index not in self._recent.cleared:
            asked = "SELECT key FROM pointer INDEXED BY pointer_about"
            asked += " WHERE within = ? AND about = ? AND times > 0 LIMIT 50"
            found += [row[0] for row in self._ask(asked, index, about)]
        return list(dict.fromkeys(found))

    def learn(self, seen: FileStamp, data: bytes) -> None:
        """Take in an index that is as its last version says."""
        recent = self._recent
        for within, name in [one for one in recent.pointers if one[0] == seen.key]:
            del recent.pointers[within, name]
        recent.cleared.add(seen.key)
        for one, line in _pointers(data):
            known = recent.pointers.setdefault((seen.key, one.key), KnownPointer())
            known.times += 1
            about = (one.hook or one.title)[:ALIKE]
            known.line, known.title, known.about = line, one.title, about
        recent.indexes[seen.key] = KnownIndex(seen, data.count(b"\n"))
        self.keep()

    # The database

    def keep(self) -> None:
        """Put what was read of the log in the database. Where that fails, it is read again."""
        fd = self._files.open_read(self._log)
        try:
            mark = _mark(fd, self._end)
        finally:
            close(fd)
        with contextlib.suppress(OSError, StoreError):
            try:
                self._store(mark)
            except _CacheUnreadable:
                self.discard()
                return
            self._recent, self._kept = _Recent(), self._end
            self._looked = self._look()

    def discard(self) -> None:
        """Remove the database; the log is read from its beginning next time."""
        self._inode = 0
        for name in (CACHE_NAME, f"{CACHE_NAME}-journal"):
            with contextlib.suppress(NotFound, StoreError):
                self._files.remove(name, durable=False)

    def _store(self, mark: bytes) -> None:
        recent = self._recent
        with self._base(create=True) as base, base:
            base.execute("BEGIN IMMEDIATE")
            if not self._kept:
                for table in ("file", "looks", "pointer"):
                    base.execute(f"DELETE FROM {table}")
            base.executemany(
                "INSERT OR REPLACE INTO file VALUES (?, ?, ?)",
                ((key, fold_key(key), name) for key, name in recent.files.items()),
            )
            base.executemany("DELETE FROM pointer WHERE within = ?", ((k,) for k in recent.cleared))
            base.executemany(
                "INSERT OR REPLACE INTO pointer VALUES (?, ?, ?, ?, ?, ?)",
                (
                    (*place, one.times, one.line, one.title, one.about)
                    for place, one in recent.pointers.items()
                ),
            )
            base.executemany("DELETE FROM looks WHERE key = ?", ((k,) for k in recent.indexes))
            base.executemany("INSERT INTO looks VALUES (?, ?, ?, ?, ?)", _looks(recent.indexes))
            base.execute("DELETE FROM pending")
            begun = ((self._begun[name],) for name in self.pending)
            base.executemany("INSERT INTO pending VALUES (?)", begun)
            base.execute("DELETE FROM place")
            base.execute("INSERT INTO place VALUES (?, ?, ?)", (self._inode, self._end, mark))

    def _ask(self, query: str, *values: object, always: bool = False) -> list[tuple[Any, ...]]:
        if not self._kept and not always:
            return []
        try:
            with self._base() as base:
                return base.execute(query, values).fetchall()
        except (OSError, NotFound):
            return []

    @contextlib.contextmanager
    def _base(self, *, create: bool = False) -> Generator[sqlite3.Connection]:
        path = self._files.root / CACHE_NAME
        flags = os.O_RDWR | (os.O_CREAT if create else 0)
        os.close(os.open(path, flags | SAFE, 0o600))
        import sqlite3  # due where there is one

        try:
            base = sqlite3.connect(path, timeout=5.0, isolation_level=None, check_same_thread=False)
            try:
                (version,) = base.execute("PRAGMA user_version").fetchone()
                if version != _VERSION and not create:
                    raise NotFound("There is no database", where=str(path))
                if version != _VERSION:
                    made = f"{_drop_statements(base)}{_SCHEMA}PRAGMA user_version = {_VERSION};"
                    base.executescript(made)
                yield base
            finally:
                base.close()
        except sqlite3.Error as error:
            raise _CacheUnreadable from error


def _pointers(data: bytes) -> Iterator[tuple[Pointer, str]]:
    """The pointers to files of ours, each with its line."""
    for one in parse_index(data).pointers:
        if one.key:
            yield one, data[one.start : one.end].rstrip(b"\r\n").decode("utf-8", "replace")


def _drop_statements(base: sqlite3.Connection) -> str:
    rows = base.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return "".join(f'DROP TABLE "{name}";' for (name,) in rows)


def _looks(indexes: dict[str, KnownIndex | None]) -> Iterable[tuple[object, ...]]:
    for key, one in indexes.items():
        if one is not None:
            yield key, one.seen.size, one.seen.modified, one.seen.inode, one.lines


def _mark(fd: int, end: int) -> bytes:
    """The last bytes of the log up to a place: of another log they differ."""
    start = max(0, end - _MARK)
    return os.pread(fd, end - start, start)
