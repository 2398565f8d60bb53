"""Name a project: its home, root, working folder, environment and settings, in one frozen value.

`Project.at` finds one by folder or name. Whose memory is meant belongs to it: a project's, in it
one user's, and for either one agent's; what is left out is wider. Settings are read once, when it
is made; `reload` reads them again. Nothing is opened here, and only `claim` writes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from reverie.errors import InvalidInput, PathRefused, ReverieError, StoreError
from reverie.light import dataclass
from reverie.settings.catalog import Settings
from reverie.settings.flags import Flags
from reverie.settings.schema import Problem, parse_object, read_object
from reverie.settings.sources import LoadedSettings, environment, load, override
from reverie.store import home as addresses
from reverie.topics import paths

HISTORY = "memory-history"
AGENT_HISTORY = "agent-memory-history"
Scope: TypeAlias = Literal["agent", "user", "project", "personal"]
GivenSettings: TypeAlias = Settings | Mapping[str, object] | None


@dataclass(frozen=True, slots=True)
class Project:
    """One project as one home sees it, for all of it or for one user or agent."""

    home: Path
    root: Path  # whose memory and sessions: a repository's root, or an address's own folder
    cwd: Path
    environ: Mapping[str, str] = field(compare=False, hash=False, repr=False)
    settings: Settings
    problems: tuple[Problem, ...] = field(default=(), compare=False, hash=False)  # of settings
    name: str = ""  # where the project is no folder
    user: str = ""
    agent: str = ""
    is_address: bool = False  # `root` is an address's own folder below home
    outer: Project | None = field(default=None, compare=False, hash=False, repr=False)

    @classmethod
    def at(
        cls,
        path: str | os.PathLike[str] = ".",
        *,
        home: str | os.PathLike[str] | None = None,
        user: str = "",
        agent: str = "",
        environ: Mapping[str, str] | None = None,
        settings: GivenSettings = None,
        is_name: bool = False,
    ) -> Project:
        """Find a project by its folder or, where there is none or `is_name`, by its name."""
        base, known = home_and_environment(home, environ)
        folder, name = (None, str(path)) if is_name else folder_or_name(path)
        if folder is None:
            root = addresses.named_project(base, name)
            return cls._at_address(base, root, known, settings, name).part(user, agent)
        root = addresses.canonical_root(folder)
        return cls._at_root(base, root, folder, known, settings).part(user, agent)

    @classmethod
    def personal(
        cls,
        *,
        home: str | os.PathLike[str] | None = None,
        environ: Mapping[str, str] | None = None,
        settings: GivenSettings = None,
    ) -> Project:
        """Find what belongs to the person who runs the process, and to no project."""
        base, known = home_and_environment(home, environ)
        return cls._at_address(base, addresses.personal_project(base), known, settings, "")

    @classmethod
    def _at_root(
        cls,
        home: Path,
        root: Path,
        cwd: Path,
        environ: Mapping[str, str],
        settings: GivenSettings,
    ) -> Project:
        chosen, problems = _settings(settings, environ, home, root)
        is_address = addresses.is_address(home, root)
        if is_address:
            chosen = _kept_apart(chosen)
        return cls(home, root, cwd, environ, chosen, problems, is_address=is_address)

    @classmethod
    def _at_address(
        cls,
        home: Path,
        root: Path,
        environ: Mapping[str, str],
        settings: GivenSettings,
        name: str,
    ) -> Project:
        chosen, problems = _settings(settings, environ, home, None)
        own = _kept_apart(chosen)
        return cls(home, root, root, environ, own, problems, name, is_address=True)

    # --- parts of it, and others beside it

    def part(self, user: str = "", agent: str = "") -> Project:
        """Return the part of one user, or of one kind of agent; itself where neither is given."""
        check_part(user, agent)
        found = self
        for whose, which in ((user, ""), (user, agent)):
            if (whose, which) != (found.user, found.agent) and (whose or which):
                found = self._narrow(whose, which, found)
        return found

    def _narrow(self, user: str, agent: str, outer: Project) -> Project:
        folder = self.root if self.is_address else self.folder()
        kept = addresses.transcripts_folder(folder, self.home, self.environ)
        root = addresses.address_folder(kept, user, agent)
        cwd = root if self.name or self.scope == "personal" else self.cwd
        return replace(self.at_address(root), cwd=cwd, user=user, agent=agent, outer=outer)

    def at_address(self, root: Path) -> Project:
        """Return it with its memory and sessions in an address's own folder."""
        return replace(self, root=root, settings=_kept_apart(self.settings), is_address=True)

    def outwards(self) -> tuple[Project, ...]:
        """Return this one and those around it, the narrowest first, never one beside it."""
        return (self,) if self.outer is None else (self, *self.outer.outwards())

    def sibling(self, root: Path) -> Project:
        """Return the project of another root in the same home."""
        return self._at_root(self.home, root, root, self.environ, None)

    def reload(self) -> Project:
        """Return it with its settings as they are on disk now."""
        read = self.load()
        settings = _kept_apart(read.settings) if self.is_address else read.settings
        return replace(self, settings=settings, problems=read.problems)

    def load(self) -> LoadedSettings:
        """Read the settings on disk, each with its origin."""
        wide = self.outwards()[-1]  # a user's or agent's part has the settings of its project
        is_folder = not wide.name and wide.scope != "personal"
        return load(self.environ, home=self.home, root=wide.root if is_folder else None)

    # --- what follows from it

    @property
    def scope(self) -> Scope:
        """The part that makes it narrow."""
        if self.agent or self.user:
            return "agent" if self.agent else "user"
        is_personal = self.root == addresses.personal_project(self.home)
        return "personal" if is_personal else "project"

    @property
    def flags(self) -> Flags:
        """The kill switches as they count here; they are looked up when they are asked for."""
        return Flags(self.environ, home=self.home, root=self.root, settings=self.settings)

    @property
    def worktree(self) -> Path:
        """The root of the working tree around `cwd`, also of a linked one; `cwd` outside git."""
        return work_root(self.cwd)

    @property
    def user_home(self) -> str:
        """The home folder of the person, not Reverie's."""
        return self.environ.get("HOME", "") or os.path.expanduser("~")

    def folder(self) -> Path:
        """Return the project's folder below home, which need not be there."""
        return addresses.find_project_folder(self.home, self.root)

    @property
    def sessions_folder(self) -> Path:
        """The folder of its transcripts, memory history and indexes; nothing is made."""
        return addresses.transcripts_folder(self.folder(), self.home, self.environ)

    @property
    def memory_folder(self) -> Path:
        """The folder of its Markdown files; nothing is made."""
        if self.is_address and self.settings.remote_memory_dir is None:
            return self.root / paths.FOLDER
        below = addresses.find_project_folder(paths.base(self.settings, self.home), self.root)
        return paths.memory_paths(self.settings, below)

    @property
    def history_folder(self) -> Path:
        """The folder of its memory's versions; nothing is made."""
        return self.sessions_folder / HISTORY

    @property
    def has_memory(self) -> bool:
        """Whether there is a memory to read."""
        if self.is_address and not addresses.is_address(self.home, self.root):
            return False
        return self.memory_folder.is_dir() or self.history_folder.is_dir()

    def claim(self) -> None:
        """Make the folder of an address."""
        if self.is_address:
            addresses.claim_address(self.home, self.root, environ=self.environ)

    def __str__(self) -> str:
        wide = self.outwards()[-1]
        named = wide.name or ("personal" if wide.scope == "personal" else str(wide.cwd))
        return " / ".join(part[:80] for part in (named, self.user, self.agent) if part)


