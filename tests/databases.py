"""Failures on purpose inside SQLite: its Nth call to the disk fails, falls short, or is the last.

SQLite does not go through `os`, so its own door to the disk is watched: a VFS that hands every call
on to the system's and may let one go wrong first. Nothing of the code under test is replaced.

    death = run_with_kill(work, 7, when="partial")      # work(ack), in a child that dies
    outcome = run_with_error(work, 7, errno.EIO)        # in this process
    record = recorded(root, work)                       # for `tests.power.power_states`

What SQLite reports for an error of the system is what its own VFS would have said.
"""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import errno
import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests import faults, power
from tests.faults import Ack, Death, Outcome, When

WRITES = ("write", "truncate", "sync", "delete", "open")
CALLS = (*WRITES, "read")
_FULL, _READONLY, _CANTOPEN = 13, 8, 14
_IOERR = {"write": 778, "read": 266, "sync": 1034, "truncate": 1546, "delete": 2570}
_TO_SYNC_NAME = 0x00000800 | 0x00080000  # a main journal, a write-ahead log
_CREATE = 0x00000004

_Pointer = ctypes.c_void_p
# names are handed on as they are: SQLite keeps the very pointer, and what stands behind it
_OPEN = ctypes.CFUNCTYPE(
    ctypes.c_int,
    _Pointer,
    _Pointer,
    _Pointer,
    ctypes.c_int,
    ctypes.POINTER(ctypes.c_int),
)
_DELETE = ctypes.CFUNCTYPE(ctypes.c_int, _Pointer, _Pointer, ctypes.c_int)
_MOVE = ctypes.CFUNCTYPE(ctypes.c_int, _Pointer, _Pointer, ctypes.c_int, ctypes.c_int64)
_TRUNCATE = ctypes.CFUNCTYPE(ctypes.c_int, _Pointer, ctypes.c_int64)
_SYNC = ctypes.CFUNCTYPE(ctypes.c_int, _Pointer, ctypes.c_int)


class _Vfs(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_int),
        ("file_size", ctypes.c_int),
        ("longest", ctypes.c_int),
        ("next", _Pointer),
        ("name", ctypes.c_char_p),
        ("data", _Pointer),
        ("open", _Pointer),
        ("delete", _Pointer),
        ("rest", _Pointer * 14),
    )


class _Methods(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_int),
        ("close", _Pointer),
        ("read", _Pointer),
        ("write", _Pointer),
        ("truncate", _Pointer),
        ("sync", _Pointer),
        ("rest", _Pointer * 13),
    )


@dataclass(slots=True)
class Watch:
    """What happens to each call while a piece of work runs."""

    at: int = 0
    code: int | None = None
    short: bool = False
    sticky: bool = False
    kill: When | None = None
    calls: Sequence[str] = CALLS
    names: list[str] = field(default_factory=list[str])
    hit: str | None = None
    record: power.Shim | None = None
    synced: set[int] = field(default_factory=set[int])
    """Open files that were synced: the first time the system syncs a log's folder too."""

    def is_now(self, call: str) -> bool:
        if call not in self.calls:
            return False
        self.names.append(call)
        if self.hit is None and len(self.names) == self.at:
            self.hit = call
            return True
        return self.sticky and self.hit == call

    def is_half(self) -> bool:
        """Whether the write that is made now is to be a part of one."""
        now = self.hit == "write" and len(self.names) == self.at
        return now and (self.short or self.kill == "partial")

    def result(self, call: str) -> int:
        """What SQLite's own VFS reports for this error; 0 where the call cannot have it."""
        if self.code == errno.ENOSPC and call in ("write", "open"):
            return _FULL if call == "write" else _CANTOPEN
        if self.code == errno.EROFS and call == "write":
            return _READONLY
        if call == "open":
            return _CANTOPEN
        return _IOERR[call] if self.code != errno.EMFILE else 0


