"""Files outside a project that the user let it read: asked once, kept in home.

An approval is for one project and one real path, and says which file asked. What may hold keys,
and what lies in an agent's own folder, is never approved, and an old approval of it counts for
nothing. A record that cannot be read approves nothing and is never written over.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from reverie.errors import NotFound, PathRefused, ReverieError, SettingsError, StoreError
from reverie.light import dataclass
from reverie.settings.catalog import SETTINGS
from reverie.settings.schema import camel, from_text, nearest, parse_object
from reverie.settings.sources import distrust, variable
from reverie.settings.switches import FlagValue, with_flag
from reverie.store import lists
from reverie.store.files import Folder
from reverie.store.fs import digest
from reverie.store.lists import rewrite
from reverie.store.lock import PATIENCE, FileLock
from reverie.store.project import Project
from reverie.store.sensitive_paths import is_private

RECORD = ".reverie-includes.json"
LOCK = ".reverie-includes.lock"
_LARGEST = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Approval:
    """One file that one project may read, and the file that asked for it."""

    root: str
    path: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class IncludeApprovals:
    """The record in one home."""

    home: Path

    def approve(self, root: Path, path: Path | str, by: str = "") -> Approval:
        """Keep the user's word that a project may read a file; PathRefused where it may never."""
        one = Approval(os.path.realpath(root), os.path.realpath(path), by)
        if self.is_barred(Path(one.path)):
            raise PathRefused(
                "This is never read for a project: it may hold keys, or is an agent's own",
                where=one.path,
            )
        with Folder(self.home) as home, FileLock(self.home / LOCK).hold(PATIENCE):
            kept = self._read(home)
            if not any((each.root, each.path) == (one.root, one.path) for each in kept):
                self._write(home, (*kept, one))
        return one

    def approved(self, root: Path, path: Path | str) -> bool:
        """Whether a project may read the file that is really at `path`."""
        wanted = (os.path.realpath(root), os.path.realpath(path))
        if self.is_barred(Path(wanted[1])):
            return False
        return any((one.root, one.path) == wanted for one in self.all())

    def all(self) -> tuple[Approval, ...]:
        """Every approval; none where the record is not there or cannot be read."""
        try:
            with Folder(self.home, create=False) as home:
                return self._read(home)
        except ReverieError:
            return ()

    def is_barred(self, real: Path) -> bool:
        """Whether no approval helps: keys, and the folders of agents, ours first."""
        return is_private(real, (Path(os.path.realpath(self.home)),))

    def _read(self, home: Folder) -> tuple[Approval, ...]:
        try:
            value = json.loads(home.read(RECORD, _LARGEST))
            rows = cast("list[Any]", cast("Mapping[str, Any]", value)["approved"])
            return tuple(Approval(str(r["root"]), str(r["path"]), str(r["by"])) for r in rows)
        except NotFound:
            return ()
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(
                "The record of approved files cannot be read",
                where=str(home.root / RECORD),
                do="Mend or remove it",
            ) from error

    def _write(self, home: Folder, approvals: tuple[Approval, ...]) -> None:
        rows = [{"root": one.root, "path": one.path, "by": one.by} for one in approvals]
        text = json.dumps({"approved": rows}, indent=2, ensure_ascii=True) + "\n"
        home.write(RECORD, text.encode())


# --- A project's own settings that are not committed, changed at the user's word.
#
# The file is `.reverie/settings.local.json` below the project's root. It is trusted from then on,
# as it was before; one that the user has not approved is never added to: that would approve all of
# it.


FOLDER = ".reverie"
LOCAL = "settings.local.json"


def change(project: Project, edit: Callable[[str], str], refusal: str) -> Path:
    """Put the text that `edit` makes of the file's in its place; an empty one removes the file.
    StoreError says `refusal` where the file is not one that the user approved."""
    home, path = project.home, project.root / FOLDER / LOCAL
    with Folder(project.root, create=False) as above, above.sub(FOLDER) as folder:
        try:
            data = folder.read(LOCAL)
        except NotFound:
            data = None
        if data is not None and (why := distrust(home, path, data)):
            raise StoreError(
                f"{refusal}: {LOCAL} is {why}",
                where=str(path),
                do="Look at that file, and approve it if it is yours",
            )
        text = edit("" if data is None else data.decode("utf-8-sig")).encode()
        if text:
            expect = None if data is None else digest(data)
            folder.write(LOCAL, text, expect=expect, exclusive=data is None)
        elif data is not None:
            folder.remove(LOCAL)
    if text:
        lists.decide(home, path, text, trusted=True)
    elif data is not None:
        lists.forget(home, path)
    return path


# --- Changing what one has set: a flag in `<home>/flags.json`, a setting in
# `<home>/settings.json`.
#
# A file is put in place whole, and only where it is still what was read, so that two who change at
# once both count. Whatever else it holds stays as it is; a file that is no JSON object is refused.


FLAGS_FILE = "flags.json"
SETTINGS_FILE = "settings.json"
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
        if rewrite(folder, file, lambda before: make(_text(before, home / file)).encode()):
            return
    raise SettingsError(
        "Nothing was set: other processes keep changing the file", where=file, do="Try again"
    )


def _text(data: bytes | None, path: Path) -> str:
    try:
        return (data or b"").decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SettingsError(
            "It cannot be changed: the file is not UTF-8",
            where=str(path),
            do="Repair or remove that file.",
        ) from None
