"""Which repository a folder is, `owner/name`, by its git remote; nothing of it is run.

The remote `origin` counts, else the only one there is. An address of any form that hosts use is
understood; one without an owner and a name is none.
"""

from __future__ import annotations

import re
from pathlib import Path

from reverie.errors import InvalidInput
from reverie.settings.git import git_folder, small_text
from reverie.team.values import check_repo

_SECTION = re.compile(r'\s*\[remote "([^"\\]{1,200})"\]\s*', re.ASCII)
_URL = re.compile(r"\s*url\s*=\s*(\S+)\s*", re.ASCII)
_TAIL = re.compile(r"[/:]([^/:\s]{1,200})/([^/:\s]{1,200}?)(?:\.git)?/?\Z", re.ASCII)


def repository_of(root: Path) -> str:
    """The repository's `owner/name`; "" where there is none to be known."""
    return name_in(remote_of(root))


def remote_of(root: Path) -> str:
    """The address of the remote that counts, or ""."""
    folder = git_folder(root)
    text = None if folder is None else small_text(_common(folder) / "config")
    remotes = _remotes(text or "")
    only = next(iter(remotes.values())) if len(remotes) == 1 else ""
    return remotes.get("origin", only)


def name_in(url: str) -> str:
    """`owner/name` at the end of a remote's address, or ""."""
    found = _TAIL.search(url[-500:])
    if found is None:
        return ""
    try:
        return check_repo(f"{found[1]}/{found[2]}")
    except InvalidInput:
        return ""


def _common(folder: Path) -> Path:
    """A worktree's own folder names the one that it shares with the others."""
    named = (small_text(folder / "commondir") or "").strip()
    return folder / named if named and "\0" not in named else folder


def _remotes(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if line.lstrip().startswith("["):
            section = _SECTION.fullmatch(line)
            name = section[1] if section else ""
        elif name and (url := _URL.fullmatch(line)):
            found.setdefault(name, url[1])
    return found
