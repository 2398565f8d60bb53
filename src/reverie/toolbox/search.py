"""Grep, Glob, List.

Grep: lines that match a pattern, by ripgrep where it is there, else by our finder.

The program is called by an argument list: the pattern behind -e, the place behind --, no
configuration read, no preprocessor. It starts in a folder that was opened without
following a link, or reads one file from its standard input. Output is bounded in size and
time, so a pattern that runs away ends; nothing is ever written.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from anyio import to_thread

from reverie import programs
from reverie.store.fs import FOLDER
from reverie.store.paths import format_path
from reverie.store.sensitive_paths import is_git_setting, is_secret
from reverie.toolbox import grep_process
from reverie.toolbox import path_patterns as globs
from reverie.toolbox.file_access import from_here
from reverie.toolbox.grep_process import SKIPPED
from reverie.toolbox.process import Command, OutputBuffer, readable, run
from reverie.toolbox.shell import find_program
from reverie.toolbox.tool import Files, Input, Tool, ToolContext, ToolFailed, ToolOutput

SHOWN = 250
MAX = 1024 * 1024
CONTEXT = 20
_HIT = re.compile(rb"(\d+)([:-])(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SearchInput:
    """A search, as the model asked for it."""

    pattern: str
    mode: str
    glob: str
    ignore_case: bool
    context: int
    head: int

    @classmethod
    def of(cls, value: Input) -> SearchInput:
        return cls(
            str(value["pattern"]),
            str(value.get("output_mode") or "files_with_matches"),
            str(value.get("glob") or ""),
            bool(value.get("ignore_case")),
            min(int(value.get("context") or 0), CONTEXT),
            int(value.get("head_limit") or SHOWN),
        )


async def grep(value: Input, context: ToolContext) -> ToolOutput:
    ask = SearchInput.of(value)
    if "\0" in ask.pattern + ask.glob:
        raise ToolFailed("the pattern has a NUL character")
    globs.expand(ask.glob)
    path = context.files.find(str(value.get("path") or "."))
    fd = await to_thread.run_sync(context.files.open, path)
    try:
        return await _search(ask, path, fd, context)
    finally:
        os.close(fd)


async def _search(ask: SearchInput, path: Path, fd: int, context: ToolContext) -> ToolOutput:
    is_file = not stat.S_ISDIR(os.fstat(fd).st_mode)
    left_out = () if is_file else context.files.hidden_below(path)
    program = find_program("rg", context.environ.get("PATH"), (context.root, context.cwd))
    argv = (
        ripgrep_argv(program, ask, left_out, is_file)
        if program
        else finder_argv(ask, left_out, is_file)
    )
    command = Command(
        argv,
        Path("/") if is_file else fd,
        {"LC_ALL": "C.UTF-8"},
        stdin=fd if is_file else b"",
        forks=False,
    )
    sink = OutputBuffer(MAX)
    seconds = context.settings.tool_seconds
    ended = await run(command, sink, seconds)
    if ended.cause == "time":
        raise ToolFailed(f"the search was ended after {ended.waited}", do="Narrow it")
    unseen = None if is_file else _unseen(path, context)
    rows = list(_rows(bytes(sink.data), ask.mode, from_here(path, context.cwd), unseen))
    if ended.cause == "itself" and ended.code > 1 and not rows:
        raise ToolFailed(f"the search failed: {sink.text.strip()[:2_000]}")
    return _output(rows, ask, cut=ended.cause == "output")


def ripgrep_argv(
    program: str, ask: SearchInput, left_out: tuple[str, ...], is_file: bool
) -> list[str]:
    kind = {"files_with_matches": "-l", "count": "-c", "content": "-n"}
    argv = [
        program,
        "--no-config",
        "--no-messages",
        "--color=never",
        "--no-heading",
        "--hidden",
        "--sort=path",
        "--max-columns=2000",
        "--max-columns-preview",
        f"--max-filesize={grep_process.LARGEST}",
        "--null",
        kind[ask.mode],
        *(["-i"] if ask.ignore_case else []),
        *([f"-C{ask.context}"] if ask.context and ask.mode == "content" else []),
        *([f"--glob={ask.glob}"] if ask.glob and not is_file else []),
        "--glob=!.git",
        *(f"--iglob=!{out}" for out in left_out),
    ]
    return [*argv, "-e", ask.pattern, "--", "-" if is_file else "."]


def finder_argv(ask: SearchInput, left_out: tuple[str, ...], is_file: bool) -> list[str]:
    asked = {
        "pattern": ask.pattern,
        "mode": ask.mode,
        "ignore_case": ask.ignore_case,
        "context": ask.context,
        "globs": globs.expand(ask.glob) if ask.glob else [],
        "left_out": list(left_out),
        "file": is_file,
    }
    return programs.script(grep_process.__file__, json.dumps(asked))


def _unseen(path: Path, context: ToolContext) -> Callable[[bytes], bool]:
    """Whether a file found below `path` is not to be shown, whatever the program thought."""
    asked = is_secret(path)  # permission was given for just this folder

    def unseen(name: bytes) -> bool:
        real = path / os.fsdecode(name.removeprefix(b"./"))
        hidden = is_git_setting(real) or (is_secret(real) and not asked)
        return hidden or context.files.hidden(real)

    return unseen


def _rows(
    data: bytes, mode: str, path: Path, unseen: Callable[[bytes], bool] | None
) -> Iterator[str]:
    """Output lines, whatever program gave them: path, number, text; no `unseen` = one file."""
    if mode == "files_with_matches":
        for name in data.split(b"\0")[:-1]:
            if unseen is None or not unseen(name):
                yield _format_match_path(b"" if unseen is None else name, path)
        return
    for line in data.split(b"\n"):
        name, _, rest = (b"", b"", line) if unseen is None else line.partition(b"\0")
        if line == b"--":
            yield "--"
        elif unseen is not None and unseen(name):
            continue
        elif mode == "count" and rest.isdigit():
            yield f"{_format_match_path(name, path)}:{rest.decode()}"
        elif mode == "content" and (hit := _HIT.fullmatch(rest)):
            sign = hit[2].decode()
            start = f"{_format_match_path(name, path)}{sign}{hit[1].decode()}{sign}"
            yield start + readable(hit[3].rstrip(b"\r"))


def _format_match_path(name: bytes, path: Path) -> str:
    return readable(os.fsencode(path / os.fsdecode(name.removeprefix(b"./"))))


def _output(rows: list[str], ask: SearchInput, cut: bool) -> ToolOutput:
    if not rows:
        return ToolOutput("No matches")
    kept = rows[: ask.head]
    left = len(rows) - len(kept)
    notes: list[str] = []
    if left or cut:
        more = "many" if cut else f"{left:,}"
        notes.append(f"[{more} more lines; narrow the search or raise head_limit]")
    return ToolOutput("\n".join(kept + notes))


GREP = Tool(
    "Grep",
    "Searches file contents by regular expression below a folder, or in one file. Gives the "
    "paths of files that match, or with output_mode the lines or counts. Ignored files, .git "
    "and files over 50 MB are left out.",
    {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "A regular expression"},
            "path": {"type": "string", "description": "Folder or file; the project if left out"},
            "glob": {"type": "string", "description": "Only files whose name fits, e.g. *.py"},
            "output_mode": {
                "type": "string",
                "enum": ["files_with_matches", "content", "count"],
                "description": "What to give; files_with_matches if left out",
            },
            "ignore_case": {"type": "boolean", "description": "Upper and lower case alike"},
            "context": {
                "type": "integer",
                "minimum": 0,
                "description": "Lines to show around each match, with output_mode content",
            },
            "head_limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": 10_000,
                "description": f"How many lines to give at most; {SHOWN} if left out",
            },
        },
        "required": ["pattern"],
        "additionalProperties": False,
    },
    grep,
    read_only=True,
    path="path",
    times_itself=True,
)


# --- Glob and List: names of files, found without following a link.
#
# A folder is walked by descriptor from one that was opened without following a link, so nothing
# outside it is ever looked at. What is given is bounded, and it is said when more was there. Only
# names and sizes are read.


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


def _open_folder(path: Path, context: ToolContext) -> int:
    fd = context.files.open(path)
    if not stat.S_ISDIR(os.fstat(fd).st_mode):
        os.close(fd)
        raise ToolFailed("it is a file, not a folder", where=format_path(str(path)))
    return fd


async def glob(value: Input, context: ToolContext) -> ToolOutput:
    pattern = str(value["pattern"])
    path = context.files.find(str(value.get("path") or "."))
    if pattern.startswith(("/", "~")) or ".." in pattern.split("/") or "\0" in pattern:
        raise ToolFailed("the pattern must be relative and stay below path")
    return await to_thread.run_sync(_glob, pattern, path, context, abandon_on_cancel=True)


def _glob(pattern: str, path: Path, context: ToolContext) -> ToolOutput:
    test = globs.matcher(pattern if "/" in pattern else f"**/{pattern}")
    skipped = SKIPPED - frozenset(pattern.split("/"))
    fd = _open_folder(path, context)
    try:
        walk = ListingWalk(path, context.files, skipped)
        found = [names for names in walk.below(fd) if test(names)]
    finally:
        os.close(fd)
    named = from_here(path, context.cwd)
    rows = [format_path(str(named.joinpath(*names))) for names in sorted(found)[:GIVEN]]
    notes: list[str] = []
    if len(found) > GIVEN:
        notes.append(f"[{len(found) - GIVEN:,} more; narrow the pattern]")
    if walk.left <= 0:
        notes.append(f"[only the first {LOOKED_AT:,} names were looked at; give a path]")
    return ToolOutput("\n".join(rows + notes) or "No files match")


async def list_folder(value: Input, context: ToolContext) -> ToolOutput:
    path = context.files.find(str(value.get("path") or "."))
    return await to_thread.run_sync(_list, path, context, abandon_on_cancel=True)


def _list(path: Path, context: ToolContext) -> ToolOutput:
    fd = _open_folder(path, context)
    try:
        found = [e for e in entries(fd) if not context.files.hidden(path / e[0])]
        rows = [_row(fd, name, mode) for name, mode in found[:GIVEN]]
    finally:
        os.close(fd)
    if len(found) > GIVEN:
        rows.append(f"[{len(found) - GIVEN:,} more]")
    return ToolOutput("\n".join(rows) or "(the folder is empty)")


def _row(fd: int, name: str, mode: int) -> str:
    plain = format_path(name)
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