def home_and_environment(
    home: str | os.PathLike[str] | None = None, environ: Mapping[str, str] | None = None
) -> tuple[Path, Mapping[str, str]]:
    """Return the home that counts, and the environment in which it is that."""
    known = environment() if environ is None else environ
    if home:
        path = os.path.abspath(home)
        if known.get("REVERIE_HOME") != path:
            known = {**known, "REVERIE_HOME": path}
    return addresses.home(known), known


def work_root(cwd: Path) -> Path:
    """Return the root of the working tree that `cwd` is in; `cwd` outside git."""
    start = Path(os.path.realpath(cwd))
    for folder in (start, *start.parents):
        if os.path.lexists(folder / ".git"):
            return folder
    return start


def check_part(user: str, agent: str) -> None:
    """Refuse what names no user or agent."""
    for what, given in (("user", user), ("agent", agent)):
        if not isinstance(given, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            do = f"Give its name as {what}="
            raise InvalidInput(f"`{what}` is a text", where=type(given).__name__, do=do)


def folder_or_name(given: str | os.PathLike[str]) -> tuple[Path | None, str]:
    """Return the folder of a project or, where there is none, its name."""
    text = os.fspath(given) or "."
    is_path = not isinstance(given, str) or text.startswith(("/", "./", "../"))
    if is_path or text in (".", "..") or os.path.isdir(text):
        return Path(os.path.abspath(text)), ""
    return None, text


def _settings(
    given: GivenSettings, environ: Mapping[str, str], home: Path, root: Path | None
) -> tuple[Settings, tuple[Problem, ...]]:
    """Return the settings that count, and what was wrong with those on disk."""
    if isinstance(given, Settings):
        return given, ()
    read = load(environ, home=home, root=root)
    return override(read.settings, given, environ), read.problems


def _kept_apart(settings: Settings) -> Settings:
    """Leave out where a project's memory is kept: an address has a folder of its own."""
    return replace(settings, memory_path_override=None, auto_memory_directory=None)


# --- the memories of agents' types


def agent_memory(project: Project, agent: str, scope: paths.Scope) -> tuple[Path, Path]:
    """Return the memory folder of an agent's type, and where its versions are kept."""
    home, root = project.home, project.root
    base = paths.base(project.settings, home)
    remote = None if base == home else addresses.find_project_folder(base, root)
    folder = paths.agent_folder(agent, scope, home=home, root=root, remote_project=remote)
    above = home if scope == "user" else project.sessions_folder
    return folder, above / AGENT_HISTORY / scope / folder.name


def agent_memories(project: Project) -> Iterator[tuple[Path, Path]]:
    """Yield every agent's memory folder of this home and project, each with its history."""
    for scope in paths.SCOPES:
        above = agent_memory(project, "any", scope)[0].parent
        for name in sorted(os.listdir(above)) if above.is_dir() else ():
            if (above / name).is_dir() and not (above / name).is_symlink():
                with suppress(PathRefused):  # no agent's: left alone
                    yield agent_memory(project, name, scope)


# --- The projects of a home, each by the name of its folder there.
#
# A name is looked up among the folders that are there and is never made into a path. What counts
# is what a command with `--project` would open: a folder of the home that says which root it
# belongs to, a root that is still there, and no other folder for that root.


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
    marked = _MARKED.fullmatch(root.name) if addresses.is_address(home, root) else None
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
    owner = read_object(folder / addresses.OWNER)[0].get("root")
    if not isinstance(owner, str) or not os.path.isabs(owner) or not os.path.isdir(owner):
        return None
    try:
        root = addresses.canonical_root(Path(owner))
        return root if addresses.find_project_folder(home, root) == folder else None
    except ReverieError:
        return None


# --- Reverie off and on for one project: nothing of it runs unasked, and nothing is lost.
#
# Off means what `--bare` means, until it is switched on again: no memory is read or written, no
# notes, no learning, no dreams, no agents, no hooks, at whatever door the project is worked on.
# What is stored stays, and commands that a person gives still work.


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
    from reverie.store import approvals

    if is_on(place).on is not on:
        approvals.change(place, lambda text: _with(text, on=on), "Nothing was switched")
        with suppress(OSError):  # it holds other files
            (place.root / approvals.FOLDER).rmdir()
    return is_on(place)


def _with(text: str, *, on: bool) -> str:
    from reverie.store import approvals

    where = f"{approvals.FOLDER}/{approvals.LOCAL}"
    value, bad = parse_object(text or "{}", where)
    if bad:
        raise StoreError(f"nothing was switched: {bad[0]}", where=where, do="Mend the file first")
    kept = {key: given for key, given in value.items() if key != NAME}
    if not on:
        kept[NAME] = True
    return json.dumps(kept, indent=2, ensure_ascii=False) + "\n" if kept else ""
