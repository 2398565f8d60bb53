"""Folders that are there to stay: made, and their names on the disk before anything is put in.

So one that holds something is there for good. One that is empty may be of somebody who died
before its name was synced, or of another who waits for that now: whoever is about to use it
syncs it first. What was acknowledged in a folder that a power cut takes would be lost with it.

Everything raises `OSError` as the system gives it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from pathlib import Path

from reverie.store.plain import close, flush_directory

ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
"""How a folder is opened that whoever gives its path answers for."""


def make_folder(path: Path) -> None:
    """Make a folder, and those above it that are missing."""
    if os.path.lexists(path):
        if is_empty(path):
            # Where we may not look, it is none of ours.
            with contextlib.suppress(PermissionError), _opened(path.parent) as above:
                flush_directory(above)
        return
    if path.parent != path:
        make_folder(path.parent)
    with _opened(path.parent) as above:
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
def _opened(path: Path) -> Generator[int]:
    fd = os.open(path, ROOT)
    try:
        yield fd
    finally:
        close(fd)
