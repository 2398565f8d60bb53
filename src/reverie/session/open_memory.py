"""Open a project's memory: its store, its recall index, and who stands behind a file.

`OpenMemory.of` opens one for its caller; nothing is opened or made before it is asked for. The
library shares those of a process by `lend_memory`: at most `LIMIT` are open, the one unused for
longest is closed when another is wanted. Calls on one memory wait for one another, those on
different ones do not. A process that forked begins anew: nothing that its parent opened is used
in it.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, TypeAlias

from reverie.errors import NotFound, ReverieError, StoreError
from reverie.store import home as places
from reverie.world import Notice, Say, say_nothing

if TYPE_CHECKING:
    from reverie.session.recall.project_index import FileTimes, MemoryIndex
    from reverie.store.history import History
    from reverie.store.memory_folder import MemoryFolder
    from reverie.store.memory_store import MemoryStore
    from reverie.store.project import Project
    from reverie.topics.entry import TopicFile
    from reverie.topics.trust import Trust

LIMIT = 32
"""Memories of one process that are open at a time."""
_Key: TypeAlias = tuple[object, ...]


class OpenMemory:
    """One project's memory, each part of it opened when it is first asked for.

    `store` makes what is missing. `index`, `folder` and `history` make nothing but the file of
    the index, so that looking leaves no trace.
    """

    def __init__(self, project: Project, now: Callable[[], float] | None, say: Say) -> None:
        self.project = project
        self.scope = project.scope
        self.listener = say
        self.lock = threading.RLock()
        self.users = 0
        self._now = now or time.time
        self._store: MemoryStore | None = None
        self._index: MemoryIndex | None = None
        self._folder: MemoryFolder | None = None
        self._history: History | None = None
        self._kept = ExitStack()
        self._keeps_index = False
        self._times: FileTimes | None = None

    @classmethod
    def of(
        cls, project: Project, *, now: Callable[[], float] | None = None, say: Say = say_nothing
    ) -> OpenMemory:
        """Open a project's memory; close it, or use it as a context."""
        return cls(project, now, say)

    def say(self, notice: Notice) -> None:
        """Tell whoever uses it now."""
        self.listener(notice)

    # --- its parts

    @property
    def store(self) -> MemoryStore:
        """The memory for reading and writing; its folders are made where they are missing."""
        if self._store is None:
            from reverie.store.memory_store import MemoryStore

            self._store = MemoryStore.of(self.project, now=self._now, say=self.say)
        return self._store

    @property
    def index(self) -> MemoryIndex:
        """The recall index over memories and transcripts."""
        if self._index is None:
            from reverie.session.recall.project_index import MemoryIndex

            self._index = MemoryIndex.of(self.project, say=self.say)
        return self._index

    def keep_index(self) -> None:
        """Keep the file of the index open until `close`, for many questions."""
        if not self._keeps_index:
            self._kept.enter_context(self.index.opened())
            self._keeps_index = True

    def refresh_index(self) -> None:
        """Bring an index that is kept open up to date: what is slow is done beside questions."""
        if self._keeps_index:
            self.index.refresh()

    @property
    def folder(self) -> MemoryFolder | None:
        """The files of the memory for reading; None where there are none yet."""
        if self._store is not None:
            return self._store.folder
        if self._folder is None and (path := self.project.memory_folder).is_dir():
            from reverie.store.memory_folder import MemoryFolder

            self._folder = MemoryFolder(path, create=False, say=self.say)
        return self._folder

    @property
    def history(self) -> History | None:
        """The versions for reading, from where the last look ended; None where there are none."""
        if self._store is not None and _is_there(self._store.beside.must_be_there):
            return self._store.history
        if self._history is not None and not _is_there(self._history.files.must_be_there):
            self._history.close()
            self._history = None
        if self._history is None:
            from reverie.store.history import History

            if (kept := self.project.history_folder).is_dir():
                self._history = History(kept, now=self._now, create=False)
        return self._history

    def close(self) -> None:
        """Close what is open; a part that is asked for again is opened again."""
        self._kept.close()
        self._keeps_index = False
        for part in (self._index, self._folder, self._history, self._store):
            if part is not None:
                part.close()
        self._index = self._folder = self._history = self._store = None

    def __enter__(self) -> OpenMemory:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()

    # --- what is asked of all of it

    @property
    def is_searchable(self) -> bool:
        """Whether there are memories or sessions to search."""
        return self.index.folder.is_dir() or self.index.transcripts.is_dir()

    def read(self, key: str) -> TopicFile:
        """Return a memory that was found."""
        if self.folder is None:
            raise NotFound("There is no memory in this project", where=key)
        return self.folder.read(key)

    def find_store(self, *, create: bool = False) -> MemoryStore | None:
        """Return the store, its history brought up to date; None where there is no memory."""
        if not create and not self.project.has_memory:
            places.check_folder(self.project.home)
            return None
        store = self.store
        self.record_changes()
        return store

    def record_changes(self) -> None:
        """Record what others wrote; a folder that cannot be written is still read."""
        try:
            self.store.look()
        except ReverieError as error:
            text = f"What others wrote could not be recorded: {error}"
            self.say(Notice("memory", text, "warning"))

    def trust(self, key: str) -> Trust:
        """Return who stands behind a file; one that nobody recorded counts as found on disk."""
        return self.provenance(key)[0]

    def provenance(self, key: str) -> tuple[Trust, float]:
        """Return who stands behind a file, and when it was last written to, as far as its history,
        its head, git and its own time tell; 0 where nobody knows."""
        from reverie.topics.trust import Trust
        from reverie.topics.versions import outside, save_time, trust_in

        try:
            steps = self.store.history.log(key)
        except (StoreError, NotFound):
            return Trust.UNTRUSTED, 0.0
        trust = trust_in(steps, key) if steps else outside().trust
        return trust, save_time(steps) or self._file_times().at(key, steps)

    def _file_times(self) -> FileTimes:
        """Return what tells the times of files, the same for all of one call."""
        if self._times is None:
            from reverie.session.recall.project_index import FileTimes

            self._times = FileTimes(self.store.folder, self._now(), alone=self.index.alone)
        return self._times

    def newest_change(self, key: str) -> str:
        """Return what `undo` takes to take back the last change of a file."""
        steps = self.store.history.log(key)
        return steps[-1].id if steps else ""

    def begin(self, say: Say) -> None:
        """Begin a call: its notices go there, and what was taken away or replaced is opened again;
        what was cut off while it landed is finished before anybody looks."""
        self.listener = say
        self._times = None
        if not self.is_current():
            self.close()
            _ = self.store

    def end(self) -> None:
        """End a call: the rules among what it wrote hold from now on."""
        if self._store is not None:
            self._store.compile_rules()

    @property
    def is_open(self) -> bool:
        """Whether the store is open."""
        return self._store is not None

    def is_current(self) -> bool:
        """Whether the store is open, and its folders are those that it opened."""
        store = self._store
        return store is not None and all(
            map(
                _is_there,
                (
                    store.folder.files.must_be_there,
                    store.beside.must_be_there,
                    store.forgotten.files.must_be_there,
                ),
            )
        )


