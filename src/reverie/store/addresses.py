"""Where memory lies that belongs to no root: a project that is a name, a user, an agent.

A name never becomes a path: its folder is called by what can be read of it and a digest of the
whole, so any text will do, `../..` and NUL among them, and no two share a folder. An address's
folder is its own root (`home.claim_address`): everything that is made from a root, be it memory,
history, index or lock, is made from it in the same way. Nothing here writes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from reverie.store.home import OWNER

_SLUG, _MARK = 40, 24


def named_project(home: Path, name: str) -> Path:
    """Where a project lies that is a name and no folder; nothing is made."""
    return home / "projects" / _digested(name)


def personal_project(home: Path) -> Path:
    """Where the memory of the person lies whose home it is; no root and no name gives this."""
    return home / "projects" / "personal"


def address_folder(transcripts: Path, user: str = "", agent: str = "") -> Path:
    """Where one user's, one agent's part of a project lies; nothing is made. `transcripts` is
    what `transcripts_folder` answers for the project."""
    folder = transcripts
    for above, name in (("users", user), ("agents", agent)):
        folder = folder / above / _digested(name) if name else folder
    return folder


def address_folders(transcripts: Path) -> Iterator[Path]:
    """The folders of all users and agents of a project."""
    for user in _beneath(transcripts / "users"):
        yield user
        yield from _beneath(user / "agents")
    yield from _beneath(transcripts / "agents")


def _digested(name: str) -> str:
    """Any text as the name of a folder: what can be read of it, and what tells it apart."""
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_MARK]
    read = re.sub(r"[^a-z0-9]+", "-", name[:_SLUG].lower(), flags=re.ASCII).strip("-")
    return f"{read}-{mark}" if read else mark


def _beneath(folder: Path) -> list[Path]:
    """The addresses right below a folder."""
    return sorted(owner.parent for owner in folder.glob(f"*/{OWNER}"))
