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
import zlib
from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from reverie.errors import InvalidInput, InvalidMessage, NotFound, StoreError
from reverie.memory.format.entry import is_index
from reverie.memory.matching import changed_lines
from reverie.memory.trust import Trust
from reverie.memory.versions import (
    ABSENT,
    HistoryState,
    Origin,
    SeenFile,
    Version,
    decode,
    encode,
    encode_seen,
    outside,
)
from reverie.store import growing
from reverie.store.files import Folder
from reverie.store.heads import ALIKE, Heads, KnownPointer
from reverie.store.journal import BadLine, Journal
from reverie.store.memory import MAX_KEPT, FileChange, MemoryFolder
from reverie.store.plain import digest, words
from reverie.transcript.blocks import dump
from reverie.world import Notice, Say, say_nothing

LOG = "log.jsonl"
OBJECTS = "objects"
NAME = "memory-history"
LARGEST = 16 * 2**20
"""Bytes of a file whose versions are kept; of a larger one only the hash is."""

_PREFIX = 4
_LONG = 64 * 2**10
_TICK = 2 * 10**9
_FEW = 4_000


def object_key(name: str) -> str:
    return f"{OBJECTS}/{name[:2]}/{name[2:]}.z"


class Damaged(StoreError):
    """Stored bytes that are not what their name says."""


