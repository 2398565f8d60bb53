"""How tools reach files: anywhere, or confined.

How the main agent's tools reach files: anywhere, once permission is given.

A path is resolved to the real file it names; permission is given for that; and what is
opened is reached from `/` name by name without following a link. A link that is put in
the way in between is refused. A write puts the new bytes beside the old file and renames,
so that a file is old or new, never a mix, and keeps its mode. Nothing is opened that
could block or act when it is opened: pipes, devices and sockets are refused by look.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from pathlib import Path

from reverie.errors import NotFound, PathRefused, StoreError, WriteFailed
from reverie.light import dataclass
from reverie.store.files import Changed, Folder
from reverie.store.fs import (
    SAFE,
    digest,
    flush_directory,
    flush_file,
    read_open,
    temporary,
    words,
    write_whole,
)
from reverie.store.paths import beneath, format_path
from reverie.store.sensitive_paths import GIT, SECRETS, is_gits, is_secret
from reverie.toolbox.tool import Denied

EDITABLE = 16 * 1024 * 1024
_STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | SAFE
_READ = os.O_RDONLY | SAFE
_LONGEST = 4096
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a link",
}


def absolute(path: str, cwd: Path, user: str = "") -> Path:
    """The path as it is meant, without looking at the disk."""
    if not path or "\0" in path:
        raise PathRefused("a path is empty or has a NUL byte", where=format_path(path))
    if len(path.encode("utf-8", "surrogateescape")) > _LONGEST:
        raise PathRefused(f"a path is longer than {_LONGEST:,} bytes", where=format_path(path))
    if user and (path == "~" or path.startswith("~/")):
        path = user + path[1:]
    return Path(os.path.join(cwd, path))


def from_here(path: Path, cwd: Path) -> Path:
    """A real path as it is told: from the working folder where it lies below it."""
    here = resolve(cwd)
    return path.relative_to(here) if beneath(here, path) else path


def resolve(path: Path) -> Path:
    """The real path; what does not exist yet keeps its name below its real folder."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError) as error:
        raise PathRefused("a path cannot be resolved", where=format_path(str(path))) from error


def open_real(path: Path) -> int:
    """Open a file or folder to read, by a real path; the caller closes it."""
    with _errors(path), _folder(path.parent) as at:
        if path == path.parent:
            return os.open("/", _READ | os.O_DIRECTORY)
        mode = os.lstat(path.name, dir_fd=at).st_mode
        _must_be_plain(mode, path)
        fd = os.open(path.name, _READ, dir_fd=at)
        try:
            _must_be_plain(os.fstat(fd).st_mode, path)
        except BaseException:
            os.close(fd)
            raise
        return fd


def _must_be_plain(mode: int, path: Path) -> None:
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "no file")
        raise PathRefused(
            f"it is {kind}, not a regular file or a folder", where=format_path(str(path))
        )


@contextlib.contextmanager
def _folder(path: Path) -> Generator[int]:
    """A folder's descriptor, reached from / without following a link."""
    at = os.open("/", _STEP)
    try:
        for name in path.parts[1:]:
            below = os.open(name, _STEP, dir_fd=at)
            os.close(at)
            at = below
        yield at
    finally:
        os.close(at)


@contextlib.contextmanager
def _errors(path: Path) -> Generator[None]:
    where = format_path(str(path))
    try:
        yield
    except FileNotFoundError as error:
        raise NotFound("there is no such file or folder", where=where) from error
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise PathRefused("a link or a file stands in the way", where=where) from error
        raise StoreError(f"it could not be opened: {words(error)}", where=where) from error


def content(fd: int, path: Path) -> bytes:
    """All of a file that is small enough to be edited."""
    data = read_open(fd, EDITABLE + 1)
    if len(data) > EDITABLE:
        raise StoreError(
            f"the file has more than {EDITABLE:,} bytes, too many to edit in memory",
            where=format_path(str(path)),
            do="Change it with a command",
        )
    return data


def put(path: Path, data: bytes, expect: str | None) -> None:
    """Put a file in place, made with its folders where it is missing."""
    where = format_path(str(path))
    try:
        os.makedirs(path.parent, exist_ok=True)
        with _folder(path.parent) as at:
            _put(at, path, data, expect)
    except OSError as error:
        raise WriteFailed(
            f"the file could not be written: {words(error)}",
            where=where,
            do="Its old contents are intact",
        ) from error


