"""`reverie team scan PATH`: which files hold a secret, by line and rule.

It exits with 1 where there is one, or where a file could not be searched. It changes nothing,
follows no link, never hangs on a pipe, and never prints the secret: a file whose very name
holds one is shown by its number.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from reverie.apps.cli.show import JsonOption, document, note, plural, say
from reverie.errors import NotFound, ReverieError, ScanFailed
from reverie.memory.secrets import SecretHit
from reverie.memory.secrets import scan as search

LARGEST = 16 << 20
"""Bytes that a file may have; a larger one is not searched, and says so."""

TargetArgument = Annotated[Path, typer.Argument(help="A file, or a folder with all below it.")]
ScanRow = dict[str, str | int]


def scan(path: TargetArgument, as_json: JsonOption = False) -> None:
    """List the secrets in a file or folder: file, line and rule. Exits 1 if there is one."""
    if not os.path.lexists(path):
        raise NotFound("There is nothing to scan", where=str(path))
    files = sorted(_files(path))
    rows = [row for number, file in enumerate(files, 1) for row in _rows(path, file, number)]
    if as_json:
        document(rows)
    else:
        for row in rows:
            say(f"{row['file']}:{row['line']}: {row['rule']}")
        note(f"{plural(len(files), 'file')} searched, {plural(len(rows), 'secret')} found")
    if rows:
        raise typer.Exit(1)


def _files(path: Path) -> Iterator[Path]:
    """The regular files at or below the path; links are not followed."""
    if path.is_symlink() or not path.is_dir():
        yield path
        return
    for folder, _, names in os.walk(path):
        yield from (Path(folder, name) for name in names)


def _rows(root: Path, file: Path, number: int) -> Iterator[ScanRow]:
    name = file.name if file == root else file.relative_to(root).as_posix()
    try:
        data = _read(file)
        hits = () if data is None else search(data, name)
    except (OSError, ReverieError):
        hits = (SecretHit("scan-failed", 0),)
        name = name if _is_clean(name) else f"[name withheld, file {number}]"
    if any(not hit.line and hit.rule != "scan-failed" for hit in hits):
        name = f"[name withheld, file {number}]"
    yield from ({"file": name, "line": hit.line, "rule": hit.rule} for hit in hits)


def _is_clean(name: str) -> bool:
    try:
        return not search("", name)
    except ScanFailed:
        return False


def _read(file: Path) -> bytes | None:
    """The file's bytes; none where it is a link, a pipe or the like."""
    if not stat.S_ISREG(file.lstat().st_mode):
        return None
    fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(fd, "rb") as stream:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        data = stream.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise ScanFailed("The file is too large to be searched")
    return data
