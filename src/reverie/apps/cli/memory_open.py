"""What every `reverie memory` command begins with: the memory of the project, looked at.

Looking makes nothing where there is no memory yet. Where there is, what editors and other
programs wrote since is recorded first, so that every command sees the whole history; a folder
that cannot be written is still shown.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from reverie.apps.cli.place import ProjectPlace
from reverie.apps.cli.show import note, plural
from reverie.errors import ReverieError
from reverie.memory.trust import Trust
from reverie.memory.versions import Origin, Version
from reverie.store.memories import Memories, history_folder, memory_folder
from reverie.upkeep.forget import unfinished
from reverie.world import Notice


def by_user(kind: str, note: str = "") -> Origin:
    """A change that a person asked for on the command line."""
    return Origin(kind, Trust.USER, agent="user", tool="cli", note=note)


@contextlib.contextmanager
def opened(project: Path, *, create: bool = False) -> Generator[Memories | None]:
    """The project's memory; None where there is none and none is to be made."""
    place = ProjectPlace.of(project)
    settings = place.loaded().settings
    folder = memory_folder(place.home, place.root, settings)
    kept = history_folder(place.home, place.root, place.environ)
    if not create and not folder.is_dir() and not kept.is_dir():
        yield None
        return
    with Memories.of(
        place.home, place.root, place.environ, settings, now=time.time, say=_said
    ) as memories:
        try:
            memories.look()
        except ReverieError as error:
            note(f"What others wrote could not be recorded: {error}")
        left = unfinished(place.home)
        if left:
            note(
                f"{plural(left, 'thing')} begun to be forgotten: run `reverie memory forget` again"
            )
        yield memories


@contextlib.contextmanager
def must_open(project: Path) -> Generator[Memories]:
    """The project's memory, made where it is missing."""
    with opened(project, create=True) as memories:
        assert memories is not None
        yield memories


def _said(notice: Notice) -> None:
    note(notice.text)


def text_from(given: str) -> str:
    """A text given as it is, or with `-` on stdin."""
    if given != "-":
        return given
    with os.fdopen(os.dup(0), "rb") as stdin:
        return stdin.read().decode("utf-8", "replace")


def version_value(version: Version) -> dict[str, Any]:
    """A version for `--json`."""
    return {
        "id": version.id,
        "key": version.key,
        "at": version.at,
        "before": version.before,
        "after": version.after,
        "group": version.group,
        "undoes": list(version.undoes),
        "origin": version.origin.value(),
    }


def origin_shown(origin: Origin) -> str:
    """Where a change came from, in a few words."""
    parts = [origin.agent, origin.tool if origin.tool != "cli" else "", origin.session[:8]]
    return " · ".join(part for part in parts if part) or origin.kind
