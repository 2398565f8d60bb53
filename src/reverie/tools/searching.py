"""Grep: lines that match a pattern, by ripgrep where it is there, else by our finder.

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
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from anyio import to_thread

from reverie.light import dataclass
from reverie.store.private import is_git_setting, is_secret
from reverie.tools import finder, globs
from reverie.tools.places import from_here
from reverie.tools.process import Command, Gathered, readable, run
from reverie.tools.programs import find_program
from reverie.tools.tool import Input, Output, Tool, ToolContext, ToolFailed

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


async def grep(value: Input, context: ToolContext) -> Output:
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


async def _search(ask: SearchInput, path: Path, fd: int, context: ToolContext) -> Output:
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
    sink = Gathered(MAX)
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
        f"--max-filesize={finder.LARGEST}",
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
    script = os.path.abspath(finder.__file__)
    return [sys.executable, "-I", "-S", script, json.dumps(asked)]


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
                yield _shown(b"" if unseen is None else name, path)
        return
    for line in data.split(b"\n"):
        name, _, rest = (b"", b"", line) if unseen is None else line.partition(b"\0")
        if line == b"--":
            yield "--"
        elif unseen is not None and unseen(name):
            continue
        elif mode == "count" and rest.isdigit():
            yield f"{_shown(name, path)}:{rest.decode()}"
        elif mode == "content" and (hit := _HIT.fullmatch(rest)):
            sign = hit[2].decode()
            start = f"{_shown(name, path)}{sign}{hit[1].decode()}{sign}"
            yield start + readable(hit[3].rstrip(b"\r"))


def _shown(name: bytes, path: Path) -> str:
    return readable(os.fsencode(path / os.fsdecode(name.removeprefix(b"./"))))


def _output(rows: list[str], ask: SearchInput, cut: bool) -> Output:
    if not rows:
        return Output("No matches")
    kept = rows[: ask.head]
    left = len(rows) - len(kept)
    notes: list[str] = []
    if left or cut:
        more = "many" if cut else f"{left:,}"
        notes.append(f"[{more} more lines; narrow the search or raise head_limit]")
    return Output("\n".join(kept + notes))


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
