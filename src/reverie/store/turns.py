"""Waiting for a lock in the kernel's own queue, for folders that many processes write.

Asking again and again favours whoever has just let go: among dozens of writers some would wait
for minutes. Here a waiter sleeps in the system call, in a thread of its own since that call has
no time limit, and is woken with every release. One that gives up leaves nothing locked behind.
"""

from __future__ import annotations

import fcntl
import os
import threading

from reverie.store.lock import release, take


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