class History:
    """The versions of one memory folder. `bind` ties it to the folder it records."""

    def __init__(
        self,
        root: Path,
        *,
        now: Callable[[], float],
        new_id: Callable[[], str] = lambda: uuid4().hex[:16],
        say: Say = say_nothing,
        create: bool = True,
    ) -> None:
        self.files = Folder(root, create=create)
        self.state = HistoryState(self._content_or_nothing)
        self.heads = Heads(self.files, LOG)
        self.faults: dict[int, str] = {}
        self._now = now
        self.new_id = new_id
        self._say = say
        self._memory: MemoryFolder | None = None
        self._origin: Origin | None = None
        self._group = ""
        self._undoes: tuple[str, ...] = ()
        self._read: tuple[int, int] = (0, 0)  # the log's inode, and how far it was read
        self._sound: set[str] = set()  # objects that were read and are as their names say
        self._seen: dict[str, tuple[int, int, str]] = {}  # size, time and hash of files

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

    def landed(self, change: FileChange) -> None:
        """Say that it was written. A failure here is made good at the next look."""
        try:
            self._land(change)
        except StoreError as error:
            text = f"the history of {change.key} is behind until it is looked at again: {error}"
            self._say(Notice("memory", text, "warning"))

    def intend(self, key: str, data: bytes | None) -> None:
        """Record an intent to write a file, or to remove it (None), under the folder's lock."""
        self.heads.refresh()
        self._seen.pop(key, None)
        self._settle(self.heads, [key])
        self._notice([key], outside(), self._head)
        before = self._head(key)
        after = ABSENT if data is None else self.put(data)
        if before != after:
            intent = replace(self._version(key, before, after), was=self._time_of(key))
            if is_index(key) and data is not None:
                intent = replace(intent, swap=self._swap(key, data))
            self._append([encode(intent)], durable=True)

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
            return self._bound().bytes_of(key)
        except NotFound:
            return b""

    def _land(self, change: FileChange) -> None:
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
            lines += _whole(self._version(change.key, head, before, outside()))
        intents = [v for v in self.heads.pending.values() if v.key == change.key]
        fits = [v for v in intents if (v.before, v.after) == (before, after)]
        lines += [_void(v) for v in intents if v not in fits[-1:]]
        if fits:
            lines.append(_landed(fits[-1]))
        elif before != after:
            lines += _whole(self._version(change.key, before, after))
        if change.after is not None and is_index(change.key) and self.heads.index(change.key):
            lines.append(encode_seen(self._seen_now(change.key)))
        self._append(lines, durable=not fits)

    def _head(self, key: str) -> str:
        """What a file's last bytes are called, without reading the whole log where that goes."""
        name = self.heads.head(key)
        if name is not None:
            return name
        known = self.heads.index(key)
        if known is not None and known.seen == self._seen_now(key):
            return self._bound().digest(key)
        self.refresh()
        return self.state.head(key)

    def _landed_head(self, key: str) -> str:
        """The same once the file is written: what was intended begins at the head."""
        intents = [v for v in self.heads.pending.values() if v.key == key and not v.added]
        return intents[-1].before if intents else self._head(key)

    # An index that only grows

    def known_pointer(self, index: str, name: str) -> KnownPointer:
        """The lines of an index that point to a file, as it is now, without reading it where it
        is as it was left."""
        self._know(index)
        return self.heads.pointer(index, name)

    def known_like(self, index: str, about: str) -> list[str]:
        """The files whose hooks begin like a text."""
        self._know(index)
        return self.heads.like(index, about[:ALIKE])

    def twin_of(self, key: str) -> str:
        """Another file whose name some file system would take for this one, or nothing."""
        return self.heads.twin_of(key)

    def _know(self, index: str) -> None:
        self.heads.refresh()
        self._settle(self.heads, [index])
        known = self.heads.index(index)
        if known is None or known.seen != self._seen_now(index):
            self.look(keys=[index])
            seen = self._seen_now(index)
            self._append([encode_seen(seen)])
            self.heads.learn(seen, self._bytes(index))

    def grow(self, index: str, line: bytes) -> int:
        """Add a line to the end of an index that is as it was left; how many lines it has now."""
        memory = self._bound()
        seen = self._seen_now(index)
        version = replace(
            self._version(index, "", ""), added=line.decode(), size=seen.size, was=seen.modified
        )
        self._append([encode(version)], durable=True)
        end = growing.add(memory.files, index, line, seen)
        self._append([_landed(version), encode_seen(end)])
        known = self.heads.index(index)
        return known.lines if known else 0

    def _seen_now(self, key: str) -> SeenFile:
        return growing.seen(self._bound().files, key)

    # Looking

    def look(
        self, origin: Origin | None = None, keys: Iterable[str] | None = None
    ) -> tuple[Version, ...]:
        """Record what the log does not know: writes cut off, and those of others.

        `origin` says where new changes come from, where the caller knows: the main agent's own
        tools. `keys` looks at those files alone.
        """
        memory = self._bound()
        with memory.locked():
            self.refresh()
            known = set(self.state.versions)
            wanted = list(keys) if keys is not None else self._all_keys(memory)
            self._settle(self.state, wanted if keys is not None else None)
            self.refresh()
            self._notice(wanted, origin or outside(), self.state.head)
            self.refresh()
        return tuple(v for name, v in self.state.versions.items() if name not in known)

    def _all_keys(self, memory: MemoryFolder) -> list[str]:
        there = [key for key in memory.all_keys() if is_kept(key)]
        return list(dict.fromkeys([*there, *self.state.heads]))

    def _settle(self, known: HistoryState | Heads, keys: Iterable[str] | None) -> None:
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
                fits = growing.mend(self._bound().files, version)
                heads[version.key] = None
            else:
                head = heads[version.key] if version.key in heads else known.head(version.key)
                fits = self._now_at(version.key) == version.after
                fits = fits and (head is None or head == version.before)
                heads[version.key] = version.after if fits else head
            lines.append(_landed(version) if fits else _void(version))
        self._append(lines)

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
                lines += _whole(self._version(key, head, name, origin))
        self._append(lines, durable=True)

    def _now_at(self, key: str, head: str = ABSENT) -> str:
        """The hash of the file as it is, by its size and time where those are as last seen; of
        what is not ours to judge, its head."""
        memory = self._bound()
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
            return self._bound().stat(key).modified
        except (NotFound, StoreError):
            return 0

    def _keep(self, key: str) -> str:
        memory = self._bound()
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
        inode, size = os.fstat(fd).st_ino, os.fstat(fd).st_size
        os.close(fd)
        if inode != self._read[0] or size < self._read[1]:  # rewritten
            self.state, self.faults = HistoryState(self._content_or_nothing), {}
            self._read = (inode, 0)
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
        raise InvalidInput("Several versions begin like that", where=name, do="Give more of the id")

    def content(self, name: str) -> bytes:
        """The bytes of this hash; `NotFound` where they were too many to keep."""
        if not name:
            return b""
        if name in self.state.grown:
            return self._put_together(name)
        try:
            data = zlib.decompress(self.files.read(object_key(name)))
        except zlib.error as error:
            raise self._damaged(name) from error
        if digest(data) != name:
            raise self._damaged(name)
        return data

    def _put_together(self, name: str) -> bytes:
        added: list[str] = []
        first = name
        while first in self.state.grown:
            first, text = self.state.grown[first]
            added.append(text)
        more = "".join(reversed(added)).encode("utf-8", "surrogatepass")
        data = self.content(first) + more
        if digest(data) != name:
            raise self._damaged(name)
        return data

    def _content_or_nothing(self, name: str) -> bytes:
        try:
            return self.content(name)
        except (StoreError, NotFound):
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
        name = digest(data)
        key = object_key(name)
        if len(data) <= LARGEST and not self._holds(key, name):
            self.files.write(key, zlib.compress(data, 6 if len(data) < _LONG else 1))
            self._sound.add(name)
        return name

    def _holds(self, key: str, name: str) -> bool:
        """Whether an object is there as its name says; each is read once."""
        if name in self._sound:
            return self.files.exists(key)
        with contextlib.suppress(NotFound, StoreError):
            self.content(name)
            self._sound.add(name)
            return True
        return False

    def _version(self, key: str, before: str, after: str, origin: Origin | None = None) -> Version:
        known = origin or self._origin or Origin("save", Trust.AGENT)
        group, undoes = ("", ()) if origin else (self._group, self._undoes)
        return Version(self.new_id(), key, before, after, self._now(), known, group, undoes)

    def _append(self, lines: list[str], *, durable: bool = False) -> None:
        if not lines:
            return
        with Journal.open(self.files, LOG) as log:
            log.append(lines)
            if durable:
                log.sync()
        self.heads.refresh()

    def _bound(self) -> MemoryFolder:
        if self._memory is None:
            raise StoreError(
                "The history is not tied to a memory folder", where=str(self.files.root)
            )
        return self._memory

    def _damaged(self, name: str) -> Damaged:
        return Damaged(
            "A stored version is damaged",
            where=str(self.files.root / object_key(name)),
            do="The other versions are intact",
        )


def is_kept(key: str) -> bool:
    """Whether versions of a file are kept: all but dot files, which are locks and the like."""
    return not any(part.startswith(".") for part in key.split("/"))


def _landed(version: Version) -> str:
    return dump({"v": 1, "type": "landed", "id": version.id})


def _void(version: Version) -> str:
    return dump({"v": 1, "type": "void", "id": version.id})


def _whole(version: Version) -> list[str]:
    return [encode(version), _landed(version)]
