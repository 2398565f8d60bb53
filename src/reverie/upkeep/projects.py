"""The projects of a home, each by the name of its folder there.

A name is looked up among the folders that are there and is never made into a path. What counts is
what a command with `--project` would open: a folder of the home that says which root it belongs
to, a root that is still there, and no other folder for that root.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from reverie.errors import ReverieError
from reverie.settings.values import read_object
from reverie.store import home as places
from reverie.store.project import Project

_MARKED = re.compile(r"(?:(.+)-)?[0-9a-f]{24}", re.ASCII)


def home_projects(project: Project) -> dict[str, Path]:
    """Return the roots of a home's projects by their keys, in the order of their names."""
    found = {key: _root(project.home, key) for key in _keys(project.home)}
    there = [(key, root) for key, root in found.items() if root is not None]
    there.sort(key=lambda pair: (project_name(project.home, pair[1]).casefold(), str(pair[1])))
    return dict(there)


def find_project(project: Project, key: str) -> Project | None:
    """Return the project of a key in the same home; None where there is none."""
    root = _root(project.home, key) if key in _keys(project.home) else None
    return None if root is None else project.sibling(root)


def project_key(project: Project) -> str:
    """Return a project's key among those of its home; empty where it is not one of them."""
    folder = project.folder()
    return folder.name if folder.parent == project.home / "projects" else ""


def project_name(home: Path, root: Path) -> str:
    """Return what people call a project: its folder's name, or the name it has instead."""
    marked = _MARKED.fullmatch(root.name) if places.is_address(home, root) else None
    if marked is not None:
        return marked[1] or "unnamed"
    return root.name or "/"


def _keys(home: Path) -> list[str]:
    try:
        with os.scandir(home / "projects") as found:
            return [one.name for one in found if one.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _root(home: Path, key: str) -> Path | None:
    folder = home / "projects" / key
    owner = read_object(folder / places.OWNER)[0].get("root")
    if not isinstance(owner, str) or not os.path.isabs(owner) or not os.path.isdir(owner):
        return None
    try:
        root = places.canonical_root(Path(owner))
        return root if places.find_project_folder(home, root) == folder else None
    except ReverieError:
        return None
