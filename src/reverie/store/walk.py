"""The way from a root folder to what lies below it, name by name.

A `FolderWalk` knows its root by what it is, not by its name alone, and goes down from it by
descriptor, never through a link and never onto another mount: what a path meant when it was
looked at is what is opened. Between two ways down it holds nothing open; a root that another
folder has taken the place of is refused. It also says, in the house's words, what went wrong
under a key. It writes nothing but the folders it is asked for.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Generator, Sequence
from pathlib import Path

from reverie.errors import NotFound, PathRefused, StoreError, WriteFailed
from reverie.store import names
from reverie.store.durable import SAFE, close, flush_directory, words
from reverie.store.lock import release, take_soon

_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | SAFE
_NOT_OURS = frozenset([errno.ELOOP, errno.ENOTDIR, errno.EMLINK, errno.ENXIO, errno.EISDIR])
_NO_LOCKS = frozenset([errno.EBADF, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL])
_NO_FOLDER = ("The folder could not be made", "See that you may write to the one above it")


class FolderWalk:
    """A root folder, and every way down from it."""

    def __init__(self, root: Path, fd: int) -> None:
        """The root is what `fd` has open, which is closed."""
        self.root = root
        self._path = os.path.abspath(root)
        self._closed = False
        try:
            self._device, self._inode = _identity(fd)
            self._mount = _mount_id(fd)
        finally:
            close(fd)

    def close(self) -> None:
        """No way leads down any more."""
        self._closed = True

    @classmethod
    def from_root(cls, path: Path, *, create: bool) -> FolderWalk:
        """A root by its path, which whoever gives it answers for."""
        try:
            if create:
                _make(path)
            return cls(path, os.open(path, _ROOT))
        except FileNotFoundError as error:
            raise NotFound("The folder does not exist", where=str(path)) from error
        except (OSError, ValueError) as error:
            raise StoreError(
                f"The folder could not be opened: {words(error)}",
                where=names.shown(str(path)),
                do="See that it is a folder you may write to",
            ) from error

    def from_here(self, key: str, *, create: bool) -> FolderWalk:
        """A folder below this one as a root of its own."""
        parts = parts_of(key)
        with self.writes(key, *_NO_FOLDER) if create else self.reads(key):
            return FolderWalk(self.root / key, self.down(parts, key, create=create))

    def _top(self) -> int:
        """Open the root; the caller closes it."""
        if self._closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        fd = os.open(self._path, _ROOT)
        try:
            if _identity(fd) != (self._device, self._inode):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._path)
        except BaseException:
            close(fd)
            raise
        return fd

    def down(self, parts: Sequence[str], key: str, *, create: bool = False) -> int:
        """Open the folder that these names lead to; the caller closes it."""
        at = self._top()
        try:
            for part in parts:
                below = self._step(at, part, key, create=create)
                close(at)
                at = below
        except BaseException:
            close(at)
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
                raise self.refused(key, f"{names.shown(name)} is a link or no folder") from error
            raise
        try:
            self._check_mount(fd, key)
        except BaseException:
            close(fd)
            raise
        return fd

    def _make_below(self, at: int, name: str, key: str) -> None:
        with self.locked(at, key):
            self.refuse_twin(at, name, key)
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=at)
        flush_directory(at)

    @contextlib.contextmanager
    def parent(self, key: str, *, create: bool = False) -> Generator[tuple[int, str]]:
        """Give the folder that holds a key, open, and the key's last name."""
        *above, name = parts_of(key)
        at = self.down(above, key, create=create)
        try:
            yield at, name
        finally:
            close(at)

    def open(self, at: int, name: str, key: str, flags: int, *, single_link: bool) -> int:
        """Open a regular file of ours in an open folder; the caller closes it."""
        try:
            fd = os.open(name, flags | SAFE, 0o600, dir_fd=at)
        except OSError as error:
            if error.errno in _NOT_OURS:
                raise self.refused(key, "It is a link or a special file") from error
            raise
        try:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):
                raise self.refused(key, "It is not a regular file")
            if single_link and info.st_nlink > 1:
                raise self.refused(key, "It has a second name, perhaps outside its folder")
            self._check_mount(fd, key)
        except BaseException:
            close(fd)
            raise
        return fd

    def _check_mount(self, fd: int, key: str) -> None:
        if os.fstat(fd).st_dev == self._device:
            return
        # Overlays and subvolumes give other device numbers within one mount.
        mount = _mount_id(fd)
        if mount is None or mount != self._mount:
            raise self.refused(key, "It lies on another file system, mounted here")

    @contextlib.contextmanager
    def locked(self, at: int, key: str) -> Generator[None]:
        """Keep other processes and threads from changing names in a directory.

        A file system that cannot lock a directory leaves rename as the only protection.
        """
        fd = os.open(".", _DIRECTORY, dir_fd=at)
        try:
            try:
                take_soon(fd, self.shown(key))
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
            yield
        finally:
            release(fd)

    def refuse_twin(self, at: int, name: str, key: str) -> None:
        """Refuse a new name that some file system would take for one that is there."""
        folded = names.fold_key(name)
        for other in os.listdir(at):
            if other != name and names.fold_key(other) == folded:
                raise self.refused(
                    key, f"{names.shown(other)} is already there, the same but for case or accents"
                )

    # Errors in the house's words.

    def shown(self, key: str) -> str:
        return names.shown(str(self.root / key))

    def refused(self, key: str, what: str) -> PathRefused:
        return PathRefused(what, where=self.shown(key), do="Move it away or use another name")

    @contextlib.contextmanager
    def reads(self, key: str) -> Generator[None]:
        try:
            with self.missing(key):
                yield
        except OSError as error:
            what = f"The file could not be read: {words(error)}"
            raise StoreError(what, where=self.shown(key)) from error

    @contextlib.contextmanager
    def missing(self, key: str) -> Generator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise NotFound("There is no such file", where=self.shown(key)) from error

    @contextlib.contextmanager
    def writes(self, key: str, what: str, do: str) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise WriteFailed(f"{what}: {words(error)}", where=self.shown(key), do=do) from error


def parts_of(key: str) -> list[str]:
    """Give the names that a key is made of, or raise `PathRefused`."""
    names.check_key(key)
    return key.split("/")


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
    above = os.open(path.parent, _ROOT)
    try:
        flush_directory(above)
    finally:
        close(above)


def _identity(fd: int) -> tuple[int, int]:
    info = os.fstat(fd)
    return info.st_dev, info.st_ino


def _mount_id(fd: int) -> str | None:
    """Give the kernel's number of the mount a file lies on, where it tells."""
    try:
        with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as file:
            rows = dict(line.split(":", 1) for line in file if ":" in line)
    except OSError:
        return None
    return rows.get("mnt_id", "").strip() or None
