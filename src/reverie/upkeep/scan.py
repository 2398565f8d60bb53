"""Which files hold a secret, by line and rule.

It changes nothing, follows no link, never hangs on a pipe, and never gives the secret back: a
file whose very name holds one is told by its number.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reverie.errors import NotFound, ReverieError, ScanFailed
from reverie.memory.secrets import SecretHit, scan
from reverie.store.plain import read_plain

LARGEST = 16 << 20
"""Bytes that a file may have; a larger one is not searched, and says so."""


@dataclass(frozen=True, slots=True)
class SecretPlace:
    """Where a secret is; line 0 is the file's name, or the whole file if it could not be read."""

    file: str
    line: int
    rule: str


def scan_files(path: Path) -> tuple[int, list[SecretPlace]]:
    """The number of files at or below the path, and the secrets in them."""
    if not os.path.lexists(path):
        raise NotFound("There is nothing to scan", where=str(path))
    files = sorted(_files(path))
    return len(files), [one for n, file in enumerate(files, 1) for one in _secrets(path, file, n)]


def _files(path: Path) -> Iterator[Path]:
    """The files at or below the path; links are not followed."""
    if path.is_symlink() or not path.is_dir():
        yield path
        return
    for folder, _, names in os.walk(path):
        yield from (Path(folder, name) for name in names)


def _secrets(root: Path, file: Path, number: int) -> Iterator[SecretPlace]:
    name = file.name if file == root else file.relative_to(root).as_posix()
    try:
        data = _read(file)
        hits = () if data is None else scan(data, name)
    except (OSError, ReverieError):
        hits = (SecretHit("scan-failed", 0),)
        name = name if _is_clean(name) else f"[name withheld, file {number}]"
    if any(not hit.line and hit.rule != "scan-failed" for hit in hits):
        name = f"[name withheld, file {number}]"
    yield from (SecretPlace(name, hit.line, hit.rule) for hit in hits)


def _is_clean(name: str) -> bool:
    try:
        return not scan("", name)
    except ScanFailed:
        return False


def _read(file: Path) -> bytes | None:
    """The file's bytes; none where it is a link, a pipe or the like."""
    if not stat.S_ISREG(file.lstat().st_mode):
        return None
    data = read_plain(file, LARGEST)
    if data is not None and len(data) > LARGEST:
        raise ScanFailed("The file is too large to be searched")
    return data
