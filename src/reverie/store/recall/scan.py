"""What lies in a memory folder, seen as fast as the system tells it: no file is opened.

Every `.md` below the folder, but any index and the daily logs. Links and special files are not
followed; a folder that vanishes on the way has nothing in it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reverie.memory.format.entry import LOGS, is_topic
from reverie.store.names import DEPTH

FileStamp = tuple[int, int, int]
"""Time of change in nanoseconds, size, inode: another one is another content."""


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a look at the files did; `whole` is False where it was cut off or kept out."""

    seen: int = 0
    changed: int = 0
    removed: int = 0
    whole: bool = True


@dataclass(slots=True)
class FolderScan:
    """What differs from what is known: files that are new or changed, and files that are gone."""

    seen: int = 0
    changed: dict[str, FileStamp] = field(default_factory=dict[str, FileStamp])
    gone: list[str] = field(default_factory=list[str])


KnownFiles = Mapping[str, Mapping[str, FileStamp]]
"""The marks of known files, by folder (`""`, `team/`) and name."""


def scan(folder: Path, known: KnownFiles) -> FolderScan:
    """Every memory below a folder against what is known of them."""
    found = FolderScan()
    visited: set[str] = set()
    pending = [(str(folder), "", 1)]
    while pending:
        path, prefix, depth = pending.pop()
        visited.add(prefix)
        here = known.get(prefix, {})
        entries = _entries(path)
        others: list[os.DirEntry[str]] = []
        for entry in entries:
            mark = here.get(entry.name)
            if mark is None or mark != _mark(entry):
                others.append(entry)
        found.seen += len(entries) - len(others)
        for entry in others:
            key = prefix + entry.name
            mark = _mark(entry) if is_topic(key) and is_text(key) else None
            if mark is not None:
                found.changed[key] = mark
                found.seen += 1
            elif depth < DEPTH and key.casefold() != LOGS and _is_folder(entry):
                pending.append((entry.path, f"{key}/", depth + 1))
        if len(entries) - len(others) < len(here):
            there = {entry.name for entry in entries if _mark(entry) is not None}
            found.gone += [prefix + name for name in here if name not in there]
    found.gone += [p + name for p in known if p not in visited for name in known[p]]
    return found


def is_text(key: str) -> bool:
    """Whether a name is text at all; some file systems have names that are none."""
    try:
        key.encode()
    except UnicodeEncodeError:
        return False
    return True


def mark_of(found: os.stat_result) -> FileStamp | None:
    if not stat.S_ISREG(found.st_mode):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _mark(entry: os.DirEntry[str]) -> FileStamp | None:
    try:
        return mark_of(entry.stat(follow_symlinks=False))
    except OSError:
        return None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _entries(path: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as found:
            return list(found)
    except OSError:
        return []