class _Door:
    """The VFS, made once; without a watch it only hands on."""

    def __init__(self, library: ctypes.CDLL) -> None:
        library.sqlite3_vfs_find.restype = _Pointer
        library.sqlite3_vfs_find.argtypes = [ctypes.c_char_p]
        library.sqlite3_vfs_register.argtypes = [_Pointer, ctypes.c_int]
        self.library = library
        self.watch: Watch | None = None
        self._system: int = library.sqlite3_vfs_find(None)
        self._of = _Vfs.from_address(self._system)
        self._real_open = _OPEN(self._of.open)
        self._real_delete = _DELETE(self._of.delete)
        self._made = _Vfs.from_buffer_copy(self._of)
        self._made.name = b"watched"
        self._made.next = None
        self._kept: list[Any] = [_OPEN(self._open), _DELETE(self._delete)]
        self._made.open = ctypes.cast(self._kept[0], _Pointer)
        self._made.delete = ctypes.cast(self._kept[1], _Pointer)
        self._methods: dict[int, _Methods] = {}  # ours, by the address of the system's
        self._paths: dict[int, tuple[str, int]] = {}  # of open files: name and flags

    @contextlib.contextmanager
    def watching(self, watch: Watch) -> Generator[Watch]:
        """Every database that is opened meanwhile is watched."""
        made = ctypes.addressof(self._made)
        self.watch = watch
        self.library.sqlite3_vfs_register(made, 1)
        try:
            yield watch
        finally:
            self.watch = None
            self.library.sqlite3_vfs_register(self._system, 1)

    def _open(self, _: int, name: int | None, file: int, flags: int, out: Any) -> int:
        if (wrong := self.goes_wrong("open")) is not None:
            ctypes.c_void_p.from_address(file).value = None
            return wrong
        done = self._real_open(self._system, name, file, flags, out)
        if done == 0 and name:
            path = os.fsdecode(ctypes.string_at(name))
            self._paths[file] = path, flags
            if self.watch is not None:
                self.watch.synced.discard(file)
            slot = ctypes.c_void_p.from_address(file)
            assert slot.value is not None
            slot.value = ctypes.addressof(self._watched(slot.value))
            if shim := self.shim():
                shim.made(path)
        self.is_over("open")
        return done

    def _delete(self, _: int, name: int, sync: int) -> int:
        if (wrong := self.goes_wrong("delete")) is not None:
            return wrong
        done = self._real_delete(self._system, name, sync)
        if done == 0 and (shim := self.shim()):
            shim.gone(os.fsdecode(ctypes.string_at(name)), synced=bool(sync))
        self.is_over("delete")
        return done

    def _watched(self, system: int) -> _Methods:
        """The methods of a file, each handed on to the system's."""
        if system in self._methods:
            return self._methods[system]
        made = _Methods.from_buffer_copy(_Methods.from_address(system))
        calls = _FileCalls(self, _Methods.from_address(system))
        for name, call in calls.made.items():
            setattr(made, name, ctypes.cast(call, _Pointer))
        self._kept.append(calls)
        self._methods[system] = made
        return made

    def goes_wrong(self, call: str) -> int | None:
        """None to hand the call on; else what it gives. A process that is to die does, here."""
        watch = self.watch
        if watch is None or not watch.is_now(call):
            return None
        if watch.kill == "before" or (watch.kill == "partial" and call != "write"):
            _die()
        if watch.kill is not None or watch.short or watch.code is None:
            return None
        return watch.result(call) or None

    def is_over(self, call: str) -> None:
        """The call was made; where it is to be the process's last, it is."""
        watch = self.watch
        if watch is not None and watch.kill == "after" and watch.hit == call:
            _die()

    def shim(self) -> power.Shim | None:
        """Whoever records what is done."""
        return None if self.watch is None else self.watch.record

    def place(self, file: int) -> tuple[str, int]:
        """Name and flags of an open file."""
        return self._paths.get(file, ("", 0))


