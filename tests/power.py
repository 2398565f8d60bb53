"""What a disk may hold after the power went, for every moment of a piece of work.

The file operations of a piece of work are recorded while it runs. A disk keeps what was synced:
a file's bytes by an fsync of the file, a name by an fsync of its directory. Of everything else it
may have kept all, nothing, the first part, or any part, torn in the middle of a write; and names
and bytes do not wait for each other.

    record = recorded(root, lambda ack: (memories.save(...), ack("saved")))
    for state in power_states(record, Random(1), each=4):
        state.build(elsewhere)          # the tree as it may be after the cut
        assert ... state.acked ...      # what had been acknowledged by then

Nothing of the code under test is replaced. Only what goes through `os` is seen.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

Ack = Callable[[str], None]
_CALLS = ("open", "close", "dup", "write", "pwrite", "ftruncate", "utime", "fsync", "fdatasync")
_NAMES = ("rename", "replace", "unlink", "rmdir", "mkdir")


@dataclass(frozen=True, slots=True)
class Inode:
    """A file or a folder (`data` is None) as the disk has it for sure."""

    data: bytes | None
    modified: int = 0


@dataclass(frozen=True, slots=True)
class Named:
    """Names that changed as one: what each of them leads to now, None for nothing."""

    changes: tuple[tuple[int, str, int | None], ...]


@dataclass(frozen=True, slots=True)
class Filled:
    """A file that changed: bytes at an offset, a new size, or a time."""

    inode: int
    at: int = 0
    data: bytes = b""
    size: int | None = None
    modified: int | None = None


@dataclass(frozen=True, slots=True)
class Synced:
    inode: int


Op = Named | Filled | Synced


@dataclass(slots=True)
class Record:
    """The disk before a piece of work, what was done to it, and what was told in between."""

    inodes: dict[int, Inode] = field(default_factory=dict[int, Inode])
    names: dict[tuple[int, str], int] = field(default_factory=dict[tuple[int, str], int])
    ops: list[Op] = field(default_factory=list[Op])
    acks: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    began: int = field(default_factory=time.time_ns)

    def ack(self, text: str) -> None:
        self.acks.append((len(self.ops), text))


@dataclass(frozen=True, slots=True)
class DiskState:
    """One tree that may be there after a cut, and what had been acknowledged before it."""

    cut: int
    inodes: Mapping[int, Inode]
    names: Mapping[tuple[int, str], int]
    acked: tuple[str, ...]
    how: str

    def build(self, root: Path, folder: int = 0) -> Path:
        """Make the tree at a path."""
        root.mkdir(parents=True)
        for (parent, name), inode in self.names.items():
            if parent == folder:
                found = self.inodes[inode]
                if found.data is None:
                    self.build(root / name, inode)
                else:
                    (root / name).write_bytes(found.data)
                    os.utime(root / name, ns=(found.modified, found.modified))
        return root

    def digest(self) -> bytes:
        """The same for the same tree, times included, and the same acknowledged."""
        made = sha256(repr(self.acked).encode())
        self._add(made, 0)
        return made.digest()

    def _add(self, made: Any, folder: int) -> None:
        inside = sorted((name, inode) for (at, name), inode in self.names.items() if at == folder)
        for name, inode in inside:
            found = self.inodes[inode]
            made.update(repr((name, found.data, found.modified)).encode())
            if found.data is None:
                self._add(made, inode)
        made.update(b"/")


def recorded(root: Path, work: Callable[[Ack], object]) -> Record:
    """Do a piece of work and record what it does below `root`."""
    shim = Shim(root)
    with shim.watching():
        work(shim.record.ack)
    return shim.record


def power_states(record: Record, chance: Random, *, each: int) -> Iterator[DiskState]:
    """For every moment the plain cases, then `each` drawn by chance. No tree comes twice with the
    same acknowledged: a moment later the disk may hold the same."""
    seen: set[bytes] = set()
    for cut in range(len(record.ops) + 1):
        open_ = _unsynced(record.ops[:cut])
        for how in ("all", "nothing", "names", "bytes", *["chance"] * each):
            kept = {n: _keeps(how, record.ops[n], chance) for n in open_}
            if how == "chance" and chance.random() < 0.5:
                kept = _in_order(kept, record.ops, chance)
            state = _disk(record, cut, kept, how, chance)
            if (known := state.digest()) not in seen:
                seen.add(known)
                yield state


def _unsynced(ops: list[Op]) -> list[int]:
    """The operations that no later sync made durable."""
    synced: set[int] = set()
    found: list[int] = []
    for number in reversed(range(len(ops))):
        op = ops[number]
        if isinstance(op, Synced):
            synced.add(op.inode)
        elif isinstance(op, Filled):
            found += [] if op.inode in synced else [number]
        elif not any(parent in synced for parent, _, _ in op.changes):
            found.append(number)
    return found[::-1]


def _keeps(how: str, op: Op, chance: Random) -> bool:
    if how == "chance":
        return chance.random() < 0.5
    return how == "all" or (how == "names") == isinstance(op, Named) != (how == "nothing")


def _in_order(kept: Mapping[int, bool], ops: list[Op], chance: Random) -> dict[int, bool]:
    """Of names and bytes each the first part."""
    ends = {kind: chance.choice([*kept, len(ops)]) for kind in (Named, Filled)}
    return {n: n < ends[Named if isinstance(ops[n], Named) else Filled] for n in kept}


def _disk(
    record: Record, cut: int, kept: Mapping[int, bool], how: str, chance: Random
) -> DiskState:
    inodes, names = dict(record.inodes), dict(record.names)
    filled = [n for n, keeps in kept.items() if keeps and isinstance(record.ops[n], Filled)]
    torn = chance.choice(filled) if filled and how == "chance" and chance.random() < 0.5 else -1
    for number, op in enumerate(record.ops[:cut]):
        if not kept.get(number, True):
            continue
        if isinstance(op, Filled):
            old = inodes.get(op.inode, Inode(b""))
            inodes[op.inode] = _filled(old, op, record.began + number, torn=number == torn)
        elif isinstance(op, Named):
            for parent, name, inode in op.changes:
                names.pop((parent, name), None)
                if inode is not None:
                    names[parent, name] = inode
    for inode in names.values():
        inodes.setdefault(inode, Inode(b""))
    acked = tuple(text for at, text in record.acks if at <= cut)
    return DiskState(cut, inodes, names, acked, how)


def _filled(old: Inode, op: Filled, now: int, *, torn: bool) -> Inode:
    data = old.data or b""
    if op.modified is not None:
        return Inode(data, op.modified)
    if op.size is not None:
        return Inode(data[: op.size].ljust(op.size, b"\0"), now)
    new = op.data[: len(op.data) // 2] if torn else op.data
    head = data[: op.at].ljust(op.at, b"\0")
    return Inode(head + new + data[op.at + len(new) :], now)


class Shim:
    """Sees the calls of `os` below one folder. The folder itself is number 0, and durable."""

    def __init__(self, root: Path) -> None:
        self._root = os.path.abspath(root)
        self.record = Record()
        self._names: dict[tuple[int, str], int] = {}  # as they are now, synced or not
        self._folders: set[int] = {0}
        self._fds: dict[int, int] = {}
        self._next = 1
        self._real = {name: getattr(os, name) for name in (*_CALLS, *_NAMES)}
        self.record.inodes[0] = Inode(None)
        self._load(self._root, 0)
        self._names = dict(self.record.names)

    def _load(self, path: str, folder: int) -> None:
        with os.scandir(path) as entries:
            for entry in entries:
                number = self._new()
                self.record.names[folder, entry.name] = number
                if entry.is_dir(follow_symlinks=False):
                    self.record.inodes[number] = Inode(None)
                    self._folders.add(number)
                    self._load(entry.path, number)
                else:
                    data = Path(entry.path).read_bytes()
                    self.record.inodes[number] = Inode(data, entry.stat().st_mtime_ns)

    def _new(self) -> int:
        self._next += 1
        return self._next - 1

    @contextlib.contextmanager
    def watching(self) -> Generator[None]:
        for name in (*_CALLS, *_NAMES):
            setattr(os, name, getattr(self, f"_{name}"))
        try:
            yield
        finally:
            for name, real in self._real.items():
                setattr(os, name, real)

    def _place(self, path: Any, dir_fd: int | None) -> tuple[int, str] | None:
        """The folder that holds a path, and the last name; None for what lies elsewhere."""
        if isinstance(path, int):
            return None
        text = os.fspath(path)
        if dir_fd is None:
            below = os.path.relpath(os.path.abspath(text), self._root)
            if below == "." or below.startswith(".."):
                return None
            at, parts = 0, below.split("/")
        elif dir_fd in self._fds and text != ".":
            at, parts = self._fds[dir_fd], text.split("/")
        else:
            return None
        for part in parts[:-1]:
            if (at, part) not in self._names:
                return None
            at = self._names[at, part]
        return at, parts[-1]

    def _here(self, path: Any, dir_fd: int | None) -> int | None:
        """What a path leads to now."""
        if not isinstance(path, int):
            if dir_fd in self._fds and os.fspath(path) == ".":
                return self._fds[dir_fd]
            if dir_fd is None and os.path.abspath(os.fspath(path)) == self._root:
                return 0
        place = self._place(path, dir_fd)
        return None if place is None else self._names.get(place)

    def _change(self, *changes: tuple[int, str, int | None]) -> None:
        for parent, name, inode in changes:
            self._names.pop((parent, name), None)
            if inode is not None:
                self._names[parent, name] = inode
        self.record.ops.append(Named(changes))

    # What was done past `os`, by path

    def made(self, path: str) -> None:
        """A file was opened, and made where it was not there."""
        place = self._place(path, None)
        if place is not None and place not in self._names:
            self._change((*place, self._new()))

    def wrote(self, path: str, at: int, data: bytes) -> None:
        if (inode := self._here(path, None)) is not None:
            self.record.ops.append(Filled(inode, at, data))

    def sized(self, path: str, size: int) -> None:
        if (inode := self._here(path, None)) is not None:
            self.record.ops.append(Filled(inode, size=size))

    def synced(self, path: str, *, with_name: bool) -> None:
        """A file's bytes are durable, and its name where its folder was synced too."""
        place, inode = self._place(path, None), self._here(path, None)
        if place is not None and inode is not None:
            self.record.ops += [Synced(inode), *([Synced(place[0])] if with_name else [])]

    def gone(self, path: str, *, synced: bool) -> None:
        place = self._place(path, None)
        if place is not None:
            self._change((*place, None))
            self.record.ops += [Synced(place[0])] if synced else []

    # The calls

    def _open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        fd = self._real["open"](path, flags, mode, dir_fd=dir_fd)
        place, inode = self._place(path, dir_fd), self._here(path, dir_fd)
        if inode is None and place is not None:
            inode = self._new()
            self._change((*place, inode))
        if inode is None:
            self._fds.pop(fd, None)
        else:
            self._fds[fd] = inode
            if flags & os.O_TRUNC:
                self.record.ops.append(Filled(inode, size=0))
        return fd

    def _close(self, fd: int) -> None:
        self._fds.pop(fd, None)
        self._real["close"](fd)

    def _dup(self, fd: int) -> int:
        other = self._real["dup"](fd)
        if fd in self._fds:
            self._fds[other] = self._fds[fd]
        return other

    def _write(self, fd: int, data: Any) -> int:
        count = self._real["write"](fd, data)
        if fd in self._fds:
            at = os.lseek(fd, 0, os.SEEK_CUR) - count
            self.record.ops.append(Filled(self._fds[fd], at, bytes(data)[:count]))
        return count

    def _pwrite(self, fd: int, data: Any, at: int) -> int:
        count = self._real["pwrite"](fd, data, at)
        if fd in self._fds:
            self.record.ops.append(Filled(self._fds[fd], at, bytes(data)[:count]))
        return count

    def _ftruncate(self, fd: int, size: int) -> None:
        self._real["ftruncate"](fd, size)
        if fd in self._fds:
            self.record.ops.append(Filled(self._fds[fd], size=size))

    def _utime(self, path: Any, times: Any = None, **given: Any) -> None:
        self._real["utime"](path, times, **given)
        inode = self._fds.get(path) if isinstance(path, int) else self._here(path, None)
        if inode is not None and stat.S_ISREG(os.stat(path).st_mode):
            self.record.ops.append(Filled(inode, modified=os.stat(path).st_mtime_ns))

    def _fsync(self, fd: int) -> None:
        self._real["fsync"](fd)
        if fd in self._fds:
            self.record.ops.append(Synced(self._fds[fd]))

    _fdatasync = _fsync

    def _rename(
        self, old: Any, new: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None
    ) -> None:
        inode = self._here(old, src_dir_fd)
        before, after = self._place(old, src_dir_fd), self._place(new, dst_dir_fd)
        self._real["rename"](old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        if before is not None and after is not None and inode is not None:
            self._change((*before, None), (*after, inode))

    _replace = _rename

    def _unlink(self, path: Any, *, dir_fd: int | None = None) -> None:
        place = self._place(path, dir_fd)
        self._real["unlink"](path, dir_fd=dir_fd)
        if place is not None:
            self._change((*place, None))

    def _rmdir(self, path: Any, *, dir_fd: int | None = None) -> None:
        place = self._place(path, dir_fd)
        self._real["rmdir"](path, dir_fd=dir_fd)
        if place is not None:
            self._change((*place, None))

    def _mkdir(self, path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        place = self._place(path, dir_fd)
        self._real["mkdir"](path, mode, dir_fd=dir_fd)
        if place is not None:
            inode = self._new()
            self._folders.add(inode)
            self.record.inodes[inode] = Inode(None)
            self._change((*place, inode))