def _is_there(check: Callable[[], object]) -> bool:
    try:
        check()
    except (NotFound, StoreError):
        return False
    return True


@contextmanager
def find_memory(
    project: Project, say: Say, *, create: bool = False
) -> Generator[MemoryStore | None]:
    """Open the store of a project's memory; None where there is none and none is to be made."""
    with OpenMemory.of(project, say=say) as opened:
        yield opened.find_store(create=create)


@contextmanager
def open_memory(project: Project, say: Say) -> Generator[MemoryStore]:
    """Open the store of a project's memory; make it where it is missing."""
    with find_memory(project, say, create=True) as memories:
        assert memories is not None
        yield memories


def session_memory(project: Project, now: Callable[[], float], say: Say) -> MemoryStore | None:
    """Return the store for a session; None where it is off or, which is said, cannot be had."""
    if project.settings.memory_off():
        return None
    try:
        return OpenMemory.of(project, now=now, say=say).store
    except ReverieError as error:
        say(Notice("memory", f"there is no long-term memory in this session: {error}", "warning"))
        return None


# --- those that a process shares


class MemoryPool:
    """The open memories of one process."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._known: OrderedDict[_Key, OpenMemory] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    @contextmanager
    def lend(self, project: Project, say: Say) -> Generator[OpenMemory]:
        """Open a memory for one call, made where it is missing; others that want it wait."""
        with self._take(project) as one:
            one.begin(say)
            yield one

    @contextmanager
    def find(self, project: Project, say: Say) -> Generator[OpenMemory | None]:
        """Open a memory for one call; None where there is none."""
        with self._take(project) as one:
            is_there = one.is_current() or project.has_memory
            if is_there:
                one.begin(say)
            yield one if is_there else None

    @contextmanager
    def _take(self, project: Project) -> Generator[OpenMemory]:
        key = (project.home, project.root, project.settings, project.user, project.agent)
        with self._lock:
            one = self._known.get(key)
            if one is None:
                one = self._known[key] = OpenMemory.of(project)
            self._known.move_to_end(key)
            one.users += 1
            self._close_idle()
        try:
            with one.lock:
                try:
                    yield one
                finally:
                    one.end()
        finally:
            with self._lock:
                one.users -= 1
                if not one.users and not one.is_open:
                    self._known.pop(key, None)
                self._close_idle()

    def _close_idle(self) -> None:
        """Close those unused for longest; one that is in use is never closed."""
        over = len(self._known) - self._limit
        idle = [key for key, one in self._known.items() if not one.users]
        for key in idle[: max(over, 0)]:
            self._known.pop(key).close()


_shared = MemoryPool()


def shared_pool() -> MemoryPool:
    """Return the pool of this process."""
    return _shared


def lend_memory(project: Project, say: Say) -> AbstractContextManager[OpenMemory]:
    """Open a memory that the process shares, for one call."""
    return _shared.lend(project, say)


def lend_memories(project: Project, say: Say) -> Iterator[OpenMemory]:
    """Open each memory from a project outwards, the narrowest first, one at a time."""
    for part in project.outwards():
        with _shared.find(part, say) as one:
            if one is not None:
                yield one


def _begin_anew() -> None:
    global _shared  # noqa: PLW0603 - a fork has its own, and its locks are nobody's
    _shared = MemoryPool()


os.register_at_fork(after_in_child=_begin_anew)
