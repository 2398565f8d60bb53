"""The lock that writers of one memory folder wait for, in whatever process they are."""

from __future__ import annotations

from reverie.errors import WriteFailed
from reverie.store.files import Folder
from reverie.store.lock import NO_LOCKS, release, wait_turn, without_locks
from reverie.store.plain import words

LOCK = ".reverie-memory.lock"
PATIENCE = 60.0
"""Seconds to wait for others that write to the same folder."""
MOMENT = 3.0
"""Seconds after which one looks who it is that holds the lock."""


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
