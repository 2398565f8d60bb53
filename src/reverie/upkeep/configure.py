"""Changing what one has set: a flag in `<home>/flags.json`, a setting in `<home>/settings.json`.

A file is put in place whole, and only where it is still what was read, so that two who change at
once both count. Whatever else it holds stays as it is; a file that is no JSON object is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from reverie.errors import NotFound, SettingsError
from reverie.settings import SETTINGS, FlagValue, camel, variable, with_flag
from reverie.settings.values import from_text, nearest, parse_object
from reverie.store.files import Changed, Folder
from reverie.store.plain import digest
from reverie.store.project import Project

FLAGS_FILE = "flags.json"
SETTINGS_FILE = "settings.json"
_TRIES = 20
_BY_SPELLING = {spelt: name for name in SETTINGS for spelt in (name, camel(name), variable(name))}


def setting_named(name: str) -> str:
    """The setting of a name, JSON key or environment variable."""
    field = _BY_SPELLING.get(name)
    if field is None:
        hint = nearest(name, _BY_SPELLING).removeprefix("; ")
        do = hint[:1].upper() + hint[1:] if hint else "`reverie config` lists them"
        raise SettingsError("There is no such setting", where=name[:100], do=do)
    return field


def change_flag(project: Project, name: str, value: FlagValue | None) -> None:
    """Put one flag into home's file, or take it out with None."""
    _change(project.home, FLAGS_FILE, lambda text: with_flag(text, name, value))


def change_setting(project: Project, name: str, text: str | None) -> None:
    """Put one setting into home's file, given as people write it, or take it out with None."""
    field = setting_named(name)
    value = None
    if text is not None:
        value, reason = from_text(SETTINGS[field], text, project.environ)
        if reason:
            do = f"It {reason}" if reason.startswith("must ") else reason
            raise SettingsError("The setting cannot take this value", where=camel(field), do=do)
    _change(project.home, SETTINGS_FILE, lambda before: _with_setting(before, field, value))


def _with_setting(text: str, field: str, value: object) -> str:
    read, problems = parse_object(text if text.strip() else "{}", SETTINGS_FILE)
    if problems:
        raise SettingsError(
            "The settings cannot be changed", where=str(problems[0]), do="Repair or remove the file"
        )
    read.pop(field, None)
    read.pop(camel(field), None)
    kept = read if value is None else {**read, camel(field): value}
    return json.dumps(kept, indent=2, ensure_ascii=False) + "\n"


def _change(home: Path, file: str, make: Callable[[str], str]) -> None:
    """Write what `make` makes of the file, whoever else writes there meanwhile."""
    with Folder(home) as folder:
        for _ in range(_TRIES):
            before = _read(folder, file)
            after = make(_text(before, home / file)).encode()
            try:
                expect = None if before is None else digest(before)
                folder.write(file, after, expect=expect, exclusive=before is None)
            except Changed:
                continue
            return
    raise SettingsError(
        "Nothing was set: other processes keep changing the file", where=file, do="Try again"
    )


def _read(folder: Folder, file: str) -> bytes | None:
    try:
        return folder.read(file)
    except NotFound:
        return None


def _text(data: bytes | None, path: Path) -> str:
    try:
        return (data or b"").decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SettingsError(
            "It cannot be changed: the file is not UTF-8",
            where=str(path),
            do="Repair or remove that file.",
        ) from None
