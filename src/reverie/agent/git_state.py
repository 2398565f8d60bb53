"""Git's state as a session begins: branch, newest commits, changed files.

Read from git's own files, bounded, and without running git: in a repository one does not
trust, running it can run that repository's programs. What cannot be read with certainty is left
out. Commits are those of the log that this checkout keeps of itself; files that git does not
track are not looked for.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
from collections.abc import Iterator
from pathlib import Path

from reverie.settings.git import git_folder, small_text
from reverie.text.terminal import clean
from reverie.text.untrusted import defused

COMMITS = 5
CHANGED = 10
SUBJECT = 100
_LOG = 256 * 1024  # bytes of the log's end
_INDEX = 16 * 1024 * 1024
_ENTRIES = 20_000
_HASHED = 1024 * 1024  # bytes of one file that is compared by its hash
_FIXED = 62


def git_state(root: Path) -> tuple[str, ...]:
    """Lines for the head of a session; none where git's files say nothing."""
    folder = git_folder(root)
    if folder is None:
        return ()
    lines = (_branch(folder), _changes(folder, root), *_commits(folder))
    return tuple(line for line in lines if line)


def _branch(folder: Path) -> str:
    head = (small_text(folder / "HEAD", 4_096) or "").strip()
    if head.startswith("ref: refs/heads/"):
        return f"Git branch: {_shown(head.removeprefix('ref: refs/heads/'))}"
    return f"Git: at commit {head[:12]}, on no branch" if head.isalnum() else ""


def _commits(folder: Path) -> list[str]:
    """The newest commits made or taken over here, newest first."""
    text = _end(folder / "logs" / "HEAD", _LOG).decode("utf-8", "replace")
    found: list[str] = []
    for line in reversed(text.splitlines()):
        about, _, what = line.partition("\t")
        kind, _, subject = what.partition(": ")
        parts = about.split(" ")
        if kind.startswith("commit") and len(parts) > 1:
            found.append(f"- {_shown(parts[1][:8])} {_shown(subject)}")
        if len(found) == COMMITS:
            break
    return ["Newest commits of this checkout:", *found] if found else []


def _changes(folder: Path, root: Path) -> str:
    data = _end(folder / "index", _INDEX + 1)
    if not data or len(data) > _INDEX:
        return ""
    changed: list[str] = []
    try:
        for name, size, moment, blob in _entries(data):
            if _differs(root / name, size, moment, blob):
                changed.append(_shown(name))
            if len(changed) > CHANGED:
                break
    except (ValueError, struct.error, OSError):
        return ""
    if not changed:
        return "Git: no tracked file was changed"
    more = ", and more" if len(changed) > CHANGED else ""
    return f"Git: changed files: {', '.join(changed[:CHANGED])}{more}"


def _entries(data: bytes) -> Iterator[tuple[str, int, int, bytes]]:
    """Name, size, time of change and hash of plain files in an index of version 2 or 3."""
    magic, version, count = struct.unpack_from(">4sII", data)
    if magic != b"DIRC" or version not in (2, 3) or count > _ENTRIES:
        raise ValueError("an index of another kind")
    at = 12
    for _ in range(count):
        seconds, nanos, _, _, mode, _, _, size = struct.unpack_from(">8I", data, at + 8)
        blob = data[at + 40 : at + 60]
        (flags,) = struct.unpack_from(">H", data, at + 60)
        begin = at + _FIXED + (2 if flags & 0x4000 else 0)
        end = data.index(b"\0", begin)
        if stat.S_ISREG(mode) and not flags & 0x4000:  # no link, none that git leaves out
            yield os.fsdecode(data[begin:end]), size, seconds * 10**9 + nanos, blob
        at += (end - at + 8) // 8 * 8


def _differs(path: Path, size: int, moment: int, blob: bytes) -> bool:
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        return True
    if not stat.S_ISREG(info.st_mode):
        return True
    if info.st_size == size and info.st_mtime_ns == moment:
        return False
    if info.st_size != size or size > _HASHED:
        return info.st_size != size
    data = _end(path, _HASHED)
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).digest() != blob


def _end(path: Path, most: int) -> bytes:
    """The last bytes of a plain file; nothing where it is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    with os.fdopen(fd, "rb") as file:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            return b""
        file.seek(max(0, info.st_size - most))
        return file.read(most)


def _shown(text: str) -> str:
    """A name or subject of the repository's on one line."""
    return " ".join(defused(clean(text)).split())[:SUBJECT]
