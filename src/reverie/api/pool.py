"""Open memories, shared by all of a process and few at a time.

At most `LIMIT` addresses are open; the one unused for longest is closed when another is wanted.
Calls on one address wait for one another, those on different ones do not. A process that forked
begins anew: nothing that its parent opened is used in it. Looking opens nothing where there is
no memory yet.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from reverie.api.address import Address
from reverie.errors import NotFound, StoreError
from reverie.light import dataclass
from reverie.settings import Settings, environment, load
from reverie.settings.sources import override
from reverie.store import addresses
from reverie.store import home as places
from reverie.store.project import Project
from reverie.world import Notice, Say, say_nothing

if TYPE_CHECKING:
    from reverie.session.recall.index import MemoryIndex
    from reverie.store.memories import Memories

LIMIT = 32
"""Addresses that are open at a time."""


@dataclass(frozen=True, slots=True)
class Ground:
    """Where one address lies: everything of it is made from `root`, in `home`, by `settings`."""

    home: Path
    root: Path
    environ: Mapping[str, str] = field(compare=False, hash=False)
    settings: Settings
    scope: str
    named: bool = False  # `root` is an address's own folder

    @property
    def is_there(self) -> bool:
        """Whether there is anything to read."""
        if self.named and not places.is_address(self.home, self.root):
            return False
        return self.folder.is_dir() or self.project.history_folder.is_dir()

    @property
    def folder(self) -> Path:
        """The folder of the Markdown files; nothing is made."""
        return self.project.memory_folder

    @property
    def project(self) -> Project:
        """The project that this is."""
        where = (self.home, self.root, self.root, self.environ, self.settings)
        return Project(*where, is_address=self.named)

    def claim(self) -> None:
        """Make the folder that is to hold it."""
        self.project.claim()

    def open(self, say: Say) -> Memories:
        """The memory, open for its caller alone."""
        from reverie.store.memories import Memories

        return Memories.of(self.project, now=time.time, say=say)


def home_of(given: str) -> tuple[Path, Mapping[str, str]]:
    """The home, and the environment in which it is that."""
    environ = environment()
    if given:
        environ = {**environ, "REVERIE_HOME": os.path.abspath(given)}
    return places.home(environ), environ


def grounds(
    address: Address, home: str, settings: Settings | Mapping[str, object] | None
) -> tuple[Ground, ...]:
    """Where an address lies and those around it, the narrowest first."""
    base, environ = home_of(home)
    root = places.canonical_root(Path(address.folder)) if address.folder else None
    project = root or _rootless(base, address)
    wanted = chosen_settings(settings, environ, base, root)
    found: list[Ground] = []
    for one in address.outwards():
        wide = not (one.user or one.agent)
        if wide and root is not None:
            found.append(Ground(base, project, environ, wanted, one.scope))
            continue
        folder = places.find_project_folder(base, project) if root else project
        kept = places.transcripts_folder(folder, base, environ)
        place = project if wide else addresses.address_folder(kept, one.user, one.agent)
        own = replace(wanted, memory_path_override=None, auto_memory_directory=None)
        found.append(Ground(base, place, environ, own, one.scope, named=True))
    return tuple(found)


def _rootless(home: Path, address: Address) -> Path:
    if address.name:
        return addresses.named_project(home, address.name)
    return addresses.personal_project(home)


def chosen_settings(
    given: Settings | Mapping[str, object] | None,
    environ: Mapping[str, str],
    home: Path,
    root: Path | None,
) -> Settings:
    """The settings that count: those given whole, or what is given on top of those found."""
    if isinstance(given, Settings):
        return given
    return override(load(environ, home=home, root=root).settings, given, environ)


@dataclass(slots=True)
class Opened:
    """One address, open: its memory and its index, for one call at a time."""

    ground: Ground
    memories: Memories = field(init=False)
    index: MemoryIndex = field(init=False)
    users: int = 0
    turn: threading.RLock = field(default_factory=threading.RLock)
    _listener: Say = say_nothing
    _is_open: bool = False

    def say(self, notice: Notice) -> None:
        """Tell whoever's call this is."""
        self._listener(notice)

    def begin(self, listener: Say) -> None:
        """Open what is not open yet, or was taken away or replaced since; from now on this call's
        notices go there."""
        self._listener = listener
        if self._is_open and self._stands():
            return
        self.close()
        from reverie.session.recall.index import MemoryIndex

        self.memories = self.ground.open(self.say)
        self.index = MemoryIndex.of(self.ground.project, say=self.say)
        self._is_open = True

    def _stands(self) -> bool:
        try:
            self.memories.folder.files.must_be_there()
            self.memories.beside.must_be_there()
            self.memories.forgotten.files.must_be_there()
        except (NotFound, StoreError):
            return False
        return True

    def close(self) -> None:
        if self._is_open:
            self.index.close()
            self.memories.close()
        self._is_open = False


class Pool:
    """The open addresses of one process."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._known: OrderedDict[Ground, Opened] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    @contextmanager
    def opened(self, ground: Ground, listener: Say) -> Generator[Opened]:
        """An address for one call; others that want it wait."""
        one = self._taken(ground)
        try:
            with one.turn:
                one.begin(listener)
                yield one
        finally:
            self._given_back(one)

    def _taken(self, ground: Ground) -> Opened:
        with self._lock:
            one = self._known.setdefault(ground, Opened(ground))
            self._known.move_to_end(ground)
            one.users += 1
            self._thin_out()
            return one

    def _given_back(self, one: Opened) -> None:
        with self._lock:
            one.users -= 1
            self._thin_out()

    def _thin_out(self) -> None:
        """Close those unused for longest; one that is in use is never closed."""
        over = len(self._known) - self._limit
        idle = [ground for ground, one in self._known.items() if not one.users]
        for ground in idle[: max(over, 0)]:
            self._known.pop(ground).close()


_shared = Pool()


def shared() -> Pool:
    """The pool of this process."""
    return _shared


def _begin_anew() -> None:
    global _shared  # noqa: PLW0603 - a fork has its own, and its locks are nobody's
    _shared = Pool()


os.register_at_fork(after_in_child=_begin_anew)