def _put(at: int, path: Path, data: bytes, expect: str | None) -> None:
    here = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=at)
    try:
        with temporary(here) as temp:
            old = _compare(here, path, expect)
            _fill(here, temp, data, old)
            _compare(here, path, expect)
            os.rename(temp, path.name, src_dir_fd=here, dst_dir_fd=here)
            flush_directory(here)
    finally:
        os.close(here)


def _fill(at: int, temp: str, data: bytes, old: os.stat_result | None) -> None:
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=at)
    try:
        write_whole(fd, data)
        if old is not None:
            _take_after(fd, old)
        flush_file(fd)
    finally:
        os.close(fd)


def _take_after(fd: int, old: os.stat_result) -> None:
    """The new file belongs to whom the old one did, and may be used as it could."""
    with contextlib.suppress(OSError):
        if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
            os.fchown(fd, old.st_uid, old.st_gid)
    os.fchmod(fd, stat.S_IMODE(old.st_mode))


def _compare(at: int, path: Path, expect: str | None) -> os.stat_result | None:
    """What is there now, if it is as expected."""
    where = format_path(str(path))
    try:
        info = os.lstat(path.name, dir_fd=at)
    except FileNotFoundError:
        if expect is not None:
            raise Changed("the file is gone", where=where, do="Look again") from None
        return None
    _must_be_plain(info.st_mode, path)
    if stat.S_ISDIR(info.st_mode):
        raise PathRefused("it is a folder", where=where)
    if expect is None:
        raise Changed("the file is already there", where=where, do="Read it first")
    fd = os.open(path.name, _READ, dir_fd=at)
    try:
        if digest(content(fd, path)) != expect:
            raise Changed("the file changed since it was read", where=where, do="Read it again")
    finally:
        os.close(fd)
    return info


@dataclass(frozen=True, slots=True)
class UnconfinedFiles:
    """`tool.Files` without walls: permission is asked before, for the real path."""

    cwd: Path
    user: str = ""
    settled: bool = False  # permission was given for a real path: do not resolve again

    def granted(self) -> UnconfinedFiles:
        return replace(self, settled=True)

    def find(self, path: str) -> Path:
        named = absolute(path, self.cwd, self.user)
        return Path(os.path.normpath(named)) if self.settled else resolve(named)

    def target(self, path: str) -> Path:
        return self.find(path)

    def open(self, path: Path) -> int:
        return open_real(path)

    def write(self, path: Path, data: bytes, expect: str | None) -> None:
        put(path, data, expect)

    def hidden(self, path: Path) -> bool:
        del path
        return False

    def hidden_below(self, folder: Path) -> tuple[str, ...]:
        return () if is_secret(folder) else SECRETS  # permission was asked for that folder


# --- Files for background agents: a few folders to read, fewer to write, nothing else.
#
# A path is normalised and resolved, and the real path is compared name by name with the folders:
# the innermost that holds it decides. Files that hold keys or passwords (`private`) and git's own
# are refused wherever they lie. What is opened is reached without following a link; what is
# written goes through a `Folder` that was opened before the agent began, so that no link or rename
# on the way leads out. Every refusal is told to whoever made this.


@dataclass(frozen=True, slots=True)
class WritableRoot:
    """A folder that may be written to, held open; or one file in it alone."""

    folder: Folder
    only: str = ""

    @classmethod
    def of(cls, path: str) -> WritableRoot:
        """A folder, or a file where the path is one or ends like one."""
        real = resolve(Path(os.path.abspath(path)))
        is_file = real.is_file() or (not real.is_dir() and bool(real.suffix))
        return cls(Folder(real.parent), real.name) if is_file else cls(Folder(real))

    @property
    def root(self) -> Path:
        return self.folder.root / self.only if self.only else self.folder.root

    def key(self, path: Path) -> str:
        """The key of a path in it; nothing where it is not in it."""
        if self.only:
            return self.only if path == self.root else ""
        return str(path.relative_to(self.root)) if beneath(self.root, path) else ""


