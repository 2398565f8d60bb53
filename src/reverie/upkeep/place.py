"""Where a command runs: environment, home, the project's root, and its sessions.

Looking makes nothing: a home or project folder that is not there stays away until
something is to be written into it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from reverie.errors import InvalidInput, NotFound
from reverie.session.library import Library
from reverie.settings import Flags, Loaded, Settings, environment, load
from reverie.settings.values import read_object
from reverie.store import home as places
from reverie.store import keys as names
from reverie.store.project import Project

_PREFIX = re.compile(r"[0-9a-f-]{1,36}", re.ASCII)
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class ProjectPlace:
    """One project, seen from one home."""

    environ: Mapping[str, str]
    home: Path
    root: Path

    @classmethod
    def of(cls, project: Path) -> ProjectPlace:
        environ = environment()
        root = places.canonical_root(Path(os.path.abspath(project)))
        return cls(environ, places.home(environ), root)

    def loaded(self) -> Loaded:
        """The settings that count here."""
        return load(self.environ, home=self.home, root=self.root)

    @property
    def settings(self) -> Settings:
        """The settings of the memory here: that of a user or an agent lies in its own folder,
        wherever a project's is kept."""
        found = self.loaded().settings
        if places.is_address(self.home, self.root):
            return replace(found, memory_path_override=None, auto_memory_directory=None)
        return found

    @property
    def project(self) -> Project:
        return Project(self.home, self.root, self.root, self.environ, self.settings)

    def flags(self) -> Flags:
        """The flags as they count here."""
        settings = self.loaded().settings
        return Flags(self.environ, home=self.home, root=self.root, settings=settings)

    def folder(self) -> Path:
        """The project's folder, which need not be there."""
        return places.find_project_folder(self.home, self.root)

    def library(self) -> Library | None:
        """The project's sessions to read; None where it has no folder yet."""
        return self._read_only(self.folder())

    def library_to_write(self) -> Library:
        """The project's sessions; its folder is made where it is missing."""
        return Library.of(self.project)

    def libraries(self) -> Iterator[tuple[str, Library]]:
        """All projects under this home, each with the root it belongs to."""
        projects = self.home / "projects"
        for name in sorted(os.listdir(projects)) if projects.is_dir() else ():
            owner = read_object(projects / name / places.OWNER)[0].get("root")
            library = self._read_only(projects / name)
            if library is not None and library.sessions():
                yield (owner if isinstance(owner, str) else ""), library

    def _read_only(self, project: Path) -> Library | None:
        path = places.transcripts_folder(project, self.home, self.environ)
        return Library(path, project) if path.is_dir() else None


def find_session(library: Library | None, given: str) -> str:
    """The session that an id, or the beginning of one, names."""
    text = given.lower()
    if not _PREFIX.fullmatch(text):
        raise InvalidInput(
            "This is not a session id, nor the beginning of one",
            where=names.shown(given),
            do="`reverie sessions list` shows the ids",
        )
    found = [f.id for f in library.sessions() if f.id.startswith(text)] if library else []
    if len(found) == 1:
        return found[0]
    if not found:
        raise NotFound(
            "There is no such session in this project",
            where=given,
            do="`reverie sessions list` shows the ids, with `--all` those of every project",
        )
    shown = ", ".join(found[:_SHOWN]) + (", …" if len(found) > _SHOWN else "")
    raise InvalidInput(
        "Several sessions have ids that begin like this",
        where=shown,
        do="Give more of the id",
        code="ambiguous",
    )
