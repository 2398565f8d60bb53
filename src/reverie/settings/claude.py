"""Claude Code's own settings files, as far as they guard or instruct an agent: read, never written.

The user's file, and one that an administrator manages, count in full. What lies in a project may
have come with it, and is trusted only where the user approved that very file (`reverie trust`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from reverie.settings.sources import SettingsFile, settings_file
from reverie.settings.trust import distrust, was_declined

MANAGED = Path("/etc/claude-code/managed-settings.json")
FOLDER = ".claude"
EXCLUDES = "claudeMdExcludes"
MAX_EXCLUDES = 200


def claude_home(environ: Mapping[str, str]) -> Path:
    """Claude Code's own folder of this user."""
    user = environ.get("HOME", "") or os.path.expanduser("~")
    return Path(environ.get("CLAUDE_CONFIG_DIR", "") or Path(user) / FOLDER)


def project_files(top: Path) -> tuple[Path, Path]:
    """Where a project may bring settings for Claude Code, the stronger first."""
    return top / FOLDER / "settings.local.json", top / FOLDER / "settings.json"


def claude_settings(
    home: Path, top: Path, environ: Mapping[str, str], managed: Path = MANAGED
) -> tuple[SettingsFile, ...]:
    """The files that are there, strongest first; what is wrong inside them is Claude Code's own
    business."""
    users = claude_home(environ) / "settings.json"
    same = os.path.realpath(users)
    brought = [one for one in project_files(top) if os.path.realpath(one) != same]
    found = (
        settings_file("policy", managed, home),
        *(_brought(path, home) for path in brought),
        settings_file("user", users, home),
    )
    return tuple(one for one in found if one.data is not None)


def _brought(path: Path, home: Path) -> SettingsFile:
    file = settings_file("local", path, home)
    data = file.data or b""
    if was_declined(home, path, data):  # the user has seen it and said no
        return replace(file, data=None)
    trusted = not distrust(home, path, data)
    return replace(file, origin=replace(file.origin, trusted=trusted), problems=())


def excludes(files: tuple[SettingsFile, ...]) -> tuple[str, ...]:
    """Which instruction files are not to be read, as globs of absolute paths. They can only take
    away; that a project cannot take away the user's own is for the reader to see to."""
    found: list[str] = []
    for file in files:
        given = file.value.get(EXCLUDES)
        if isinstance(given, list):
            found += [one for one in given if isinstance(one, str)]  # pyright: ignore[reportUnknownVariableType]
    return tuple(dict.fromkeys(found))[:MAX_EXCLUDES]