class ConfinedFiles:
    """`tool.Files` between walls."""

    def __init__(
        self,
        cwd: Path,
        readable: Iterable[Path],
        writable: Iterable[WritableRoot],
        refused: Iterable[Path] = (),
        denied: Callable[[str, str], None] = lambda _path, _why: None,
    ) -> None:
        self.cwd = cwd
        self.slots = tuple(writable)
        self.readable = (*map(resolve, readable), *(slot.root for slot in self.slots))
        self.refused = tuple(map(resolve, refused))
        self.written: list[str] = []
        self._denied = denied

    def granted(self) -> ConfinedFiles:
        return self  # a path is looked at each time it is used

    def find(self, path: str) -> Path:
        try:
            real = resolve(self._by_name(path) or absolute(path, self.cwd))
        except PathRefused as error:
            raise self._deny(path, error.what) from error
        return self._readable(real, path)

    def _by_name(self, path: str) -> Path | None:
        """A bare name of a file that lies in a folder that may be written."""
        places = self._bare(path)
        return next((one for one in places if self._slot(one)[0] and self._is_there(one)), None)

    def _bare(self, path: str) -> list[Path]:
        """Where a bare name of a note may be meant, beside the working folder."""
        named = path == os.path.basename(path) and path.endswith(".md")
        return [slot.folder.root / path for slot in self.slots if named]

    def _is_there(self, place: Path) -> bool:
        return place.is_file()

    def _readable(self, real: Path, named: str) -> Path:
        if is_secret(real) or is_secret(Path(named)):
            raise self._deny(named, "it may hold keys or passwords")
        if is_gits(real):
            raise self._deny(named, "it belongs to git's own files")
        if not self.allows(real):
            raise self._deny(named, "it is outside the folders that may be read")
        return real

    def allows(self, real: Path) -> bool:
        """Whether the innermost folder that holds a path is one that may be read."""
        yes = max((len(p.parts) for p in self.readable if beneath(p, real)), default=0)
        no = max((len(p.parts) for p in self.refused if beneath(p, real)), default=0)
        return yes > no

    def open(self, path: Path) -> int:
        self._readable(path, str(path))
        try:
            return open_real(path)
        except PathRefused as error:
            raise self._deny(str(path), error.what) from error

    def target(self, path: str) -> Path:
        try:
            named = Path(os.path.normpath(absolute(path, self.cwd)))
            for candidate in (named, resolve(named.parent) / named.name, *self._bare(path)):
                slot, key = self._slot(candidate)
                if slot is not None:
                    slot.folder.path(key)  # refuses names that are not safe everywhere
                    return slot.folder.root / key
        except PathRefused as error:
            raise self._deny(path, error.what) from error
        raise self._deny(path, "it is outside the folders that may be written")

    def _slot(self, path: Path) -> tuple[WritableRoot | None, str]:
        for slot in self.slots:
            key = slot.key(path)
            if key and key != ".":
                if any(name.startswith(".") for name in key.split("/")):
                    raise PathRefused("hidden files are not written here")
                return slot, key
        return None, ""

    def write(self, path: Path, data: bytes, expect: str | None) -> None:
        slot, key = self._slot(path)
        if slot is None:
            raise self._deny(str(path), "it is outside the folders that may be written")
        try:
            slot.folder.write(key, data, expect=expect, exclusive=expect is None)
        except PathRefused as error:
            raise self._deny(str(path), error.what) from error
        self.written.append(str(path))

    def hidden(self, path: Path) -> bool:
        return is_secret(path) or is_gits(path) or not self.allows(path)

    def hidden_below(self, folder: Path) -> tuple[str, ...]:
        inner = (p for p in self.refused if beneath(folder, p) and p != folder)
        return (GIT, *SECRETS, *(f"/{escape_glob(p.relative_to(folder))}" for p in inner))

    def _deny(self, path: str, why: str) -> Denied:
        self._denied(format_path(path), why)
        return Denied(f"not permitted here: {why}", where=format_path(path))

    def close(self) -> None:
        for slot in self.slots:
            slot.folder.close()


def escape_glob(path: Path) -> str:
    """A path as a glob that means just itself."""
    return "".join(f"\\{c}" if c in "*?[]{}\\!" else c for c in str(path))
