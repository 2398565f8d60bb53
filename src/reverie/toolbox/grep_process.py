"""Searches files by pattern where there is no ripgrep; a program of its own.

    python -I -S finder.py JSON

The JSON has `pattern`, `mode` (content, files_with_matches, count), `ignore_case`,
`context`, `globs` (wanted), `left_out` (names and paths not searched) and `file` (search
the standard input). It prints what ripgrep would with --null --no-heading, sorted by
path; a pattern that runs away is ended with this process. It reads no ignore files,
follows no link, and opens nothing but regular files. Standard library alone.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

LARGEST = 50 * 1024 * 1024
LINE = 2_000
SKIPPED = frozenset(
    {".git", "node_modules", ".venv", "venv", "__pycache__", ".tox", ".mypy_cache", ".ruff_cache"}
)


def files(folder: str, left_out: list[str]) -> Iterator[str]:
    """Regular files below a folder, sorted, as relative paths."""
    try:
        with os.scandir(folder or ".") as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        path = os.path.join(folder, entry.name)
        if entry.name in SKIPPED or any(_is(path, entry.name, out) for out in left_out):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from files(path, left_out)
        elif entry.is_file(follow_symlinks=False):
            yield path


def _is(path: str, name: str, pattern: str) -> bool:
    if pattern.startswith("/"):
        return path == pattern[1:]
    return fnmatch.fnmatchcase(name.casefold(), pattern.casefold())


def is_selected(path: str, globs: list[str]) -> bool:
    """Whether a path fits: one of the patterns, and none of those that begin with `!`."""
    refused = [g[1:] for g in globs if g.startswith("!")]
    asked = [g for g in globs if not g.startswith("!")]
    if any(fits(path, glob) for glob in refused):
        return False
    return not asked or any(fits(path, glob) for glob in asked)


def fits(path: str, glob: str) -> bool:
    if "/" not in glob:
        return fnmatch.fnmatchcase(os.path.basename(path), glob)
    return fnmatch.fnmatchcase(path, glob.lstrip("/").replace("**/", "*"))


def hits(file: BinaryIO, pattern: re.Pattern[bytes]) -> tuple[list[bytes], list[int]]:
    """The lines of a file and the numbers of those that match; none for a binary one."""
    data = file.read(LARGEST + 1)
    if len(data) > LARGEST or b"\0" in data[:8_192]:
        return [], []
    lines = data.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    return lines, [n for n, line in enumerate(lines) if pattern.search(line)]


def report(path: str, file: BinaryIO, pattern: re.Pattern[bytes], ask: dict[str, Any]) -> None:
    lines, found = hits(file, pattern)
    if not found:
        return
    prefix = b"" if ask["file"] else os.fsencode(path) + b"\0"
    out = sys.stdout.buffer
    if ask["mode"] == "files_with_matches":
        out.write(os.fsencode(path) + b"\0")
    elif ask["mode"] == "count":
        out.write(prefix + b"%d\n" % len(found))
    else:
        last, chosen = -1, set(found)
        for number in _with_context(found, ask["context"], len(lines)):
            if ask["context"] and (number > last + 1 if last >= 0 else ask.get("said")):
                out.write(b"--\n")
            sign = b":" if number in chosen else b"-"
            out.write(prefix + b"%d%s%s\n" % (number + 1, sign, lines[number][:LINE]))
            last = number
        ask["said"] = True
    out.flush()


def _with_context(found: list[int], around: int, count: int) -> list[int]:
    near = {n for hit in found for n in range(hit - around, hit + around + 1)}
    return sorted(n for n in near if 0 <= n < count)


def open_regular(path: str) -> BinaryIO | None:
    """A regular file that may be searched."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode) or info.st_size > LARGEST:
        os.close(fd)
        return None
    return os.fdopen(fd, "rb")


def main() -> None:
    ask: dict[str, Any] = json.loads(sys.argv[1])
    try:
        flags = re.IGNORECASE if ask["ignore_case"] else 0
        pattern = re.compile(ask["pattern"].encode(), flags)
    except (re.error, RecursionError, OverflowError) as error:
        sys.stdout.write(f"the pattern is not valid: {error}\n")
        sys.exit(2)
    if ask["file"]:
        report("-", sys.stdin.buffer, pattern, ask)
        return
    for path in files("", ask["left_out"]):
        if is_selected(path, ask["globs"]):
            file = open_regular(path)
            if file is not None:
                with file:
                    report(path, file, pattern, ask)


if __name__ == "__main__":
    main()
