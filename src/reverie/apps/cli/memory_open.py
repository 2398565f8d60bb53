"""What the `reverie memory` commands begin with: the project's memory, notices on stderr."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path

from reverie.apps.cli.show import tell
from reverie.memory.trust import Trust
from reverie.memory.versions import Origin
from reverie.store.memories import Memories
from reverie.upkeep import memory
from reverie.upkeep.place import ProjectPlace


def find_memory(project: Path) -> AbstractContextManager[Memories | None]:
    """The project's memory; None where there is none."""
    return memory.find_memory(ProjectPlace.of(project), tell)


def open_memory(project: Path) -> AbstractContextManager[Memories]:
    """The project's memory, made where it is missing."""
    return memory.open_memory(ProjectPlace.of(project), tell)


def by_user(kind: str, note: str = "") -> Origin:
    """A change that a person asked for on the command line."""
    return Origin(kind, Trust.USER, agent="user", tool="cli", note=note)


def text_from(given: str) -> str:
    """A text given as it is, or with `-` on stdin."""
    if given != "-":
        return given
    with os.fdopen(os.dup(0), "rb") as stdin:
        return stdin.read().decode("utf-8", "replace")