class _FileCalls:
    """The calls that SQLite makes on an open file, each handed on to the system's."""

    def __init__(self, door: _Door, real: _Methods) -> None:
        self._door = door
        self._read, self._write = _MOVE(real.read), _MOVE(real.write)
        self._truncate, self._sync = _TRUNCATE(real.truncate), _SYNC(real.sync)
        self.made: dict[str, Any] = {
            "read": _MOVE(self.read),
            "write": _MOVE(self.write),
            "truncate": _TRUNCATE(self.truncate),
            "sync": _SYNC(self.sync),
        }

    def read(self, file: int, data: int, size: int, at: int) -> int:
        wrong = self._door.goes_wrong("read")
        return self._read(file, data, size, at) if wrong is None else wrong

    def write(self, file: int, data: int, size: int, at: int) -> int:
        if (wrong := self._door.goes_wrong("write")) is not None:
            return wrong
        watch = self._door.watch
        if watch is not None and watch.is_half():
            self._write(file, data, max(1, size // 2), at)
            if watch.kill:
                _die()
            return _FULL
        done = self._write(file, data, size, at)
        if shim := self._door.shim():
            shim.wrote(self._door.place(file)[0], at, ctypes.string_at(data, size))
        self._door.is_over("write")
        return done

    def truncate(self, file: int, size: int) -> int:
        if (wrong := self._door.goes_wrong("truncate")) is not None:
            return wrong
        done = self._truncate(file, size)
        if shim := self._door.shim():
            shim.sized(self._door.place(file)[0], size)
        self._door.is_over("truncate")
        return done

    def sync(self, file: int, flags: int) -> int:
        if (wrong := self._door.goes_wrong("sync")) is not None:
            return wrong
        done = self._sync(file, flags)
        watch, (path, opened) = self._door.watch, self._door.place(file)
        if watch is not None and watch.record is not None:
            first = file not in watch.synced and opened & _TO_SYNC_NAME and opened & _CREATE
            watch.record.synced(path, with_name=bool(first))
            watch.synced.add(file)
        self._door.is_over("sync")
        return done


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


_door: _Door | None = None


def door() -> _Door:
    """The watched door; skips where Python has a SQLite of its own inside."""
    global _door
    if _door is None:
        name = ctypes.util.find_library("sqlite3")
        if name is None or sys.platform != "linux":
            pytest.skip("needs sqlite3: its library is not there by itself")
        library = ctypes.CDLL(name)
        library.sqlite3_libversion.restype = ctypes.c_char_p
        if library.sqlite3_libversion().decode() != sqlite3.sqlite_version:
            pytest.skip("needs sqlite3: Python has another one inside")
        _door = _Door(library)
        _prove(_door)
    return _door


def _prove(made: _Door) -> None:
    """The library that is watched is the one that Python uses."""
    with faults.quick_folder() as folder, made.watching(Watch()) as watch:
        connection = sqlite3.connect(folder / "proof")
        connection.execute("CREATE TABLE t (a)")
        connection.close()
    if not watch.names:
        pytest.skip("needs sqlite3: Python has one of its own inside")


def run_with_error(
    fn: Callable[[], Any],
    n: int,
    code: int | None,
    *,
    short: bool = False,
    sticky: bool = False,
    calls: Sequence[str] = CALLS,
) -> Outcome:
    """Run `fn` with SQLite's nth call failing; what it raises is handed back."""
    watch = Watch(n, code, short, sticky, None, calls)
    with door().watching(watch):
        value, failure = faults.tried(fn)
    return Outcome(value, failure, watch.hit, tuple(watch.names))


def run_with_kill(
    fn: Callable[[Ack], object],
    n: int,
    *,
    when: When = "before",
    calls: Sequence[str] = WRITES,
) -> Death:
    """Run `fn(ack)` in a child that dies by SIGKILL at SQLite's nth call of these."""
    made = door()

    def work(ack: Ack) -> None:
        with made.watching(Watch(n, kill=when, calls=calls)):
            fn(ack)

    return faults.run_with_kill(work, sys.maxsize, calls=())


def recorded(root: Path, work: Callable[[Ack], object]) -> power.Record:
    """Do a piece of work and record what it and SQLite do below `root`."""
    made, shim = door(), power.Shim(root)
    with shim.watching(), made.watching(Watch(record=shim)):
        work(shim.record.ack)
    return shim.record
