"""The memory folder on disk: topic files, their index, and both changed as one step.

A save writes the file first, then its pointer, under the folder's lock; a removal goes the other
way round. Whoever dies in between leaves a file that a check finds, never a pointer to nothing.
Other lines of the index keep their bytes, also those that a program without our lock added
meanwhile: the index lands only where it still is as it was read. A new pointer of a long index
is added at its end, so that what a save costs does not grow with the folder; only a line that
changes makes the index be written anew. A guard sees every byte before it is written and may
refuse it.

Reading is bounded, follows no link and hangs on no pipe. Once the folder is gone or closed to
us, reading gives nothing, writing raises, one warning is said, and nothing is made elsewhere.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator, Sequence
from functools import partial
from pathlib import Path

from reverie.errors import InvalidInput, NotFound, PathRefused, StoreError
from reverie.store import memory_access
from reverie.store.files import Changed, Folder, Stat
from reverie.store.fs import digest
from reverie.store.history_cache import KnownIndexes, OnLanded, PendingWrite, SavedFile, WriteGuard
from reverie.store.lock import release
from reverie.store.memory_access import FolderErrors, lock_folder
from reverie.topics import entry as entries
from reverie.topics import index as indexes
from reverie.topics import manifest
from reverie.topics.entry import INDEX, MAX_READ, TopicFile
from reverie.topics.frontmatter import BOM, MAX_BYTES
from reverie.topics.index import Index
from reverie.topics.manifest import (
    HEADER_LINES,
    IndexLimits,
    ManifestLine,
    SentIndex,
    newest_first,
    record,
)
from reverie.world import Notice, Say, say_nothing

MAX_INDEX = 16 * 1024 * 1024
"""Bytes of an index that are read; a longer one is not changed either."""
LONG_INDEX = 64 * 1024
"""Bytes from which on an index is not read for a save, but known, and added to at its end."""
MAX_KEPT = 16 * 1024 * 1024
"""Bytes of a file's old contents that a change carries."""
_HEAD = MAX_BYTES + len(BOM) + 1
_TRIES = 20


