"""Access to a memory folder: one writer at a time, in whatever process, and trouble said once.

A folder that is gone, closed to us or failing is told of the first time, and the session goes on.
"""

from __future__ import annotations

import contextlib
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
from reverie.store.lock import NO_LOCKS, release, wait_turn, without_locks
from reverie.store.plain import words
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


class FolderTrouble:
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
