"""Files opened through no link, written whole; folders made durable.

Plain files: opened through no link, read within bounds, written whole, and there to stay.

What is no plain file is never waited for. Everything raises `OSError` as the system gives it;
`words` puts one into words. Nothing here knows a key, and an fsync that failed is never
repeated. `digest` is what `expect` is compared with.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Generator
from pathlib import Path

SAFE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
"""How anything is opened: never through a link, never waiting for a pipe or device."""

FOLDER = os.O_RDONLY | os.O_DIRECTORY | SAFE
"""How a folder is opened."""

_CHUNK = 1 << 20
_BUSY: set[str] = set()


def words(error: OSError | ValueError) -> str:
    """Give a system error in words, with its name."""
    if isinstance(error, ValueError) or error.errno is None:
        return str(error)
    return f"{os.strerror(error.errno)} ({errno.errorcode.get(error.errno, error.errno)})"


def open_plain(path: str | Path) -> int | None:
    """Open a file to read, for the caller to close; None where it is no plain file."""
    fd = os.open(path, os.O_RDONLY | SAFE)
    try:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            return fd
    except BaseException:
        close(fd)
        raise
    close(fd)
    return None


def read_plain(path: str | Path, limit: int) -> bytes | None:
    """Give a file's bytes, one more than `limit` where there are more; None where it is no
    plain file. What cannot be opened, a link among it, raises."""
    fd = open_plain(path)
    if fd is None:
        return None
    try:
        return read_open(fd, limit + 1)
    finally:
        close(fd)


def read_open(fd: int, limit: int | None = None) -> bytes:
    """Give what an open file holds from where it is read next, at most `limit` bytes."""
    pieces: list[bytes] = []
    left = limit
    while left is None or left > 0:
        piece = os.read(fd, _CHUNK if left is None else min(left, _CHUNK))
        if not piece:
            break
        pieces.append(piece)
        left = None if left is None else left - len(piece)
    return b"".join(pieces)


def write_whole(fd: int, data: bytes) -> None:
    """Write every byte; the system may take them in any number of pieces."""
    left = memoryview(data)
    while left:
        count = os.write(fd, left)
        if count == 0:
            raise OSError(errno.EIO, "the system took no bytes and gave no error")
        left = left[count:]


def append_whole(fd: int, data: bytes) -> None:
    """Add lines at the end of a file that only we write to now: all, or as good as none.

    What was added is taken back on an error. Where that fails too, or a writer died half way,
    the next lines start on a line of their own and so stay readable.
    """
    end = os.fstat(fd).st_size
    if end and os.pread(fd, 1, end - 1) != b"\n":
        data = b"\n" + data
    try:
        write_whole(fd, data)
    except BaseException:
        with contextlib.suppress(OSError):
            if os.fstat(fd).st_size > end:
                os.ftruncate(fd, end)
        raise


def flush_file(fd: int, *, data_only: bool = False) -> None:
    """Wait until the file's bytes are on the disk. After an error, do not ask again."""
    full: int | None = getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:
        try:
            fcntl.fcntl(fd, full)
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY):
                raise
        else:
            return
    if data_only and hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:
        os.fsync(fd)


def flush_directory(fd: int) -> None:
    """Wait until the directory's names are on the disk, where its file system can do that."""
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise


def flush_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    fd = os.open(path, FOLDER)
    try:
        flush_directory(fd)
    finally:
        close(fd)


@contextlib.contextmanager
def temporary(at: int) -> Generator[str]:
    """Give a name for a file in a directory that is to be renamed; on an error it goes again."""
    name = f".reverie-{os.getpid()}-{os.urandom(8).hex()}.tmp"
    _BUSY.add(name)
    try:
        yield name
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=at)
        raise
    finally:
        _BUSY.discard(name)


def fill(at: int, temp: str, data: bytes, *, durable: bool, modified: int = 0) -> None:
    """Make a file of exactly these bytes, with its time in nanoseconds where one is given."""
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFE, 0o600, dir_fd=at)
    try:
        write_whole(fd, data)
        if os.fstat(fd).st_size != len(data):
            raise OSError(errno.EIO, "the file has not the size that was written")
        if modified:
            os.utime(fd, ns=(modified, modified))
        if durable:
            flush_file(fd)
    except BaseException:
        close(fd)
        raise
    # Some file systems report a full disk only here.
    os.close(fd)


def is_being_written(name: str) -> bool:
    """Say whether this process is writing the temporary file of this name."""
    return name in _BUSY


def close(fd: int) -> None:
    """Close what holds nothing unwritten."""
    with contextlib.suppress(OSError):
        os.close(fd)


def digest(data: bytes) -> str:
    """Give the SHA-256 of some bytes, as `expect` takes it."""
    return hashlib.sha256(data).hexdigest()


def digest_of(fd: int) -> str:
    """Give the SHA-256 of an open file, from where it is read next."""
    seen = hashlib.sha256()
    while piece := os.read(fd, _CHUNK):
        seen.update(piece)
    return seen.hexdigest()


# --- Folders that are there to stay: made, and their names on the disk before anything is put in.
#
# So one that holds something is there for good. One that is empty may be of somebody who died
# before its name was synced, or of another who waits for that now: whoever is about to use it
# syncs it first. What was acknowledged in a folder that a power cut takes would be lost with it.
#
# Everything raises `OSError` as the system gives it.


ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
"""How a folder is opened that whoever gives its path answers for."""


def make_folder(path: Path) -> None:
    """Make a folder, and those above it that are missing."""
    if os.path.lexists(path):
        if is_empty(path):
            # Where we may not look, it is none of ours.
            with contextlib.suppress(PermissionError), _open_folder(path.parent) as above:
                flush_directory(above)
        return
    if path.parent != path:
        make_folder(path.parent)
    with _open_folder(path.parent) as above:
        make_in(above, path.name)


def make_in(at: int, name: str) -> None:
    """Make a folder in an open one. On an error it goes again: a sync that failed is not repeated,
    and nobody may find what was not synced."""
    try:
        os.mkdir(name, 0o700, dir_fd=at)
    except FileExistsError:  # another was faster, and may not have synced it yet
        flush_directory(at)
        return
    try:
        flush_directory(at)
    except OSError:
        with contextlib.suppress(OSError):
            os.rmdir(name, dir_fd=at)
        raise


def is_empty(folder: Path | int) -> bool:
    """Whether nothing was put into a folder yet; True where that cannot be told."""
    try:
        with os.scandir(folder) as found:
            return next(found, None) is None
    except OSError:
        return True


@contextlib.contextmanager
def _open_folder(path: Path) -> Generator[int]:
    fd = os.open(path, ROOT)
    try:
        yield fd
    finally:
        close(fd)
