"""Access to a memory folder: one writer at a time, in whatever process, and trouble said once.

A folder that is gone, closed to us or failing is told of the first time, and the session goes on.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator
from typing import TypeVar

from reverie.errors import (
    Held,
    NotFound,
    PathRefused,
    ReverieError,
    SecretFound,
    StoreError,
    WriteFailed,
)
from reverie.store.files import Changed, Folder
from reverie.store.fs import append_whole, flush_file, read_open, words
from reverie.store.lock import NO_LOCKS, release, wait_turn, without_locks
from reverie.topics.versions import FileStamp, Version
from reverie.world import Notice, Say

LOCK = ".reverie-memory.lock"
PATIENCE = 60.0
"""Seconds to wait for others that write to the same folder."""
MOMENT = 3.0
"""Seconds after which one looks who it is that holds the lock."""

T = TypeVar("T")


def lock_folder(files: Folder) -> int:
    """Wait for one's turn; what is given is to be handed to `release`."""
    where = str(files.root)
    while True:
        fd = files.open_append(LOCK)
        try:
            wait_turn(fd, where, MOMENT, PATIENCE)
            if files.is_current(LOCK, fd):
                return fd
        except OSError as error:
            release(fd)
            if error.errno in NO_LOCKS:
                raise without_locks(where) from error
            what = f"The memory folder could not be locked: {words(error)}"
            raise WriteFailed(what, where=where) from error
        except BaseException:
            release(fd)
            raise
        release(fd)


class FolderErrors:
    """The failures of one memory folder; each is said the first time."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._said: set[str] = set()

    def soft(self, look: Callable[[], T], instead: T) -> T:
        """What a look gives, or something else where the folder does not let us."""
        try:
            return look()
        except (StoreError, NotFound) as error:
            self._warn(error)
            return instead

    @contextlib.contextmanager
    def failing(self) -> Generator[None]:
        """Say a failure of the folder; the error goes on to whoever wanted the write."""
        try:
            yield
        except (PathRefused, Changed, Held, SecretFound):  # of what is written, not of the folder
            raise
        except StoreError as error:
            self._warn(error)
            raise

    @contextlib.contextmanager
    def missing(self) -> Generator[None]:
        """Say that the folder is gone; what else is not found is an answer, not a failure."""
        try:
            yield
        except NotFound as error:
            self._warn(error)
            raise

    def _warn(self, error: ReverieError) -> None:
        if error.what not in self._said:
            self._said.add(error.what)
            text = f"long-term memory cannot be used as it should; the session goes on: {error}"
            self._say(Notice("memory", text, "warning"))


# --- A line at the end of a long file: added in its place, instead of the whole file anew.
#
# The log of versions says first which bytes are to stand behind which size, and that is on the
# disk before the file is touched. So whoever finds the file torn after a crash knows what was
# meant: what is whole stays, a piece is cut off again, and what others wrote is left alone.


_TAIL = 4_096


def observe_file(files: Folder, key: str) -> FileStamp:
    """How a file looks from outside."""
    with files.reading(key) as fd:
        return _file_state(key, os.fstat(fd))


def tail(files: Folder, key: str) -> bytes:
    """The last bytes of a file."""
    with files.reading(key) as fd:
        os.lseek(fd, max(0, os.fstat(fd).st_size - _TAIL), os.SEEK_SET)
        return read_open(fd, _TAIL)


def add(files: Folder, key: str, line: bytes, known: FileStamp) -> FileStamp:
    """Add a line to a file that is still as it is known, and wait for the disk; how it looks
    then."""
    with files.writing(key) as fd:
        if _file_state(key, os.fstat(fd)) != known:
            raise Changed("The file has changed since it was read", where=key)
        append_whole(fd, line)
        flush_file(fd)
        return _file_state(key, os.fstat(fd))


def mend(files: Folder, version: Version) -> bool:
    """Whether what a step was to add is there; a piece of it at the end is cut off."""
    wanted = version.added.encode("utf-8", "surrogatepass")
    if not files.exists(version.key):
        return False
    with files.writing(version.key) as fd:
        os.lseek(fd, version.size, os.SEEK_SET)
        there = read_open(fd, len(wanted) + 1)
        if there.startswith(wanted):
            flush_file(fd)
            return True
        if there and len(there) <= len(wanted) and wanted.startswith(there.rstrip(b"\0")):
            os.ftruncate(fd, version.size)
            flush_file(fd)
        return False


def _file_state(key: str, info: os.stat_result) -> FileStamp:
    return FileStamp(key, info.st_size, info.st_mtime_ns, info.st_ino)
