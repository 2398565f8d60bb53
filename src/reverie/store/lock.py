"""Exclusive locks that the kernel holds, so that a dead process holds none.

A lock is `flock` on an open file: it ends with the process however that ends. What a lock file
says about its holder is for people to read; it never decides who holds the lock. No process is
signalled, no lock is broken by age, and no file is followed through a link.
Among machines that share a network folder the lock is only as good as that file system's.

Asking again and again favours whoever has just let go: among dozens of writers some would wait
for minutes. `take_turn` waits in the kernel's own queue instead: in the system call, in a thread
of its own since that call has no time limit, and woken with every release. One that gives up
leaves nothing locked behind.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
import threading
import time
from collections.abc import Generator
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from reverie.errors import Held, PathRefused, StoreError
from reverie.light import dataclass
from reverie.store.fs import SAFE, open_plain

PATIENCE = 10.0
"""Seconds to wait for another process that is about to be done with a file or a directory."""

NO_LOCKS = frozenset([errno.EBADF, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL])
"""What the system says where a file system has no locks."""

_BODY_LIMIT = 4096
_OPEN = os.O_RDWR | os.O_CREAT | SAFE
_PID_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lock: `since` is when it was taken, `started` the process's own start.

    `since` is in seconds of the wall clock; `started` in the kernel's ticks, which tell two
    processes of the same pid apart and mean nothing else.
    """

    pid: int
    host: str
    since: float | None = None
    started: int | None = None

    def __str__(self) -> str:
        when = "" if self.since is None else f" since {_clock(self.since)}"
        return f"process {self.pid} on {self.host}{when}"


class FileLock:
    """One exclusive lock, named by a path; a context manager that takes it without waiting."""

    __slots__ = ("_fd", "_pid", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None
        self._pid = 0

    @property
    def held(self) -> bool:
        return self._fd is not None

    def acquire(self, timeout: float = 0.0) -> None:
        """Take the lock or raise `Held`; with a timeout, ask again until it has passed."""
        if self._fd is not None:
            raise held_by(self.holder(), str(self.path))
        deadline = time.monotonic() + timeout
        while True:
            fd = self._open()
            try:
                self._check(fd)
                if not take(fd, deadline - time.monotonic()):
                    raise held_by(_read_holder(fd), str(self.path))
                if _is_at(self.path, fd):
                    break
            except OSError as error:
                release(fd)
                raise self._lock_failure(error) from error
            except BaseException:
                release(fd)
                raise
            release(fd)
        self._fd = fd
        self._pid = os.getpid()
        _write_holder(fd)

    @contextlib.contextmanager
    def hold(self, timeout: float) -> Generator[None]:
        """Hold the lock, waiting for it so many seconds at most."""
        self.acquire(timeout)
        try:
            yield
        finally:
            self.release()

    def release(self) -> None:
        """Give the lock up; in a forked child nothing but the child's descriptor goes."""
        fd, self._fd = self._fd, None
        if fd is None:
            return
        if self._pid != os.getpid():
            os.close(fd)
            return
        with contextlib.suppress(OSError):
            os.ftruncate(fd, 0)
        release(fd)

    def holder(self) -> Holder | None:
        """Give what the lock file says of its last holder, or None where it says nothing."""
        try:
            fd = open_plain(self.path)
        except OSError:
            return None
        if fd is None:
            return None
        try:
            return _read_holder(fd)
        finally:
            os.close(fd)

    def _open(self) -> int:
        try:
            return os.open(self.path, _OPEN, 0o600)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.EMLINK):
                raise self._path_refusal() from error
            raise self._lock_failure(error) from error

    def _check(self, fd: int) -> None:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode) or info.st_nlink > 1:
            raise self._path_refusal()

    def _path_refusal(self) -> PathRefused:
        return PathRefused(
            "The lock is a link, a folder or a special file",
            where=str(self.path),
            do="Move it away: a lock has to be a regular file",
        )

    def _lock_failure(self, error: OSError) -> StoreError:
        return not_locked(error, str(self.path))

    def __enter__(self) -> FileLock:
        self.acquire()
        return self

    def __exit__(self, *ended: object) -> None:
        self.release()


def not_locked(error: OSError, where: str) -> StoreError:
    """What a lock that the system did not give is called."""
    if error.errno in NO_LOCKS:
        return without_locks(where)
    return StoreError(
        f"The lock could not be taken: {os.strerror(error.errno or 0)}",
        where=where,
        do="See that the folder exists and can be written",
    )


def take(fd: int, timeout: float = 0.0) -> bool:
    """Lock an open file for this open alone; False where another holds it till the timeout."""
    deadline = time.monotonic() + timeout
    pause = 0.0005
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(pause, left))
            pause = min(pause * 2, 0.05)
        else:
            return True


def take_soon(fd: int, where: str) -> None:
    """Lock an open file that others hold for a moment only; after `PATIENCE`, raise `Held`."""
    if not take(fd, PATIENCE):
        raise held_by(holder_of(fd), where)


def release(fd: int) -> None:
    """Unlock and close, also where a forked child still has the file open."""
    with contextlib.suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_UN)
    with contextlib.suppress(OSError):
        os.close(fd)


