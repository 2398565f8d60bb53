"""What a repository's own files say, read without running git.

Running git in a folder one does not trust can run that folder's programs, so only files
are read here, bounded in size, and nothing is written.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

_SMALL = 64 * 1024


def git_folder(root: Path) -> Path | None:
    """Where `root/.git` is or points to; None where it is broken."""
    entry = root / ".git"
    if entry.is_dir():
        return entry.resolve()
    text = small_text(entry)
    if text is None or not text.startswith("gitdir:"):
        return None
    named = text.removeprefix("gitdir:").strip("\n\r ")
    if not named or "\0" in named:
        return None
    target = Path(os.path.realpath(root / named))
    return target if target.is_dir() else None


def small_text(path: Path, limit: int = _SMALL) -> str | None:
    """The text of a small regular file; None where it is anything else."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return None
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except (OSError, ValueError):
        return None
    return None if len(data) > limit else os.fsdecode(data)


def index_names(data: bytes, hash_size: int) -> Iterator[bytes]:
    """The paths in an index file of version 2, 3 or 4; ValueError where it is no such file."""
    version = int.from_bytes(data[4:8], "big")
    if data[:4] != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("no index that is known")
    at, name = 12, b""
    for _ in range(int.from_bytes(data[8:12], "big")):
        start = at
        at += 40 + hash_size
        flags = int.from_bytes(data[at : at + 2], "big")
        at += 4 if flags & 0x4000 and version > 2 else 2
        kept = b""
        if version == 4:
            dropped, at = _varint(data, at)
            if dropped > len(name):
                raise ValueError("a name that drops more than there is")
            kept = name[: len(name) - dropped]
        end = data.index(b"\0", at)
        name = kept + data[at:end]
        if len(name) != flags & 0xFFF and flags & 0xFFF != 0xFFF:
            raise ValueError("a name of another length than stated")
        yield name
        at = end + 1 if version == 4 else end + 8 - (end - start) % 8
    _check_extensions(data[at:-hash_size])


def _check_extensions(data: bytes) -> None:
    """Only extensions that may be ignored: a split index keeps its paths elsewhere."""
    at = 0
    while at < len(data):
        name = data[at : at + 4]
        if len(name) < 4 or not (name[:1].isupper() or name == b"sdir"):
            raise ValueError("an extension that changes what the index means")
        at += 8 + int.from_bytes(data[at + 4 : at + 8], "big")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = data[at] & 127
    while data[at] & 128:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 127)
    return value, at + 1
