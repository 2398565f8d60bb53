"""A line at the end of a long file: added in its place, instead of the whole file anew.

The log of versions says first which bytes are to stand behind which size, and that is on the
disk before the file is touched. So whoever finds the file torn after a crash knows what was
meant: what is whole stays, a piece is cut off again, and what others wrote is left alone.
"""

from __future__ import annotations

import os

from reverie.memory.versions import SeenFile, Version
from reverie.store.files import Changed, Folder
from reverie.store.plain import append_whole, flush_file, read_open

_TAIL = 4_096


def seen(files: Folder, key: str) -> SeenFile:
    """How a file looks from outside."""
    with files.reading(key) as fd:
        return _seen(key, os.fstat(fd))


def tail(files: Folder, key: str) -> bytes:
    """The last bytes of a file."""
    with files.reading(key) as fd:
        os.lseek(fd, max(0, os.fstat(fd).st_size - _TAIL), os.SEEK_SET)
        return read_open(fd, _TAIL)


def add(files: Folder, key: str, line: bytes, known: SeenFile) -> SeenFile:
    """Add a line to a file that is still as it is known, and wait for the disk; how it looks
    then."""
    with files.writing(key) as fd:
        if _seen(key, os.fstat(fd)) != known:
            raise Changed("The file has changed since it was read", where=key)
        append_whole(fd, line)
        flush_file(fd)
        return _seen(key, os.fstat(fd))


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


def _seen(key: str, info: os.stat_result) -> SeenFile:
    return SeenFile(key, info.st_size, info.st_mtime_ns, info.st_ino)
