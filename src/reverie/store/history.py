"""Every version of every memory file, kept beside the memory folder and out of its way.

A version's bytes are an object named by their SHA-256, compressed; what happened is a line in
one log. The order is object, line, file, line: the first line says what is about to be written
and by whom, the second that it landed. A process that dies in between leaves a line without its
second one, and the next look at the folder tells by the file itself whether the write came to
pass. What lies in the folder and is in no version, since an editor or another program wrote it,
is recorded at that look too. So every version that was ever seen is kept, with its origin.

All of it happens under the memory folder's own lock. Nothing is derived and nothing is rewritten
but by `forget`; a log line that cannot be read is passed over; bytes that do not match their
name are never handed out.
"""

from __future__ import annotations

import contextlib
import os
import time
import zlib
from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from pathlib import Path

from reverie.errors import InvalidInput, InvalidMessage, NotFound, StoreError
from reverie.memory.format.entry import is_index
from reverie.memory.trust import Trust
from reverie.memory.versions import ABSENT, HistoryState, Origin, Version, decode, encode, outside
from reverie.store.files import Folder
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
        new_id: Callable[[], str] = lambda: os.urandom(8).hex(),
        say: Say = say_nothing,
        create: bool = True,
    ) -> None:
        self.files = Folder(root, create=create)
        self.state = HistoryState()
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
        self.refresh()
        self._seen.pop(key, None)
        self._settle([key])
        self._notice([key], outside())
        before = self.state.heads.get(key, ABSENT)
        after = ABSENT if data is None else self.put(data)
        if before != after:
            intent = replace(self._version(key, before, after), was=self._time_of(key))
            self._append([encode(intent)], durable=True)

    def _land(self, change: FileChange) -> None:
        self.refresh()
        head = self.state.heads.get(change.key, ABSENT)
        before = ABSENT if change.before is None else head
        if change.before is not None and len(change.before) < MAX_KEPT:  # else it may be cut
            before = self.put(change.before)
        after = ABSENT if change.after is None else self.put(change.after)
        lines: list[str] = []
        if head != before:  # someone without our lock was there between the two
            lines += _whole(self._version(change.key, head, before, outside()))
        intents = [v for v in self.state.pending.values() if v.key == change.key]
        fits = [v for v in intents if (v.before, v.after) == (before, after)]
        lines += [_void(v) for v in intents if v not in fits[-1:]]
        if fits:
            lines.append(_landed(fits[-1]))
        elif before != after:
            lines += _whole(self._version(change.key, before, after))
        self._append(lines, durable=not fits)

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
            self._settle(wanted if keys is not None else None)
            self._notice(wanted, origin or outside())
        return tuple(v for name, v in self.state.versions.items() if name not in known)

    def _all_keys(self, memory: MemoryFolder) -> list[str]:
        there = [key for key in memory.all_keys() if is_kept(key)]
        return list(dict.fromkeys([*there, *self.state.heads]))

    def _settle(self, keys: Iterable[str] | None) -> None:
        """Decide what became of writes that nobody reported back on."""
        if not self.state.pending:
            return
        only = None if keys is None else set(keys)
        heads = dict(self.state.heads)
        lines: list[str] = []
        for version in self.state.pending.values():
            if only is None or version.key in only:
                fits = self._now_at(version.key) == version.after
                fits = fits and heads.get(version.key, ABSENT) == version.before
                heads[version.key] = version.after if fits else heads.get(version.key, ABSENT)
                lines.append(_landed(version) if fits else _void(version))
        self._append(lines)

    def _notice(self, keys: Iterable[str], origin: Origin) -> None:
        """Keep what lies in the folder and is not the head of its file."""
        lines: list[str] = []
        for key in keys:
            name = self._now_at(key)
            head = self.state.heads.get(key, ABSENT)
            if name == head:
                continue
            if name:
                name = self._keep(key)
            if name != head:
                lines += _whole(self._version(key, head, name, origin))
        self._append(lines, durable=True)

    def _now_at(self, key: str) -> str:
        """The hash of the file as it is; by its size and time where those are as last seen."""
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
        except StoreError:  # a link, or closed to us: not ours to judge
            return self.state.heads.get(key, ABSENT)
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
            self.state, self.faults, self._read = HistoryState(), {}, (inode, 0)
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
        try:
            data = zlib.decompress(self.files.read(object_key(name)))
        except zlib.error as error:
            raise self._damaged(name) from error
        if digest(data) != name:
            raise self._damaged(name)
        return data

    def check(self) -> tuple[str, ...]:
        """What is wrong with the store: objects that are damaged or missing, lines unread."""
        self.refresh()
        wrong = [f"log, byte {at}: {why}" for at, why in sorted(self.faults.items())]
        named = {n for v in self.state.versions.values() for n in (v.before, v.after) if n}
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
        self.refresh()

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