def holder_of(fd: int) -> Holder | None:
    """Ask the kernel which process has this file locked; None where it does not tell."""
    info = os.fstat(fd)
    device = f"{os.major(info.st_dev):02x}:{os.minor(info.st_dev):02x}:{info.st_ino}"
    by_inode: list[int] = []
    for words in _kernel_locks():
        if words[1] != "FLOCK" or not words[5].endswith(f":{info.st_ino}"):
            continue
        if words[5] == device:
            return _process(int(words[4]))
        by_inode.append(int(words[4]))
    # Some file systems show another device number here than stat does.
    return _process(by_inode[0]) if len(by_inode) == 1 else None


def held_by(holder: Holder | None, where: str) -> Held:
    who = "another process" if holder is None else str(holder)
    return Held(f"In use by {who}", where=where, do="Close it there, or open it here only to read")


def without_locks(where: str) -> StoreError:
    """What is said of a file system on which no file can be locked."""
    return StoreError(
        "The file system has no locks, so nothing can be written safely",
        where=where,
        do="Use a folder on a disk of this machine",
    )


def held_up_by(holder: Holder | None, where: str, waited: float) -> Held:
    """What is said of a process that holds others up; one that was stopped is named as that."""
    if holder is None:
        return held_by(None, where)
    if is_stopped(holder.pid):
        what, do = f"In use by {holder}, which was stopped", f"kill -CONT {holder.pid}"
        return Held(what, where=where, do=f"Let it go on (`{do}`), or end it")
    what = f"In use by {holder}, for {waited:.0f} seconds and more"
    return Held(what, where=where, do="Wait until it is done, or end it")


def is_stopped(pid: int) -> bool:
    """Say whether a process was stopped, by a signal or a debugger, as far as that is known."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"T", b"t")
    except (OSError, IndexError):
        return False


def alive(pid: int) -> bool:
    """Say whether a process of this number runs on this machine; one that ended and was not
    waited for does not."""
    if not 0 < pid <= _PID_MAX:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _process_fields(pid)[:1] not in ([b"Z"], [b"X"])


def process_start(pid: int) -> int | None:
    """Give the start of a process in the kernel's ticks, or None where that is not knowable."""
    try:
        return int(_process_fields(pid)[19])
    except (IndexError, ValueError):
        return None


def _process_fields(pid: int) -> list[bytes]:
    """What the kernel says of a process behind its name; nothing where it says nothing."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def _process(pid: int) -> Holder | None:
    if pid <= 0:
        return None
    return Holder(pid, os.uname().nodename, None, process_start(pid))


def _kernel_locks() -> list[list[str]]:
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as file:
            rows = [line.split() for line in file]
    except OSError:
        return []
    return [row for row in rows if len(row) >= 6 and row[1] != "->" and row[4].isdecimal()]


def _is_at(path: Path, fd: int) -> bool:
    try:
        there = os.stat(path, follow_symlinks=False)
    except OSError:
        return False
    return os.path.samestat(there, os.fstat(fd))


def _write_holder(fd: int) -> None:
    """Say who we are. A full disk takes the name away, not the lock."""
    pid = os.getpid()
    holder = Holder(pid, os.uname().nodename, time.time(), process_start(pid))
    with contextlib.suppress(OSError):
        os.ftruncate(fd, 0)
        os.pwrite(fd, json.dumps(asdict(holder)).encode() + b"\n", 0)


def _read_holder(fd: int) -> Holder | None:
    """Read the body; one that is garbage, or names a process that is gone, says nothing."""
    try:
        found: Any = json.loads(os.pread(fd, _BODY_LIMIT, 0))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    body = cast("dict[str, Any]", found)
    pid, host = body.get("pid"), body.get("host")
    since, started = body.get("since"), body.get("started")
    if type(pid) is not int or not 0 < pid <= _PID_MAX or not isinstance(host, str):
        return None
    if host == os.uname().nodename and not alive(pid):
        return None
    return Holder(
        pid,
        "".join(c for c in host[:255] if c.isprintable()),
        float(since) if isinstance(since, int | float) and abs(since) < 1e12 else None,
        started if type(started) is int else None,
    )


def _clock(seconds: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    except (OverflowError, OSError, ValueError):
        return "an unknown time"


class _Waiter(threading.Thread):
    """Takes the lock on a descriptor of the same open file; lets go if nobody waits any more."""

    def __init__(self, fd: int) -> None:
        super().__init__(daemon=True)
        self._fd = os.dup(fd)
        self._ending = threading.Lock()
        self._abandoned = False
        self._ended = False
        self.error: OSError | None = None

    def run(self) -> None:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX)
        except OSError as error:
            self.error = error
        with self._ending:
            self._ended = True
            if self._abandoned:
                release(self._fd)
            else:
                os.close(self._fd)

    def wait(self, timeout: float) -> bool:
        self.start()
        self.join(timeout)
        with self._ending:
            self._abandoned = not self._ended
        if self.error is not None:
            raise self.error
        return not self._abandoned


def take_turn(fd: int, timeout: float) -> bool:
    """Lock an open file for this open alone; False where others hold it till the timeout."""
    return take(fd) or _Waiter(fd).wait(timeout)


def wait_turn(fd: int, where: str, moment: float, patience: float) -> None:
    """Lock in turn or raise `Held`; whoever was stopped while holding it is not waited for."""
    began = time.monotonic()
    while not take_turn(fd, moment):
        holder, waited = holder_of(fd), time.monotonic() - began
        if waited >= patience or (holder is not None and is_stopped(holder.pid)):
            raise held_up_by(holder, where, waited)
