"""Atomic writes that cannot leave their folder.

A `Folder` walks to every file name by name from its root, by descriptor, never through a link,
and holds nothing open in between. What a path meant when it was looked at is what is opened: a
folder that was put in the root's place is refused. A write puts
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
import os
import re
import stat
import time
from collections.abc import Generator
from pathlib import Path

from reverie.errors import NotFound, PathRefused, WriteFailed
from reverie.light import dataclass
from reverie.store.fs import (
    append_whole,
    close,
    digest_of,
    fill,
    flush_directory,
    flush_file,
    is_being_written,
    read_open,
    temporary,
)
from reverie.store.lock import alive, release, take_soon
from reverie.store.paths import (
    TEMP_NAME,
    FolderWalk,
    check_key,
    format_path,
    is_temporary,
    parts_of,
)

_DAY = 86_400.0


class Changed(WriteFailed, code="changed"):
    """The file is not as `expect` or `exclusive` said; nothing was written."""


@dataclass(frozen=True, slots=True)
class Stat:
    """What is known of a file without reading it; `modified` is in nanoseconds."""

    size: int
    modified: int
    links: int


@dataclass(frozen=True, slots=True)
class SkippedEntry:
    """Something in a folder that is not one of our files, and why."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class FolderListing:
    """A folder's files by key, sorted, and what was found there but left alone."""

    keys: tuple[str, ...]
    refused: tuple[SkippedEntry, ...]


