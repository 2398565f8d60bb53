"""Atomic writes that cannot leave their folder.

A `Folder` holds its root open and walks to every file name by name from there, by descriptor,
never through a link. So what a path meant when it was looked at is what is opened. A write puts
the new bytes in a temporary file beside the old one, checks that all of them arrived, and puts
it in place with one rename: whoever reads sees the old contents or the new, never a mix. Names
appear and disappear under an OS lock on the directory that holds them, which is also where
`expect` is compared.

It never writes through a link, into an outside file by a hard link, or across a mount; never
blocks on a pipe or device; never repeats an fsync that failed; and never leaves a file half
written under its own name.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import secrets
import stat
import time
import weakref
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from reverie.errors import NotFound, PathRefused, StoreError, WriteFailed
from reverie.store import names
from reverie.store.lock import alive, held_by, holder_of, let_go, take

PATIENCE = 10.0
"""Seconds to wait for another process that is putting a file in place in the same directory."""

_SAFE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | _SAFE
_NOT_OURS = frozenset([errno.ELOOP, errno.ENOTDIR, errno.EMLINK, errno.ENXIO, errno.EISDIR])
_NO_LOCKS = frozenset([errno.EBADF, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL])
_DAY = 86_400.0
_CHUNK = 1 << 20
_BUSY: set[str] = set()
_NO_FOLDER = ("The folder could not be made", "See that you may write to the one above it")


class Changed(WriteFailed):
    """The file is not as `expect` or `exclusive` said; nothing was written."""


@dataclass(frozen=True, slots=True)
class Stat:
    """What is known of a file without reading it; `modified` is in nanoseconds."""

    size: int
    modified: int
    links: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something in a folder that is not one of our files, and why."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class Survey:
    """A folder's files by key, sorted, and what was found there but left alone."""

    keys: tuple[str, ...]
    refused: tuple[Refusal, ...]