class MemoryFolder:
    """One memory folder. Keys are relative: `topic.md`, `team/topic.md`."""

    def __init__(
        self,
        root: Path,
        *,
        create: bool = True,
        guard: WriteGuard | None = None,
        landed: OnLanded | None = None,
        say: Say = say_nothing,
        limits: IndexLimits | None = None,
        header_lines: int = HEADER_LINES,
        known: KnownIndexes | None = None,
        long_index: int = LONG_INDEX,
    ) -> None:
        self.root = root
        self._known = known
        self._long_index = long_index
        self.limits = limits or IndexLimits()
        self.files = Folder(root, create=create)
        self._guard = guard
        self._landed = landed
        self._say = say
        self._trouble = FolderErrors(say)
        self._header_lines = header_lines
        self._thread = threading.RLock()
        self._depth = 0
        self._told: set[str] = set()  # indexes that were said to be over their limits

    def close(self) -> None:
        self.files.close()

    def __enter__(self) -> MemoryFolder:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()

    # Reading

    def keys(self) -> tuple[str, ...]:
        """The topic files, those of the team included, sorted."""
        return tuple(
            key for key in self._trouble.soft(self._list_keys, ()) if entries.is_topic(key)
        )

    def read(self, key: str, limit: int = MAX_READ) -> TopicFile:
        """One topic file; of a large one the beginning, and the entry says so."""
        found = self.files.stat(key)
        return TopicFile(key, self.files.read(key, limit), found.modified / 1e9, found.size)

    def all_keys(self) -> tuple[str, ...]:
        """Every file of ours in the folder, indexes and logs among them, sorted."""
        return self.files.list()

    def bytes_of(self, key: str, limit: int | None = None) -> bytes:
        """Any file's bytes, at most `limit` of them."""
        return self.files.read(key, limit)

    def stat(self, key: str) -> Stat:
        """A file's size and times."""
        return self.files.stat(key)

    def exists(self, key: str) -> bool:
        return self.files.exists(key)

    def digest(self, key: str) -> str:
        """The SHA-256 of a file's bytes."""
        return self.files.digest(key)

    def make_folder(self, key: str) -> None:
        """Make a folder below this one, where it is not there."""
        self.files.sub(key).close()

    def scan(self) -> tuple[ManifestLine, ...]:
        """Every topic file by its first lines, the newest first."""
        found: list[ManifestLine] = []
        for key in self.keys():
            with contextlib.suppress(StoreError, NotFound):
                known = self.files.stat(key)
                head = self.files.read(key, _HEAD)
                when, lines = known.modified / 1e9, self._header_lines
                found.append(record(key, head, modified=when, size=known.size, lines=lines))
        return newest_first(found)

    def index(self, key: str = INDEX) -> Index:
        """The index, or the team's; an empty one where there is none."""
        return indexes.parse_index(self.index_data(key))

    def index_data(self, key: str = INDEX) -> bytes:
        """The bytes of an index; none where there is none."""
        return self._trouble.soft(lambda: self._index_bytes(key), b"")

    def index_sent(
        self, key: str = INDEX, scanned: Sequence[ManifestLine] | None = None
    ) -> SentIndex:
        """What of an index a session is sent; one that is too long is ranked by what a scan
        found, which the caller may have at hand."""
        data = self.index(key).data
        if not manifest.limits_hit(data, self.limits):
            return manifest.render_index(data, self.limits)
        below = key.removesuffix(INDEX)
        facts = {
            one.key.removeprefix(below): one.facts
            for one in (self.scan() if scanned is None else scanned)
            if one.key.startswith(below)
        }
        return manifest.render_index(data, self.limits, facts)

    # Writing

    def save(
        self,
        key: str,
        data: bytes,
        *,
        title: str = "",
        hook: str = "",
        expect: str | None = None,
        exclusive: bool = False,
        pointer: bool = True,
    ) -> SavedFile:
        """Write a topic file and its pointer; without a title the pointer keeps the one it has
        unless that was the file's old name, and what is missing comes from the file.

        `expect` is the SHA-256 that the file must still have, `exclusive` says that there must
        be none: otherwise `Changed`, and nothing is written.
        """
        index, name, line = self._pointer(key, data, title, hook)

        put_pointer = partial(_put_pointer, name, line)
        warnings: list[str] = []
        with self.locked():
            self._allow(key, data)
            more = self._line_to_add(index, name, line) if pointer else b""
            allowed = more.removesuffix(b"\n") if more else None
            if more is None:
                allowed = put_pointer(self._whole_index(index) or b"")
            if allowed is not None:
                self._allow(index, allowed)
            twin = self._known.twin_of(key) if more and self._known else None
            changes = [self._put(key, data, expect=expect, exclusive=exclusive, twin=twin)]
            if more is None:
                changes += self._change_index(index, put_pointer, warnings, allowed=allowed)
            elif more:
                changes += self._add_to_index(index, more, warnings)
        return SavedFile(key, tuple(changes), tuple(warnings))

    def with_pointer(self, key: str, data: bytes, hook: str = "") -> dict[str, bytes]:
        """The files that `save` would write, as they would be: the topic file, and its index."""
        index, name, line = self._pointer(key, data, "", hook)
        old = self._whole_index(index) or b""
        new = _put_pointer(name, line, old)
        return {key: data} if new == old else {key: data, index: new}

    def _pointer(
        self, key: str, data: bytes, title: str, hook: str
    ) -> tuple[str, str, Callable[[str], str]]:
        """The index of a topic file, the name it has there, and its line by the title so far."""
        if not entries.is_topic(key):
            raise InvalidInput("This is not a topic file", where=key, do="Name it `topic.md`")
        one = TopicFile(key, data)
        index = entries.index_of(key)
        name = key.removeprefix(index.removesuffix(INDEX))
        renamed = self._named_so_far(key) if not title else frozenset[str]()

        def line(known: str) -> str:
            called = title or (known if known not in renamed else "") or one.title
            return indexes.line(name, called, hook or one.description, width=self.limits.width)

        return index, name, line

    def _line_to_add(self, index: str, name: str, line: Callable[[str], str]) -> bytes | None:
        """The line that a long index needs at its end, or b"" where it has it; None where the
        index must be read for that."""
        if self._known is None or not self.is_long(index):
            return None
        known = self._known.known_pointer(index, name)
        text = line(known.title)
        if known.times == 1 and known.line == text:
            return b""
        full = self.files.stat(index).size + len(text.encode()) >= MAX_INDEX
        if (
            full
            or known.times
            or not indexes.ends_in_pointer(memory_access.tail(self.files, index))
        ):
            return None
        return f"{text}\n".encode()

    def is_long(self, index: str) -> bool:
        """Whether an index is not read for a save."""
        return self.files.exists(index) and self.files.stat(index).size > self._long_index

    def _add_to_index(self, key: str, line: bytes, warnings: list[str]) -> list[PendingWrite]:
        lines = self._known.grow(key, line) if self._known else 0
        warnings += self._told_over(
            manifest.over(lines, self.files.stat(key).size, self.limits), key
        )
        return [PendingWrite(key, None, None, line)]

    def _named_so_far(self, key: str) -> frozenset[str]:
        """What a pointer made from the file as it stands is titled, alone or by its hook; nothing
        where there is none."""
        try:
            old = self.read(key)
        except (NotFound, StoreError):
            return frozenset()
        hooks = "", old.description
        rows = [indexes.line(key, old.title, hook, width=self.limits.width) for hook in hooks]
        made = [indexes.find_pointer(f"{row}\n".encode(), key) for row in rows]
        return frozenset(one.title for one in made if one)

    def point(self, key: str) -> SavedFile:
        """Put the pointer to a topic file in its index, where there is none."""
        index = entries.index_of(key)
        name = key.removeprefix(index.removesuffix(INDEX))
        warnings: list[str] = []
        with self.locked():
            one = self.read(key)
            if self._known and self.is_long(index) and self._known.known_pointer(index, name).times:
                return SavedFile(key, ())

            def add_pointer(old: bytes) -> bytes:
                if indexes.find_pointer(old, name) is not None:
                    return old
                return indexes.put(old, name, one.title, one.description, width=self.limits.width)

            changes = self._change_index(index, add_pointer, warnings)
        return SavedFile(key, tuple(changes), tuple(warnings))

    def remove(self, key: str, *, expect: str | None = None) -> SavedFile:
        """Remove every pointer to a topic file, then the file; no guard is asked."""
        index = entries.index_of(key)
        name = key.removeprefix(index.removesuffix(INDEX))
        warnings: list[str] = []
        with self.locked():
            before = self.files.read(key, MAX_KEPT)
            found = self.files.digest(key)
            if expect not in (None, found):
                raise Changed("The file has changed since it was read", where=key)
            changes = self._change_index(
                index, lambda old: indexes.without(old, name), warnings, asked=False
            )
            self.files.remove(key, expect=found)
            changes.append(self._report_change(PendingWrite(key, before, None)))
        return SavedFile(key, tuple(changes), tuple(warnings))

    def write(
        self,
        key: str,
        data: bytes,
        *,
        expect: str | None = None,
        exclusive: bool = False,
        modified: int = 0,
    ) -> SavedFile:
        """Write any file of the folder, an index among them, and nothing else; `modified` is its
        time in nanoseconds, if not now."""
        with self.locked():
            self._allow(key, data)
            change = self._put(key, data, expect=expect, exclusive=exclusive, modified=modified)
        return SavedFile(key, (change,), self._over(key, data))

    @contextlib.contextmanager
    def locked(self) -> Generator[None]:
        """Keep other writers of this folder waiting; may be entered again inside itself."""
        with self._thread, self._trouble.failing():
            if self._depth:
                yield
                return
            with self._trouble.missing():
                self.files.must_be_there()
                fd = lock_folder(self.files)
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                release(fd)

    def _put(
        self,
        key: str,
        data: bytes,
        *,
        expect: str | None,
        exclusive: bool,
        modified: int = 0,
        twin: str | None = None,
    ) -> PendingWrite:
        before = self._before(key)
        self.files.write(
            key, data, expect=expect, exclusive=exclusive, modified=modified, twin=twin
        )
        return self._report_change(PendingWrite(key, before, data))

    def _change_index(
        self,
        key: str,
        edit: Callable[[bytes], bytes],
        warnings: list[str],
        *,
        asked: bool = True,
        allowed: bytes | None = None,
    ) -> list[PendingWrite]:
        """Land an edit on the index as it is by then; others may write it without our lock.
        No guard is asked about bytes that are allowed already."""
        for attempt in range(_TRIES):
            before = self._whole_index(key)
            old = before or b""
            new = edit(old)
            if new == old:
                return []
            if asked and new != allowed:
                self._allow(key, new)
            try:
                known = None if before is None else digest(before)
                self.files.write(key, new, expect=known, exclusive=known is None)
            except Changed:
                if attempt + 1 == _TRIES:
                    raise
                continue
            warnings += self._over(key, new)
            return [self._report_change(PendingWrite(key, before, new))]
        return []

    def _over(self, key: str, data: bytes) -> tuple[str, ...]:
        return self._told_over(manifest.limits_hit(data, self.limits), key)

    def _told_over(self, hit: tuple[str, ...], key: str) -> tuple[str, ...]:
        said = manifest.write_warning(hit, key) if entries.is_index(key) else ""
        if said and key not in self._told:
            self._told.add(key)  # once while it is open; `memory check` has it at any time
            self._say(Notice("memory", said, "warning"))
        return (said,) if said else ()

    def _allow(self, key: str, data: bytes) -> None:
        if self._guard is not None:
            self._guard(key, data)

    def _report_change(self, change: PendingWrite) -> PendingWrite:
        if self._landed is not None:
            self._landed(change)
        return change

    def _before(self, key: str, most: int = MAX_KEPT) -> bytes | None:
        try:
            return self.files.read(key, most)
        except NotFound:
            return None

    def _whole_index(self, key: str) -> bytes | None:
        data = self._before(key, MAX_INDEX + 1)
        if data is not None and len(data) > MAX_INDEX:
            raise InvalidInput(
                f"The index is over {MAX_INDEX:,} bytes", where=key, do="Shorten it by hand"
            )
        return data

    def _index_bytes(self, key: str) -> bytes:
        try:
            return self.files.read(key, MAX_INDEX)
        except (NotFound, PathRefused):
            self.files.must_be_there()
            return b""

    # A folder that is no longer there

    def _list_keys(self) -> tuple[str, ...]:
        self.files.must_be_there()
        return self.files.list()


def _put_pointer(name: str, line: Callable[[str], str], old: bytes) -> bytes:
    found = indexes.find_pointer(old, name)
    return indexes.put_line(old, found, line(found.title if found else ""))
