"""The files under home, seen one by one: their rights, and what a crash left behind.

Nothing is followed through a link, and nothing that is not ours is touched: a file that has a
second name, perhaps outside, is named and left as it is; where home is also Claude Code's
folder, only our own part of it is looked at.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from reverie.errors import InvalidInput, ReverieError
from reverie.settings.sources import TRUST_FOLDER as TRUSTED
from reverie.store import home as places
from reverie.store.approvals import RECORD
from reverie.store.files import Folder
from reverie.store.paths import is_temporary

OTHERS = 0o077
_MARK = ".reverie-"  # how files begin that only a home of ours has
_OURS = (places.LAYOUT, places.LOCK, RECORD, "flags.json", "settings.json")


def open_to_others(home: Path, environ: Mapping[str, str]) -> list[Path]:
    """Files and folders of ours that others may read, write or enter."""
    return [
        path
        for path in _ours(home, environ)
        if (mode := _mode(path)) and not stat.S_ISLNK(mode) and stat.S_IMODE(mode) & OTHERS
    ]


def close_to_others(path: Path) -> bool:
    """Take others' rights away, and say whether that worked; a link is left as it is, and so
    is a file with a second name."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        found = os.fstat(handle)
        if _has_other_names(found):
            return False
        os.fchmod(handle, stat.S_IMODE(found.st_mode) & ~OTHERS)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def has_other_names(path: Path) -> bool:
    """Whether a file is also there under another name, perhaps outside home."""
    try:
        return _has_other_names(os.lstat(path))
    except OSError:
        return False


def _has_other_names(found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode) and found.st_nlink > 1


def temporary(home: Path) -> list[Path]:
    """Files that a write has not put in place."""
    return [path for path in _below(home) if is_temporary(path.name)]


def sweep(home: Path) -> int:
    """Remove those whose writer is gone; gives their number."""
    try:
        with Folder(home, create=False) as folder:
            return folder.sweep()
    except ReverieError:
        return 0


@dataclass(frozen=True, slots=True)
class HomeContents:
    """How much a home holds."""

    projects: int
    files: int
    bytes: int


def home_contents(home: Path, environ: Mapping[str, str]) -> HomeContents:
    """What would go with a home; InvalidInput where it is not ours alone."""
    if places.is_shared(home, environ):
        raise InvalidInput(
            "This home is Claude Code's too, and is not removed",
            where=str(home),
            do="Remove what is Reverie's by hand: the `reverie` folders in its projects",
        )
    if not any(name.startswith(_MARK) for name in os.listdir(home)):
        raise InvalidInput("This folder is not a home of Reverie's", where=str(home))
    found = [mode for path in _below(home) if stat.S_ISREG((mode := os.lstat(path)).st_mode)]
    count = len(_list_entries(home / "projects"))
    return HomeContents(count, len(found), sum(one.st_size for one in found))


def _ours(home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    if not home.is_dir():
        return
    if not places.is_shared(home, environ):
        yield home
        yield from _below(home)
        return
    yield from (home / name for name in (*_OURS, TRUSTED))
    yield from _below(home / TRUSTED)
    for project in _list_entries(home / "projects"):
        yield project / places.OWNER
        if (project / "reverie").is_dir():
            yield project / "reverie"
            yield from _below(project / "reverie")


def _below(folder: Path) -> Iterator[Path]:
    for above, folders, files in os.walk(folder):
        for name in (*folders, *files):
            yield Path(above, name)


def _list_entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _mode(path: Path) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0