class Folder:
    """A root folder, held open; every method takes a key below it."""

    def __init__(self, root: Path | str, *, create: bool = True) -> None:
        path = Path(root)
        try:
            if create:
                _make(path)
            self._adopt(path, os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        except FileNotFoundError as error:
            raise NotFound("The folder does not exist", where=str(path)) from error
        except (OSError, ValueError) as error:
            raise StoreError(
                f"The folder could not be opened: {words(error)}",
                where=names.shown(str(path)),
                do="See that it is a folder you may write to",
            ) from error

    def _adopt(self, path: Path, fd: int) -> None:
        self.root = path
        self._fd = fd
        self._closer = weakref.finalize(self, _close, fd)
        self._device = os.fstat(fd).st_dev
        self._mount = _mount_id(fd)

    def close(self) -> None:
        self._closer()

    def __enter__(self) -> Folder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def path(self, key: str) -> Path:
        """Give the key as a path, to show or hand on; opening it by that name is not confined."""
        names.check_key(key)
        return self.root / key

    def sub(self, key: str, *, create: bool = True) -> Folder:
        """Open a folder below this one as a root of its own."""
        parts = _parts(key)
        with self._writes(key, *_NO_FOLDER) if create else self._reads(key):
            folder = object.__new__(Folder)
            folder._adopt(self.root / key, self._walk(parts, key, create=create))
            return folder

    def read(self, key: str, limit: int | None = None, *, single_link: bool = False) -> bytes:
        """Give the file's bytes, at most `limit` of them.

        `single_link` refuses a file that has a second name, perhaps outside: for what is
        about to be sent to others.
        """
        with self._reading(key, single_link=single_link) as fd:
            return _read_all(fd, limit)

    def digest(self, key: str) -> str:
        """Give the file's SHA-256, as `expect` takes it."""
        with self._reading(key) as fd:
            return _digest_of(fd)

    def exists(self, key: str) -> bool:
        """Say whether there is a regular file of ours under this key."""
        try:
            self.stat(key)
        except (NotFound, PathRefused):
            names.check_key(key)
            return False
        return True

    def stat(self, key: str) -> Stat:
        with self._reading(key) as fd:
            info = os.fstat(fd)
            return Stat(info.st_size, info.st_mtime_ns, info.st_nlink)

    def write(
        self,
        key: str,
        data: bytes,
        *,
        durable: bool = True,
        expect: str | None = None,
        exclusive: bool = False,
    ) -> None:
        """Put `data` in place of whatever the file held, whole or not at all.

        `expect` is the SHA-256 that the file must still have, `exclusive` says that there must
        be none: otherwise `Changed`, and nothing is written. `durable` returns only when a
        power loss cannot take it back.
        """
        with (
            self._writes(key, "The file could not be written", "Its old contents are intact"),
            self._parent(key, create=True) as (at, name),
        ):
            temp = f".reverie-{os.getpid()}-{secrets.token_hex(8)}.tmp"
            _BUSY.add(temp)
            try:
                _fill(at, temp, data, durable=durable)
                with _directory_lock(at, self._shown(key)):
                    self._admit(at, name, key, expect=expect, exclusive=exclusive)
                    os.rename(temp, name, src_dir_fd=at, dst_dir_fd=at)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temp, dir_fd=at)
                raise
            finally:
                _BUSY.discard(temp)
            if durable:
                self._settle(at, key)

    def _settle(self, at: int, key: str) -> None:
        what = "The new contents are in place but may not survive a power loss"
        with self._writes(key, what, "Check the disk, then write again"):
            flush_directory(at)

    def append_line(self, key: str, line: bytes) -> None:
        """Add one line to a file that several processes add to: whole, and on a line of its own.

        Not durable by itself, and not for a journal, which has one writer.
        """
        if b"\n" in line:
            raise ValueError("a line holds no newline")
        with self._writes(key, "The line could not be added", "Try again"):
            fd = self.open_append(key)
            try:
                if not take(fd, PATIENCE):
                    raise held_by(holder_of(fd), self._shown(key))
                append_whole(fd, line + b"\n")
            finally:
                let_go(fd)

    def remove(self, key: str, *, durable: bool = True, expect: str | None = None) -> None:
        """Remove the file; with `expect`, only while it still has that SHA-256."""
        with (
            self._writes(key, "The file could not be removed", "Try again"),
            self._missing(key),
            self._parent(key) as (at, name),
        ):
            with _directory_lock(at, self._shown(key)):
                if expect is not None:
                    self._compare(at, name, key, expect)
                elif stat.S_ISDIR(os.lstat(name, dir_fd=at).st_mode):
                    raise self._refused(key, "It is a folder")
                os.unlink(name, dir_fd=at)
            if durable:
                flush_directory(at)

    def list(self, under: str = "") -> tuple[str, ...]:
        """Give the keys of all files below `under`, sorted; nothing that is not ours."""
        return self.survey(under).keys

    def survey(self, under: str = "") -> Survey:
        """Give the keys below `under`, and what lies there that would be refused."""
        keys: list[str] = []
        refused: list[Refusal] = []
        with self._reads(under):
            for _, entry, key in self._visit(under, refused):
                if not names.is_temporary(entry.name):
                    keys.append(key)
        return Survey(tuple(sorted(keys)), tuple(sorted(refused, key=lambda one: one.key)))

    def sweep(self, under: str = "", *, older_than: float = 60.0, now: float | None = None) -> int:
        """Remove temporary files whose writer is gone; give their number.

        One whose writer seems alive goes after a day: its number may be another process by now.
        """
        clock = time.time() if now is None else now
        swept = 0
        with self._reads(under):
            for at, entry, _ in self._visit(under, []):
                found = names.TEMP_NAME.fullmatch(entry.name)
                if found is not None and _abandoned(at, found, older_than, clock):
                    with contextlib.suppress(OSError):
                        os.unlink(entry.name, dir_fd=at)
                        swept += 1
        return swept

    def open_read(self, key: str, *, single_link: bool = False) -> int:
        """Open a regular file to read; the caller closes it."""
        with self._reads(key), self._parent(key) as (at, name):
            return self._open(at, name, key, os.O_RDONLY, single_link=single_link)

    def open_append(self, key: str) -> int:
        """Open a file to read and to add at its end, made if missing; the caller closes it.

        A file with a second name is refused: what is added would show up there too.
        """
        with (
            self._writes(key, "The file could not be opened for writing", "Nothing was written"),
            self._parent(key, create=True) as (at, name),
        ):
            flags = os.O_RDWR | os.O_APPEND
            try:
                return self._open(at, name, key, flags, single_link=True)
            except FileNotFoundError:
                with _directory_lock(at, self._shown(key)):
                    self._refuse_twin(at, name, key)
                    return self._open(at, name, key, flags | os.O_CREAT, single_link=True)

    def is_current(self, key: str, fd: int) -> bool:
        """Say whether an open file is still the one under this key."""
        try:
            with self._reads(key), self._parent(key) as (at, name):
                return os.path.samestat(os.lstat(name, dir_fd=at), os.fstat(fd))
        except NotFound:
            return False

    def flush(self, key: str) -> None:
        """Make the file's name durable: its directory and every one above it, up to the root."""
        parts = _parts(key)
        with self._writes(key, "The folder could not be made durable", "Check the disk"):
            for depth in range(len(parts)):
                fd = self._walk(parts[:depth], key)
                try:
                    flush_directory(fd)
                finally:
                    _close(fd)

    # How a key becomes a descriptor.

    def _walk(self, parts: Sequence[str], key: str, *, create: bool = False) -> int:
        at = os.dup(self._fd)
        try:
            for part in parts:
                below = self._step(at, part, key, create=create)
                _close(at)
                at = below
        except BaseException:
            _close(at)
            raise
        return at

    def _step(self, at: int, name: str, key: str, *, create: bool) -> int:
        try:
            fd = os.open(name, _DIRECTORY, dir_fd=at)
        except FileNotFoundError:
            if not create:
                raise
            self._make_below(at, name, key)
            return self._step(at, name, key, create=False)
        except OSError as error:
            if error.errno in _NOT_OURS:
                raise self._refused(key, f"{names.shown(name)} is a link or no folder") from error
            raise
        try:
            self._check_mount(fd, key)
        except BaseException:
            _close(fd)
            raise
        return fd

    def _make_below(self, at: int, name: str, key: str) -> None:
        with _directory_lock(at, self._shown(key)):
            self._refuse_twin(at, name, key)
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=at)
        flush_directory(at)

    @contextlib.contextmanager
    def _parent(self, key: str, *, create: bool = False) -> Generator[tuple[int, str]]:
        *above, name = _parts(key)
        at = self._walk(above, key, create=create)
        try:
            yield at, name
        finally:
            _close(at)

    def _open(self, at: int, name: str, key: str, flags: int, *, single_link: bool) -> int:
        try:
            fd = os.open(name, flags | _SAFE, 0o600, dir_fd=at)
        except OSError as error:
            if error.errno in _NOT_OURS:
                raise self._refused(key, "It is a link or a special file") from error
            raise
        try:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):
                raise self._refused(key, "It is not a regular file")
            if single_link and info.st_nlink > 1:
                raise self._refused(key, "It has a second name, perhaps outside its folder")
            self._check_mount(fd, key)
        except BaseException:
            _close(fd)
            raise
        return fd

    @contextlib.contextmanager
    def _reading(self, key: str, *, single_link: bool = False) -> Generator[int]:
        fd = self.open_read(key, single_link=single_link)
        try:
            with self._reads(key):
                yield fd
        finally:
            _close(fd)

    def _check_mount(self, fd: int, key: str) -> None:
        if os.fstat(fd).st_dev == self._device:
            return
        # Overlays and subvolumes give other device numbers within one mount.
        mount = _mount_id(fd)
        if mount is None or mount != self._mount:
            raise self._refused(key, "It lies on another file system, mounted here")

    # What a name must satisfy before something appears under it.

    def _admit(self, at: int, name: str, key: str, *, expect: str | None, exclusive: bool) -> None:
        try:
            info = os.lstat(name, dir_fd=at)
        except FileNotFoundError:
            if expect is not None:
                raise self._changed(key, "The file is gone") from None
            self._refuse_twin(at, name, key)
            return
        if not stat.S_ISREG(info.st_mode):
            raise self._refused(key, "It is a link, a folder or a special file")
        if exclusive:
            raise self._changed(key, "The file is already there")
        if expect is not None:
            self._compare(at, name, key, expect)

    def _compare(self, at: int, name: str, key: str, expect: str) -> None:
        try:
            fd = self._open(at, name, key, os.O_RDONLY, single_link=False)
        except FileNotFoundError:
            raise self._changed(key, "The file is gone") from None
        try:
            if _digest_of(fd) != expect:
                raise self._changed(key, "The file has changed since it was read")
        finally:
            _close(fd)

    def _refuse_twin(self, at: int, name: str, key: str) -> None:
        """Refuse a new name that some file system would take for one that is there."""
        folded = names.fold_key(name)
        for other in os.listdir(at):
            if other != name and names.fold_key(other) == folded:
                raise self._refused(
                    key, f"{names.shown(other)} is already there, the same but for case or accents"
                )

    def _visit(
        self, under: str, refused: list[Refusal]
    ) -> Generator[tuple[int, os.DirEntry[str], str]]:
        """Give every file below `under`, temporary ones too, with its directory and key."""
        start = tuple(_parts(under)) if under else ()
        pending = [start]
        while pending:
            here = pending.pop()
            try:
                at = self._walk(here, "/".join(here))
            except (FileNotFoundError, PathRefused) as error:
                if here == start:
                    raise
                if isinstance(error, PathRefused):
                    refused.append(Refusal(names.shown("/".join(here)), error.what))
                continue
            try:
                for entry in _entries(at):
                    key = "/".join((*here, entry.name))
                    if names.is_temporary(entry.name):
                        yield at, entry, key
                    elif reason := _why_not(entry, key):
                        refused.append(Refusal(names.shown(key), reason))
                    elif entry.is_dir(follow_symlinks=False):
                        pending.append((*here, entry.name))
                    else:
                        yield at, entry, key
            finally:
                _close(at)

    # Errors in the house's words.

    def _shown(self, key: str) -> str:
        return names.shown(str(self.root / key))

    def _refused(self, key: str, what: str) -> PathRefused:
        return PathRefused(what, where=self._shown(key), do="Move it away or use another name")

    def _changed(self, key: str, what: str) -> Changed:
        return Changed(what, where=self._shown(key), do="Read it again and merge")

    @contextlib.contextmanager
    def _reads(self, key: str) -> Generator[None]:
        try:
            with self._missing(key):
                yield
        except OSError as error:
            what = f"The file could not be read: {words(error)}"
            raise StoreError(what, where=self._shown(key)) from error

    @contextlib.contextmanager
    def _missing(self, key: str) -> Generator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise NotFound("There is no such file", where=self._shown(key)) from error

    @contextlib.contextmanager
    def _writes(self, key: str, what: str, do: str) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise WriteFailed(f"{what}: {words(error)}", where=self._shown(key), do=do) from error


