"""Every version of every memory file, kept beside the memory folder and out of its way.

A version's bytes are an object named by their SHA-256, compressed; what happened is a line in
one log. The order is object, line, file, line: the first line says what is about to be written
and by whom, the second that it landed. A process that dies in between leaves a line without its
second one, and the next look at the folder tells by the file itself whether the write came to
pass. What lies in the folder and is in no version, since an editor or another program wrote it,
is recorded at that look too. So every version that was ever seen is kept, with its origin.

A line added to the end of a long index is a step without an object: what was added stands in the
log, and the bytes are put together from the last whole ones when somebody asks for them.

All of it happens under the memory folder's own lock. Nothing is rewritten but by `forget`; a log
line that cannot be read is passed over; bytes that do not match their name are never handed out.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from pathlib import Path

from reverie.errors import InvalidInput, InvalidMessage, NotFound, StoreError
from reverie.store import memory_access
from reverie.store.files import Folder
from reverie.store.fs import close, digest, words
from reverie.store.history_cache import HistoryCache, PendingWrite
from reverie.store.journal import BadLine, Journal
from reverie.store.memory_folder import MAX_KEPT, MemoryFolder
from reverie.store.objects import LARGEST, Damaged, ObjectStore
from reverie.text.format import changed_lines
from reverie.topics.entry import is_index
from reverie.topics.trust import Trust
from reverie.topics.versions import (
    ABSENT,
    HistoryState,
    Origin,
    Version,
    decode,
    encode,
    encode_seen,
    outside,
)
from reverie.transcript.blocks import dump
from reverie.world import Notice, Say, say_nothing

LOG = "log.jsonl"
_PREFIX = 4
_TICK = 2 * 10**9
_FEW = 4_000


class History:
    """The versions of one memory folder. `bind` ties it to the folder it records."""

    def __init__(
        self,
        root: Path,
        *,
        now: Callable[[], float],
        new_id: Callable[[], str] = lambda: os.urandom(8).hex(),
        say: Say = say_nothing,
        create: bool = True,
    ) -> None:
        self.files = Folder(root, create=create)
        self.objects = ObjectStore(self.files)
        self.state = HistoryState(self._content_or_nothing)
        self.heads = HistoryCache(self.files, LOG)
        self.faults: dict[int, str] = {}
        self._now = now
        self.new_id = new_id
        self._say = say
        self._memory: MemoryFolder | None = None
        self._origin: Origin | None = None
        self._group = ""
        self._undoes: tuple[str, ...] = ()
        self._read: tuple[int, int] = (0, 0)  # the log's inode, and how far it was read
        self._seen: dict[str, tuple[int, int, str]] = {}  # size, time and hash of files
        self.written: set[str] = set()  # files that were changed through this one

    def bind(self, memory: MemoryFolder) -> None:
        """Record what happens to this folder; hand it `guard` and `landed` as its hooks."""
        self._memory = memory

    def close(self) -> None:
        self.files.close()

    @contextlib.contextmanager
    def by(self, origin: Origin, undoes: tuple[str, ...] = (), group: str = "") -> Generator[str]:
        """Writes inside come from here, and belong together; gives the name of the group, which
        is a new one, or that of a step that goes on."""
        before = self._origin, self._group, self._undoes
        self._origin, self._group, self._undoes = origin, group or self.new_id(), undoes
        try:
            yield self._group
        finally:
            self._origin, self._group, self._undoes = before

    # What the memory folder calls

    def guard(self, key: str, data: bytes) -> None:
        """Say what is about to be written, its bytes kept first."""
        if is_index(key) and data and b"\n" not in data:
            return  # one pointer, shown to the guards before the whole index is
        self.intend(key, data)

    def landed(self, change: PendingWrite) -> None:
        """Say that it was written. A failure here is made good at the next look."""
        self.written.add(change.key)
        try:
            self._land(change)
        except StoreError as error:
            text = f"the history of {change.key} is behind until it is looked at again: {error}"
            self._say(Notice("memory", text, "warning"))

    def intend(self, key: str, data: bytes | None) -> None:
        """Record an intent to write a file, or to remove it (None), under the folder's lock."""
        self.heads.refresh()
        self._seen.pop(key, None)
        self.settle(self.heads, [key])
        self._notice([key], outside(), self._head)
        before = self._head(key)
        after = ABSENT if data is None else self.put(data)
        if before != after:
            intent = replace(self.version(key, before, after), was=self._time_of(key))
            if is_index(key) and data is not None:
                intent = replace(intent, swap=self._swap(key, data))
            self.append([encode(intent)], durable=True)

    def _swap(self, key: str, data: bytes) -> tuple[str, str] | None:
        """The few lines of an index that a write takes out and puts in, if they are few."""
        if self.heads.index(key) is None:
            return None
        out, new = (
            part.decode("utf-8", "replace") for part in changed_lines(self._bytes(key), data)
        )
        return (out, new) if len(out) + len(new) <= _FEW else None

    def _bytes(self, key: str) -> bytes:
        try:
            return self.bound().bytes_of(key)
        except NotFound:
            return b""

    def _land(self, change: PendingWrite) -> None:
        self.heads.refresh()
        head = self._landed_head(change.key)
        before = ABSENT if change.before is None else head
        if change.before is not None and len(change.before) < MAX_KEPT:  # else it may be cut
            before = digest(change.before)
            if before != head or self.heads.head(change.key) is not None:  # else put together
                self.put(change.before)
        after = ABSENT if change.after is None else self.put(change.after)
        lines: list[str] = []
        if head != before:  # someone without our lock was there between the two
            lines += _whole(self.version(change.key, head, before, outside()))
        intents = [v for v in self.heads.pending.values() if v.key == change.key]
        fits = [v for v in intents if (v.before, v.after) == (before, after)]
        lines += [void_line(v) for v in intents if v not in fits[-1:]]
        if fits:
            lines.append(landed_line(fits[-1]))
        elif before != after:
            lines += _whole(self.version(change.key, before, after))
        if change.after is not None and is_index(change.key) and self.heads.index(change.key):
            lines.append(encode_seen(memory_access.observe_file(self.bound().files, change.key)))
        self.append(lines, durable=not fits)

    def _head(self, key: str) -> str:
        """What a file's last bytes are called, without reading the whole log where that goes."""
        name = self.heads.head(key)
        if name is not None:
            return name
        known = self.heads.index(key)
        if known is not None and known.seen == memory_access.observe_file(self.bound().files, key):
            return self.bound().digest(key)
        self.refresh()
        return self.state.head(key)

    def _landed_head(self, key: str) -> str:
        """The same once the file is written: what was intended begins at the head."""
        intents = [v for v in self.heads.pending.values() if v.key == key and not v.added]
        return intents[-1].before if intents else self._head(key)

    # Looking

    def look(
        self, origin: Origin | None = None, keys: Iterable[str] | None = None
    ) -> tuple[Version, ...]:
        """Record what the log does not know: writes cut off, and those of others.

        `origin` says where new changes come from, where the caller knows: the main agent's own
        tools. `keys` looks at those files alone.
        """
        memory = self.bound()
        with memory.locked():
            self.refresh()
            known = set(self.state.versions)
            wanted = list(keys) if keys is not None else self._all_keys(memory)
            self.settle(self.state, wanted if keys is not None else None)
            self.refresh()
            self._notice(wanted, origin or outside(), self.state.head)
            self.refresh()
        return tuple(v for name, v in self.state.versions.items() if name not in known)

    def _all_keys(self, memory: MemoryFolder) -> list[str]:
        there = [key for key in memory.all_keys() if is_kept(key)]
        return list(dict.fromkeys([*there, *self.state.heads]))

    def settle(self, known: HistoryState | HistoryCache, keys: Iterable[str] | None) -> None:
        """Decide what became of writes that nobody reported back on."""
        if not known.pending:
            return
        only = None if keys is None else set(keys)
        heads: dict[str, str | None] = {}
        lines: list[str] = []
        for version in known.pending.values():
            if only is not None and version.key not in only:
                continue
            if version.added:
                fits = memory_access.mend(self.bound().files, version)
                heads[version.key] = None
            else:
                head = heads[version.key] if version.key in heads else known.head(version.key)
                fits = self._now_at(version.key) == version.after
                fits = fits and (head is None or head == version.before)
                heads[version.key] = version.after if fits else head
            lines.append(landed_line(version) if fits else void_line(version))
        self.append(lines)

    def _notice(self, keys: Iterable[str], origin: Origin, head_of: Callable[[str], str]) -> None:
        """Keep what lies in the folder and is not the head of its file."""
        lines: list[str] = []
        for key in keys:
            head = head_of(key)
            name = self._now_at(key, head)
            if name == head:
                continue
            if name:
                name = self._keep(key)
            if name != head:
                lines += _whole(self.version(key, head, name, origin))
        self.append(lines, durable=True)

    def _now_at(self, key: str, head: str = ABSENT) -> str:
        """The hash of the file as it is, by its size and time where those are as last seen; of
        what is not ours to judge, its head."""
        memory = self.bound()
        try:
            found = memory.stat(key)
            size, when, name = self._seen.get(key, (-1, -1, ""))
            if (size, when) != (found.size, found.modified):
                name = memory.digest(key)
                # A file changed just now may change again within the same tick of its clock.
                if time.time_ns() - found.modified > _TICK:
                    self._seen[key] = (found.size, found.modified, name)
        except NotFound:
            return ABSENT
        except StoreError:  # a link, or closed to us
            return head
        return name

    def _time_of(self, key: str) -> int:
        try:
            return self.bound().stat(key).modified
        except (NotFound, StoreError):
            return 0

    def _keep(self, key: str) -> str:
        memory = self.bound()
        try:
            if memory.stat(key).size > LARGEST:
                return memory.digest(key)
            return self.put(memory.bytes_of(key, LARGEST))
        except NotFound:
            return ABSENT

    # Reading

    def refresh(self) -> None:
        """Read what was added to the log since."""
        try:
            self._read_on()
        except NotFound:
            return
        except OSError as error:
            what = f"The history could not be read: {words(error)}"
            raise StoreError(what, where=str(self.files.root / LOG)) from error

    def _read_on(self) -> None:
        fd = self.files.open_read(LOG)
        try:
            info = os.fstat(fd)
        finally:
            close(fd)
        inode, size = info.st_ino, info.st_size
        if inode != self._read[0] or size < self._read[1]:  # rewritten
            self.state, self.faults = HistoryState(self._content_or_nothing), {}
            self._read = (inode, 0)
        if size == self._read[1]:
            return
        for line in Journal.open(self.files, LOG, write=False).read(self._read[1]):
            if isinstance(line, BadLine):
                self.faults[line.offset] = line.reason
                continue
            self._take(line.text, line.offset)
            self._read = (inode, line.end)

    def _take(self, text: str, offset: int = -1) -> None:
        try:
            self.state.take(decode(text))
        except InvalidMessage as error:
            self.faults[offset] = str(error)

    def log(self, key: str = "") -> list[Version]:
        """The versions of a file, or of all, oldest first."""
        self.refresh()
        return self.state.of(key) if key else list(self.state.versions.values())

    def find(self, name: str) -> Version:
        """The version that an id, or the beginning of one, names."""
        self.refresh()
        found = [v for v in self.state.versions.values() if v.id.startswith(name)]
        if len(found) == 1 and len(name) >= _PREFIX:
            return found[0]
        if not found:
            raise NotFound(
                "There is no such version", where=name, do="List the versions to see their ids"
            )
        raise InvalidInput(
            "Several versions begin like that",
            where=name,
            do="Give more of the id",
            code="ambiguous",
        )

    def content(self, name: str) -> bytes:
        """The bytes of this hash; `NotFound` where they were too many to keep."""
        return self.objects.content(name, self.state.grown)

    def _content_or_nothing(self, name: str) -> bytes:
        """The bytes of a hash. A disk that fails for a moment is asked once more: the name of what
        grew from them would be wrong, and the file seem changed from outside. One object that is
        lost for good does not stand in the way."""
        for _ in range(2):
            try:
                return self.content(name)
            except (NotFound, Damaged):
                break
            except StoreError:
                continue
        return b""

    def check(self) -> tuple[str, ...]:
        """What is wrong with the store: objects that are damaged or missing, lines unread."""
        self.refresh()
        wrong = [f"log, byte {at}: {why}" for at, why in sorted(self.faults.items())]
        named = {n for v in self.state.versions.values() for n in (v.before, v.after) if n}
        named -= self.state.grown.keys() - set(self.state.heads.values())
        for name in sorted(named):
            try:
                self.content(name)
            except (StoreError, NotFound) as error:
                wrong.append(f"{name[:12]}: {error.what}")
        return tuple(wrong)

    # Writing

    def put(self, data: bytes) -> str:
        """Keep bytes; gives their name."""
        return self.objects.put(data)

    def version(self, key: str, before: str, after: str, origin: Origin | None = None) -> Version:
        """A step that is made now, by whoever writes now."""
        known = origin or self._origin or Origin("save", Trust.AGENT)
        group, undoes = ("", ()) if origin else (self._group, self._undoes)
        return Version(self.new_id(), key, before, after, self._now(), known, group, undoes)

    def append(self, lines: list[str], *, durable: bool = False) -> None:
        """Add lines to the log."""
        if not lines:
            return
        with Journal.open(self.files, LOG) as log:
            log.append(lines)
            if durable:
                log.sync()
        self.heads.refresh()

    def bound(self) -> MemoryFolder:
        """The folder whose versions these are."""
        if self._memory is None:
            raise StoreError(
                "The history is not tied to a memory folder", where=str(self.files.root)
            )
        return self._memory


def is_kept(key: str) -> bool:
    """Whether versions of a file are kept: all but dot files, which are locks and the like."""
    return not any(part.startswith(".") for part in key.split("/"))


def landed_line(version: Version) -> str:
    return dump({"v": 1, "type": "landed", "id": version.id})


def void_line(version: Version) -> str:
    return dump({"v": 1, "type": "void", "id": version.id})


def _whole(version: Version) -> list[str]:
    return [encode(version), landed_line(version)]
