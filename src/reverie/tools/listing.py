"""Glob and List: names of files, found without following a link.

A folder is walked by descriptor from one that was opened without following a link, so
nothing outside it is ever looked at. What is given is bounded, and it is said when more
was there. Only names and sizes are read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from anyio import to_thread

from reverie.store.keys import shown
from reverie.store.plain import FOLDER
from reverie.tools import globs
from reverie.tools.finder import SKIPPED
from reverie.tools.places import from_here
from reverie.tools.tool import Files, Input, Output, Tool, ToolContext, ToolFailed

GIVEN = 1_000
LOOKED_AT = 200_000
DEPTH = 64


@dataclass
class ListingWalk:
    """A walk below one folder; counts what it looks at."""

    base: Path
    files: Files
    skipped: frozenset[str]
    left: int = LOOKED_AT
    unread: list[str] = field(default_factory=list)

    def below(self, fd: int, names: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
        """The names of every file, one tuple each, sorted within a folder."""
        for name, mode in entries(fd):
            if self.left <= 0:
                return
            self.left -= 1
            here = (*names, name)
            if name in self.skipped or self.files.hidden(self.base.joinpath(*here)):
                continue
            if not stat.S_ISDIR(mode):
                yield here
            elif len(here) < DEPTH:
                yield from self._inside(fd, name, here)

    def _inside(self, fd: int, name: str, here: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        try:
            inner = os.open(name, FOLDER, dir_fd=fd)
        except OSError:
            self.unread.append("/".join(here))
            return
        try:
            yield from self.below(inner, here)
        finally:
            os.close(inner)


def entries(fd: int) -> list[tuple[str, int]]:
    """A folder's names and modes, sorted; what vanishes meanwhile is left out."""
    found: list[tuple[str, int]] = []
    for name in sorted(os.listdir(fd)):
        try:
            found.append((name, os.lstat(name, dir_fd=fd).st_mode))
        except OSError:
            continue
    return found


def _opened(path: Path, context: ToolContext) -> int:
    fd = context.files.open(path)
    if not stat.S_ISDIR(os.fstat(fd).st_mode):
        os.close(fd)
        raise ToolFailed("it is a file, not a folder", where=shown(str(path)))
    return fd


async def glob(value: Input, context: ToolContext) -> Output:
    pattern = str(value["pattern"])
    path = context.files.find(str(value.get("path") or "."))
    if pattern.startswith(("/", "~")) or ".." in pattern.split("/") or "\0" in pattern:
        raise ToolFailed("the pattern must be relative and stay below path")
    return await to_thread.run_sync(_glob, pattern, path, context, abandon_on_cancel=True)


def _glob(pattern: str, path: Path, context: ToolContext) -> Output:
    test = globs.matcher(pattern if "/" in pattern else f"**/{pattern}")
    skipped = SKIPPED - frozenset(pattern.split("/"))
    fd = _opened(path, context)
    try:
        walk = ListingWalk(path, context.files, skipped)
        found = [names for names in walk.below(fd) if test(names)]
    finally:
        os.close(fd)
    named = from_here(path, context.cwd)
    rows = [shown(str(named.joinpath(*names))) for names in sorted(found)[:GIVEN]]
    notes: list[str] = []
    if len(found) > GIVEN:
        notes.append(f"[{len(found) - GIVEN:,} more; narrow the pattern]")
    if walk.left <= 0:
        notes.append(f"[only the first {LOOKED_AT:,} names were looked at; give a path]")
    return Output("\n".join(rows + notes) or "No files match")


async def list_folder(value: Input, context: ToolContext) -> Output:
    path = context.files.find(str(value.get("path") or "."))
    return await to_thread.run_sync(_list, path, context, abandon_on_cancel=True)


def _list(path: Path, context: ToolContext) -> Output:
    fd = _opened(path, context)
    try:
        found = [e for e in entries(fd) if not context.files.hidden(path / e[0])]
        rows = [_row(fd, name, mode) for name, mode in found[:GIVEN]]
    finally:
        os.close(fd)
    if len(found) > GIVEN:
        rows.append(f"[{len(found) - GIVEN:,} more]")
    return Output("\n".join(rows) or "(the folder is empty)")


def _row(fd: int, name: str, mode: int) -> str:
    plain = shown(name)
    if stat.S_ISDIR(mode):
        return f"{plain}/"
    if stat.S_ISLNK(mode):
        return f"{plain} (link)"
    if not stat.S_ISREG(mode):
        return f"{plain} (special)"
    try:
        return f"{plain} ({os.lstat(name, dir_fd=fd).st_size:,} bytes)"
    except OSError:
        return plain


_PATH = {"type": "string", "description": "The folder; the project if left out"}

GLOB = Tool(
    "Glob",
    "Finds files whose path fits a pattern such as src/**/*.py or *.{md,txt}.",
    {
        "type": "object",
        "properties": {"pattern": {"type": "string", "description": "The pattern"}, "path": _PATH},
        "required": ["pattern"],
        "additionalProperties": False,
    },
    glob,
    read_only=True,
    path="path",
)
LIST = Tool(
    "List",
    "Lists what is in a folder, with sizes.",
    {
        "type": "object",
        "properties": {"path": _PATH},
        "required": [],
        "additionalProperties": False,
    },
    list_folder,
    read_only=True,
    path="path",
)