def digest(data: bytes) -> str:
    """Give the SHA-256 of some bytes, as `expect` takes it."""
    return hashlib.sha256(data).hexdigest()


def words(error: OSError | ValueError) -> str:
    """Give a system error in words, with its name."""
    if isinstance(error, ValueError) or error.errno is None:
        return str(error)
    return f"{os.strerror(error.errno)} ({errno.errorcode.get(error.errno, error.errno)})"


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


def _make(path: Path) -> None:
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return
    except FileNotFoundError:
        if path.parent == path:
            raise
        _make(path.parent)
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
    above = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        flush_directory(above)
    finally:
        _close(above)


def _parts(key: str) -> list[str]:
    names.check_key(key)
    return key.split("/")


def _fill(at: int, temp: str, data: bytes, *, durable: bool) -> None:
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE, 0o600, dir_fd=at)
    try:
        write_whole(fd, data)
        if os.fstat(fd).st_size != len(data):
            raise OSError(errno.EIO, "the file has not the size that was written")
        if durable:
            flush_file(fd)
    except BaseException:
        _close(fd)
        raise
    # Some file systems report a full disk only here.
    os.close(fd)


@contextlib.contextmanager
def _directory_lock(at: int, where: str) -> Generator[None]:
    """Keep other processes and threads from changing names in a directory.

    A file system that cannot lock a directory leaves rename as the only protection.
    """
    fd = os.open(".", _DIRECTORY, dir_fd=at)
    try:
        try:
            taken = take(fd, PATIENCE)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            taken = True
        if not taken:
            raise held_by(holder_of(fd), where)
        yield
    finally:
        let_go(fd)


