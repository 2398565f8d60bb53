"""The projects of a home, each by the name of its folder there.

A name is looked up among the folders that are there and is never made into a path. What counts is
what a command with `--project` would open: a folder of the home that says which root it belongs
to, a root that is still there, and no other folder for that root.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

from reverie.errors import ReverieError
from reverie.settings.values import read_object
from reverie.store import home as places
from reverie.upkeep.place import ProjectPlace

_MARKED = re.compile(r"(?:(.+)-)?[0-9a-f]{24}", re.ASCII)


def home_projects(place: ProjectPlace) -> dict[str, ProjectPlace]:
    """All projects of a home by their keys, those first whose names come first."""
    found = {key: _project(place, key) for key in _keys(place)}
    there = [(key, one) for key, one in found.items() if one is not None]
    there.sort(key=lambda pair: (project_name(pair[1]).casefold(), str(pair[1].root)))
    return dict(there)


def find_project(place: ProjectPlace, key: str) -> ProjectPlace | None:
    """The project of a key; None where the home has none of it."""
    return _project(place, key) if key in _keys(place) else None


def project_key(place: ProjectPlace) -> str:
    """What a project is called by among those of its home; nothing where it is not one of them."""
    folder = place.folder()
    return folder.name if folder.parent == place.home / "projects" else ""


def project_name(place: ProjectPlace) -> str:
    """What people call a project: its folder's name, or the name it has instead of a folder."""
    name = place.root.name
    marked = _MARKED.fullmatch(name) if places.is_address(place.home, place.root) else None
    if marked is not None:
        return marked[1] or "unnamed"
    return name or "/"


def _keys(place: ProjectPlace) -> list[str]:
    try:
        with os.scandir(place.home / "projects") as found:
            return [one.name for one in found if one.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _project(place: ProjectPlace, key: str) -> ProjectPlace | None:
    folder = place.home / "projects" / key
    root = read_object(folder / places.OWNER)[0].get("root")
    if not isinstance(root, str) or not os.path.isabs(root) or not os.path.isdir(root):
        return None
    try:
        found = replace(place, root=places.canonical_root(Path(root)))
        return found if found.folder() == folder else None
    except ReverieError:
        return None
