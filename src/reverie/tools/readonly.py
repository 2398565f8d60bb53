"""Command lines for the sandboxed shell: eight programs that read, plainly written.

This is good manners and says early what is not there; the walls are in `sandbox`. A line
is read strictly (`command`), each program must be one of the eight by its bare name, and
it is written out anew, every word quoted, before a shell sees it.
"""

from __future__ import annotations

import os
from pathlib import Path

from reverie.store.keys import beneath
from reverie.store.private import GIT, is_secret
from reverie.tools import command
from reverie.tools.confined import ConfinedFiles
from reverie.tools.finder import SKIPPED
from reverie.tools.sandbox import PROGRAMS, SandboxBox
from reverie.tools.tool import Denied, ToolFailed

LOOKED_AT = 100_000
LOOKED_AT_BELOW = 20_000
"""Names looked at in a folder of others' code; one with more is masked whole."""
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


def box_of(files: ConfinedFiles, most: int = LOOKED_AT) -> SandboxBox:
    """What the shell may see: what the typed tools may read, secrets masked."""
    folders = [p for p in files.refused if any(beneath(r, p) for r in files.readable)]
    found = _Masked(folders)
    for root in files.readable:
        most = found.look(str(root), most)
    cwd = files.cwd if files.allows(files.cwd) else files.readable[0]
    readable = tuple(p for p in files.readable if p.exists())
    inside = [p for p in found.files if not any(beneath(f, p) for f in folders)]
    return SandboxBox(readable, tuple(sorted(set(folders))), tuple(sorted(set(inside))), cwd)


class _Masked:
    """What has to be masked, found by a walk."""

    def __init__(self, folders: list[Path]) -> None:
        self.folders = folders
        self.files: list[Path] = []

    def look(self, folder: str, left: int) -> int:
        """Look through a folder; gives how many names may still be looked at."""
        try:
            with os.scandir(folder) as found:
                entries = list(found)
        except OSError:
            return left
        left -= len(entries)
        if left < 0:
            raise ToolFailed("the project has too many files for a shell to be safe", do="Use Grep")
        for entry in entries:
            if not entry.is_symlink():  # leads to what is there under its own name, or to nothing
                left = self._entry(entry, left)
        return left

    def _entry(self, entry: os.DirEntry[str], left: int) -> int:
        path = Path(entry.path)
        if not entry.is_dir(follow_symlinks=False):
            # a socket would lead to another program
            if not entry.is_file(follow_symlinks=False) or is_secret(path) or entry.name == GIT:
                self.files.append(path)
        elif entry.name == GIT or is_secret(path):
            self.folders.append(path)
        elif entry.name in SKIPPED:
            self._others(path)
        else:
            return self.look(entry.path, left)
        return left

    def _others(self, folder: Path) -> None:
        """A folder of others' code: looked through as far as that is quick, else masked whole."""
        inner = _Masked([])
        try:
            inner.look(str(folder), LOOKED_AT_BELOW)
        except ToolFailed:
            self.folders.append(folder)
        else:
            self.files += inner.files
            self.folders += inner.folders
