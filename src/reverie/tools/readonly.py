"""Command lines for the sandboxed shell: eight programs that read, plainly written.

This is good manners and says early what is not there; the walls are in `sandbox`. A line
is read strictly (`command`), each program must be one of the eight by its bare name, and
it is written out anew, every word quoted, before a shell sees it.
"""

from __future__ import annotations

import os
from pathlib import Path

from reverie.store.keys import beneath
from reverie.tools import command
from reverie.tools.confined import ConfinedFiles, is_secret
from reverie.tools.finder import SKIPPED
from reverie.tools.sandbox import PROGRAMS, Box
from reverie.tools.tool import Denied, ToolFailed

LOOKED_AT = 100_000
_ACTS = frozenset(
    {"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"}
)


def script_of(line: str) -> str:
    """A line that reads and does nothing else, written out for a shell; or Denied."""
    try:
        commands = command.parse(line)
    except command.Unclear as error:
        raise Denied(f"the command is not plain: {error}") from error
    return " ".join(f"{_checked(one)} {one.then}".strip() for one in commands)


def _checked(one: command.Simple) -> str:
    if one.words[0].globs or one.name not in PROGRAMS:
        names = ", ".join(PROGRAMS)
        raise Denied(f"{one.name[:80]} is not one of the programs there are: {names}")
    for word in one.words[1:]:
        if one.name == "find" and word.text in _ACTS:
            raise Denied(f"find {word.text} does more than read")
        if word.globs and word.text.startswith("-"):
            raise Denied("an option is not written plainly")
    return str(one)


def box_of(files: ConfinedFiles, most: int = LOOKED_AT) -> Box:
    """What the shell may see: what the typed tools may read, secrets masked."""
    folders = [p for p in files.refused if any(beneath(r, p) for r in files.readable)]
    masked: list[Path] = []
    left = most
    for root in files.readable:
        left = _secrets(str(root), masked, folders, left)
    cwd = files.cwd if files.allows(files.cwd) else files.readable[0]
    readable = tuple(p for p in files.readable if p.exists())
    inside = [p for p in masked if not any(beneath(f, p) for f in folders)]
    return Box(readable, tuple(sorted(set(folders))), tuple(sorted(set(inside))), cwd)


def _secrets(folder: str, files: list[Path], folders: list[Path], left: int) -> int:
    """Find what has to be masked; raises where there is too much to look through."""
    try:
        with os.scandir(folder) as found:
            entries = list(found)
    except OSError:
        return left
    left -= len(entries)
    if left < 0:
        raise ToolFailed("the project has too many files for a shell to be safe", do="Use Grep")
    for entry in entries:
        path = Path(entry.path)
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.is_symlink():
            continue  # leads to what is there under its own name, or to nothing
        if not is_folder and not entry.is_file(follow_symlinks=False):
            files.append(path)  # a socket would lead to another program
        elif is_secret(path):
            (folders if is_folder else files).append(path)
        elif is_folder and entry.name == ".git":
            files += [p for p in (path / "config",) if p.is_file()]
        elif is_folder and entry.name not in SKIPPED:
            left = _secrets(entry.path, files, folders, left)
    return left