def _abandoned(at: int, found: re.Match[str], older_than: float, now: float) -> bool:
    try:
        age = abs(now - os.lstat(found[0], dir_fd=at).st_mtime)
    except OSError:
        return False
    pid = int(found[1])
    # A container's processes get the same number in every life.
    busy = found[0] in _BUSY if pid == os.getpid() else alive(pid)
    return age >= _DAY or (age >= older_than and not busy)


def _read_all(fd: int, limit: int | None) -> bytes:
    pieces: list[bytes] = []
    left = limit
    while left is None or left > 0:
        piece = os.read(fd, _CHUNK if left is None else min(left, _CHUNK))
        if not piece:
            break
        pieces.append(piece)
        left = None if left is None else left - len(piece)
    return b"".join(pieces)


def _digest_of(fd: int) -> str:
    seen = hashlib.sha256()
    while piece := os.read(fd, _CHUNK):
        seen.update(piece)
    return seen.hexdigest()


def _entries(at: int) -> list[os.DirEntry[str]]:
    with os.scandir(at) as found:
        return list(found)


def _why_not(entry: os.DirEntry[str], key: str) -> str:
    try:
        names.check_key(key)
    except PathRefused as error:
        return error.what
    if entry.is_symlink():
        return "It is a link"
    if not entry.is_file(follow_symlinks=False) and not entry.is_dir(follow_symlinks=False):
        return "It is a special file"
    return ""


def _mount_id(fd: int) -> str | None:
    """Give the kernel's number of the mount a file lies on, where it tells."""
    try:
        with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as file:
            rows = dict(line.split(":", 1) for line in file if ":" in line)
    except OSError:
        return None
    return rows.get("mnt_id", "").strip() or None


def _close(fd: int) -> None:
    """Close what holds nothing unwritten."""
    with contextlib.suppress(OSError):
        os.close(fd)
