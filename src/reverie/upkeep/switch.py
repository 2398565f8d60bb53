"""Reverie off and on for one project: nothing of it runs unasked, and nothing is lost.

Off means what `--bare` means, until it is switched on again: no memory is read or written, no
notes, no learning, no dreams, no agents, no hooks, at whatever door the project is worked on. What
is stored stays, and commands that a person gives still work.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass

from reverie.errors import StoreError
from reverie.settings.values import parse_object
from reverie.store import local_settings
from reverie.store.project import Project

NAME = "simple"


@dataclass(frozen=True, slots=True)
class ProjectSwitch:
    """How it stands for a project, and what says so."""

    on: bool
    where: str  # the file or variable that says so; empty where nothing does


def is_on(place: Project) -> ProjectSwitch:
    loaded = place.load()
    return ProjectSwitch(not loaded.settings.simple, loaded.origins[NAME].place)


def switch(place: Project, *, on: bool) -> ProjectSwitch:
    """Put it on or off, in the project's local settings; says how it stands then."""
    if is_on(place).on is not on:
        local_settings.change(place, lambda text: _with(text, on=on), "Nothing was switched")
        with suppress(OSError):  # it holds other files
            (place.root / local_settings.FOLDER).rmdir()
    return is_on(place)


def _with(text: str, *, on: bool) -> str:
    where = f"{local_settings.FOLDER}/{local_settings.LOCAL}"
    value, bad = parse_object(text or "{}", where)
    if bad:
        raise StoreError(f"nothing was switched: {bad[0]}", where=where, do="Mend the file first")
    kept = {key: given for key, given in value.items() if key != NAME}
    if not on:
        kept[NAME] = True
    return json.dumps(kept, indent=2, ensure_ascii=False) + "\n" if kept else ""