class Folder:
    """A root folder; every method takes a key below it."""

    def __init__(self, root: Path | str, *, create: bool = True) -> None:
        self._adopt(FolderWalk.from_root(Path(root), create=create))

    def _adopt(self, walk: FolderWalk) -> None:
        self.root = walk.root
        self._walk = walk

    def close(self) -> None:
        self._walk.close()

    def must_be_there(self) -> None:
        """Raise NotFound where the folder is gone, or another has taken its place."""
        self._walk.must_be_there()

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()

    def path(self, key: str) -> Path:
        """Give the key as a path, to show or hand on; opening it by that name is not confined."""
        check_key(key)
        return self.root / key

    def sub(self, key: str, *, create: bool = True) -> Folder:
        """Open a folder below this one as a root of its own."""
        folder = object.__new__(Folder)
        folder._adopt(self._walk.from_here(key, create=create))
        return folder

    def read(self, key: str, limit: int | None = None, *, single_link: bool = False) -> bytes:
        """Give the file's bytes, at most `limit` of them.

        `single_link` refuses a file that has a second name, perhaps outside: for what is
        about to be sent to others.
        """
        with self.reading(key, single_link=single_link) as fd:
            return read_open(fd, limit)

    def digest(self, key: str) -> str:
        """Give the file's SHA-256, as `expect` takes it."""
        with self.reading(key) as fd:
            return digest_of(fd)

    def exists(self, key: str) -> bool:
        """Say whether there is a regular file of ours under this key."""
        try:
            self.stat(key)
        except (NotFound, PathRefused):
            check_key(key)
            return False
        return True

    def stat(self, key: str) -> Stat:
        with self.reading(key) as fd:
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
        modified: int = 0,
        twin: str | None = None,
    ) -> None:
        """Put `data` in place of whatever the file held, whole or not at all.

        `expect` is the SHA-256 that the file must still have, `exclusive` says that there must
        be none: otherwise `Changed`, and nothing is written. `durable` returns only when a
        power loss cannot take it back. `modified` is the file's time in nanoseconds, if not now.
        A new name that some file system would take for another one is refused; `twin` is that
        other, or "", where the caller knows, so that the folder need not be listed.
        """
        with (
            self._walk.writes(key, "The file could not be written", "Its old contents are intact"),
            self._walk.parent(key, create=True) as (at, name),
        ):
            with temporary(at) as temp:
                fill(at, temp, data, durable=durable, modified=modified)
                with self._walk.locked(at, key):
                    self._admit(at, name, key, expect=expect, exclusive=exclusive, twin=twin)
                    os.rename(temp, name, src_dir_fd=at, dst_dir_fd=at)
            if durable:
                self._settle(at, key)

    def _settle(self, at: int, key: str) -> None:
        what = "The new contents are in place but may not survive a power loss"
        with self._walk.writes(key, what, "Check the disk, then write again"):
            flush_directory(at)

    def append_line(self, key: str, line: bytes, *, durable: bool = False) -> None:
        """Add one line to a file that several processes add to: whole, and on a line of its own.

        `durable` waits for its bytes, not for the file's name: see `flush`. Not for a journal,
        which has one writer.
        """
        if b"\n" in line:
            raise ValueError("a line holds no newline")
        with self._walk.writes(key, "The line could not be added", "Try again"):
            fd = self.open_append(key)
            try:
                take_soon(fd, self._walk.shown(key))
                append_whole(fd, line + b"\n")
                if durable:
                    flush_file(fd)
            finally:
                release(fd)

    def remove(self, key: str, *, durable: bool = True, expect: str | None = None) -> None:
        """Remove the file; with `expect`, only while it still has that SHA-256."""
        with (
            self._walk.writes(key, "The file could not be removed", "Try again"),
            self._walk.missing(key),
            self._walk.parent(key) as (at, name),
        ):
            with self._walk.locked(at, key):
                if expect is not None:
                    self._compare(at, name, key, expect)
                elif stat.S_ISDIR(os.lstat(name, dir_fd=at).st_mode):
                    raise self._walk.refused(key, "It is a folder")
                os.unlink(name, dir_fd=at)
            if durable:
                flush_directory(at)

    def list(self, under: str = "") -> tuple[str, ...]:
        """Give the keys of all files below `under`, sorted; nothing that is not ours."""
        return self.survey(under).keys

    def survey(self, under: str = "") -> FolderListing:
        """Give the keys below `under`, and what lies there that would be refused."""
        keys: list[str] = []
        refused: list[SkippedEntry] = []
        with self._walk.reads(under):
            for _, entry, key in self._visit(under, refused):
                if not is_temporary(entry.name):
                    keys.append(key)
        return FolderListing(tuple(sorted(keys)), tuple(sorted(refused, key=lambda one: one.key)))

    def sweep(self, under: str = "", *, older_than: float = 60.0, now: float | None = None) -> int:
        """Remove temporary files whose writer is gone; give their number.

        One whose writer seems alive goes after a day: its number may be another process by now.
        """
        clock = time.time() if now is None else now
        swept = 0
        with self._walk.reads(under):
            for at, entry, _ in self._visit(under, []):
                found = TEMP_NAME.fullmatch(entry.name)
                if found is not None and _is_abandoned(at, found, older_than, clock):
                    with contextlib.suppress(OSError):
                        os.unlink(entry.name, dir_fd=at)
                        swept += 1
        return swept

    def open_read(self, key: str, *, single_link: bool = False) -> int:
        """Open a regular file to read; the caller closes it."""
        with self._walk.reads(key), self._walk.parent(key) as (at, name):
            return self._walk.open(at, name, key, os.O_RDONLY, single_link=single_link)

    def open_append(self, key: str) -> int:
        """Open a file to read and to add at its end, made if missing; the caller closes it.

        A file with a second name is refused: what is added would show up there too.
        """
        with (
            self._walk.writes(
                key, "The file could not be opened for writing", "Nothing was written"
            ),
            self._walk.parent(key, create=True) as (at, name),
        ):
            flags = os.O_RDWR | os.O_APPEND
            try:
                return self._walk.open(at, name, key, flags, single_link=True)
            except FileNotFoundError:
                with self._walk.locked(at, key):
                    self._walk.refuse_twin(at, name, key)
                    return self._walk.open(at, name, key, flags | os.O_CREAT, single_link=True)

    @contextlib.contextmanager
    def writing(self, key: str) -> Generator[int]:
        """Have a file open to read and to add at its end, as `open_append` opens it."""
        with self._walk.writes(key, "The file could not be written", "Check the disk"):
            fd = self.open_append(key)
            try:
                yield fd
            finally:
                close(fd)

    def is_current(self, key: str, fd: int) -> bool:
        """Say whether an open file is still the one under this key."""
        try:
            with self._walk.reads(key), self._walk.parent(key) as (at, name):
                return os.path.samestat(os.lstat(name, dir_fd=at), os.fstat(fd))
        except NotFound:
            return False

    def flush(self, key: str) -> None:
        """Make the file's name durable: its directory and every one above it, up to the root."""
        parts = parts_of(key)
        with self._walk.writes(key, "The folder could not be made durable", "Check the disk"):
            for depth in range(len(parts)):
                fd = self._walk.down(parts[:depth], key)
                try:
                    flush_directory(fd)
                finally:
                    close(fd)

    @contextlib.contextmanager
    def reading(self, key: str, *, single_link: bool = False) -> Generator[int]:
        """Open a file to read; what fails inside is told in the house's words."""
        fd = self.open_read(key, single_link=single_link)
        try:
            with self._walk.reads(key):
                yield fd
        finally:
            close(fd)

    # What a name must satisfy before something appears under it.

    def _admit(
        self,
        at: int,
        name: str,
        key: str,
        *,
        expect: str | None,
        exclusive: bool,
        twin: str | None,
    ) -> None:
        try:
            info = os.lstat(name, dir_fd=at)
        except FileNotFoundError:
            if expect is not None:
                raise self._changed_error(key, "The file is gone") from None
            self._walk.refuse_twin(at, name, key, twin)
            return
        if not stat.S_ISREG(info.st_mode):
            raise self._walk.refused(key, "It is a link, a folder or a special file")
        if exclusive:
            raise self._changed_error(key, "The file is already there")
        if expect is not None:
            self._compare(at, name, key, expect)

    def _compare(self, at: int, name: str, key: str, expect: str) -> None:
        try:
            fd = self._walk.open(at, name, key, os.O_RDONLY, single_link=False)
        except FileNotFoundError:
            raise self._changed_error(key, "The file is gone") from None
        try:
            if digest_of(fd) != expect:
                raise self._changed_error(key, "The file has changed since it was read")
        finally:
            close(fd)

    def _visit(
        self, under: str, refused: list[SkippedEntry]
    ) -> Generator[tuple[int, os.DirEntry[str], str]]:
        """Give every file below `under`, temporary ones too, with its directory and key."""
        start = tuple(parts_of(under)) if under else ()
        pending = [start]
        while pending:
            here = pending.pop()
            try:
                at = self._walk.down(here, "/".join(here))
            except (FileNotFoundError, PathRefused) as error:
                if here == start:
                    raise
                if isinstance(error, PathRefused):
                    refused.append(SkippedEntry(format_path("/".join(here)), error.what))
                continue
            try:
                for entry in _entries(at):
                    key = "/".join((*here, entry.name))
                    if is_temporary(entry.name):
                        yield at, entry, key
                    elif reason := _why_not(entry, key):
                        refused.append(SkippedEntry(format_path(key), reason))
                    elif entry.is_dir(follow_symlinks=False):
                        pending.append((*here, entry.name))
                    else:
                        yield at, entry, key
            finally:
                close(at)

    def _changed_error(self, key: str, what: str) -> Changed:
        return Changed(what, where=self._walk.shown(key), do="Read it again and merge")


def _is_abandoned(at: int, found: re.Match[str], older_than: float, now: float) -> bool:
    """Say whether a temporary file's writer is gone, or a day has passed."""
    try:
        age = abs(now - os.lstat(found[0], dir_fd=at).st_mtime)
    except OSError:
        return False
    pid = int(found[1])
    # A container's processes get the same number in every life.
    busy = is_being_written(found[0]) if pid == os.getpid() else alive(pid)
    return age >= _DAY or (age >= older_than and not busy)


def _entries(at: int) -> list[os.DirEntry[str]]:
    with os.scandir(at) as found:
        return list(found)


def _why_not(entry: os.DirEntry[str], key: str) -> str:
    try:
        check_key(key)
    except PathRefused as error:
        return error.what
    if entry.is_symlink():
        return "It is a link"
    if not entry.is_file(follow_symlinks=False) and not entry.is_dir(follow_symlinks=False):
        return "It is a special file"
    return ""
