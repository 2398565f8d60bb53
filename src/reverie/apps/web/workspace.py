"""What every screen works with, kept up to date.

What every screen works with: the project, its derived index, its memory, and the templates.

One thread at a time has the memory; the index is asked by all. A background thread keeps the
index up to date and tells the live parts of open pages what changed.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import jinja2
from starlette.responses import HTMLResponse, RedirectResponse, Response

from reverie.apps.web import format as show
from reverie.apps.web.events import EventHub, FigureProcesses, ProjectFigures
from reverie.errors import NotFound, ReverieError
from reverie.memory.tasks import next_dream
from reverie.reports.memory_index import MemoryRows
from reverie.reports.session_index import NAME, DerivedDatabase, SessionIndex
from reverie.reports.stats import Savings
from reverie.session.dream.branch import dreams, dreams_folder
from reverie.session.library import SessionLibrary
from reverie.session.open_memory import OpenMemory
from reverie.store.memory_store import MemoryStore
from reverie.store.project import Project, project_name
from reverie.topics.entry import is_topic
from reverie.world import Notice

_T = TypeVar("_T")
HERE = Path(__file__).parent
SHOWN_PROJECTS = 12
"""Projects in the side of every page; a page of their own has all."""
PATIENCE = 5.0
"""Seconds that the end waits for work beside the page."""
SAID = {
    "saved": "Saved.",
    "queued": "It waits for review.",
    "unchanged": "Nothing was changed: it says this already.",
    "undone": "Undone.",
    "removed": "Removed.",
    "accepted": "Saved as a memory.",
    "dropped": "Dropped.",
    "killed": "Killed. Everything is as it was before the dream.",
    "asked": "The dream was asked to stop.",
    "landed": "The changes are in your memories.",
    "begun": "A dream has begun.",
    "mended": "Mended.",
    "imported": "Imported; what is not trusted waits for review.",
    "nothing": "There was nothing to mend.",
    "on": "Switched on, from the next turn on.",
    "off": "Switched off, from the next turn on.",
    "limited": "Set. Sessions that begin from now on keep to it.",
    "syncing": "A sync has begun; what it did stands below when it is done.",
    "requeued": "It is queued again; a worker or the next `reverie fleet run` takes it up.",
    "cancelled": "Cancelled.",
    "stopping": "It was asked to stop; its memory is free once it has.",
    "over": "Nothing was changed: it runs, or it is over.",
    "paused": "Paused: none of its jobs begins, and those that run come to their end.",
    "resumed": "Resumed: its jobs begin again.",
    "forgotten": "Forgotten: nothing in Reverie's home contains it any more.",
}
"""What has just been done; a page shows it by its name, never by words from its address."""


@dataclass(frozen=True, slots=True)
class ProjectLink:
    """A project of this home as a page names it, and what its addresses begin with."""

    name: str
    folder: str
    prefix: str


@dataclass(frozen=True, slots=True)
class ScreenRequest:
    """A request, as a screen sees it."""

    path: Mapping[str, str] = field(default_factory=dict[str, str])
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    form: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    live: bool = False  # a fragment that a live page asks for again

    def given(self, name: str) -> str:
        """The first value of a field of the form."""
        return self.form.get(name, ("",))[0]

    @property
    def page(self) -> int:
        text = self.query.get("page", "1")
        return max(1, min(int(text), 10_000)) if text.isdecimal() and len(text) < 6 else 1


class Workspace:
    """One project, open for a browser.

    Addresses in screens are those within the project; `to` and the templates put `prefix` before
    them, which tells the projects of one page apart.
    """

    def __init__(
        self,
        place: Project,
        prefix: str = "",
        projects: Callable[[], Sequence[ProjectLink]] = tuple,
    ) -> None:
        self._place = place
        self.prefix = prefix
        self.projects = projects
        self.settings = place.settings
        self.library = SessionLibrary.of(place)
        self.base = DerivedDatabase(self.library.path / NAME)
        self.sessions = SessionIndex(self.base, self.library, self.settings)
        self.memories = MemoryRows(self.base, place)
        self.savings = Savings(self.base, self.settings)
        self.open_memory = OpenMemory.of(place, say=self.say)
        self.hub = EventHub()
        self.figures = ProjectFigures(self)
        self.commands = FigureProcesses(place.environ)
        self.closed = False
        self.running: dict[str, threading.Thread] = {}
        self.reading: tuple[int, int] = (0, 0)
        self.said: list[str] = []
        self.due = ""  # when the next dream is due, as last looked at
        self._memory: MemoryStore | None = None
        self._worked_out: dict[Any, tuple[Any, Any]] = {}
        self._lock = threading.RLock()
        self._templates = _templates(self)

    @property
    def place(self) -> Project:
        """The project, with its settings as they are now."""
        return self._place.reload()

    def close(self) -> None:
        self.closed = True
        self.commands.stop()
        self.settle(PATIENCE)
        self.open_memory.close()
        self.library.close()
        self.base.close()

    def say(self, notice: Notice) -> None:
        """What the library has to say stands on the page of health."""
        if notice.level != "info":
            self.said = [*self.said, notice.text][-20:]

    @contextlib.contextmanager
    def memory(self, *, create: bool = False) -> Generator[MemoryStore | None]:
        """The project's memory; None where there is none yet."""
        with self._lock:
            if self._memory is None:
                self.open_memory.project = self.place
                self._memory = self.open_memory.find_store(create=create)
            yield self._memory

    def between_changes(self, memories: MemoryStore, make: Callable[[MemoryStore], _T]) -> _T:
        """What `make` works out of the whole history, once for each state of it."""
        history = memories.history.log()
        state = (len(history), history[-1].id if history else "")
        if self._worked_out.get(make, (None, None))[0] != state:
            self._worked_out[make] = (state, make(memories))
        return self._worked_out[make][1]

    @contextlib.contextmanager
    def memory_there(self) -> Generator[MemoryStore]:
        """The project's memory, made where it is missing."""
        with self.memory(create=True) as memories:
            assert memories is not None
            yield memories

    @contextlib.contextmanager
    def changing(self) -> Generator[MemoryStore]:
        """The memory for a change; the lists know it when the block is left."""
        with self.memory_there() as memories:
            before = len(memories.history.log())
            yield memories
            steps = memories.history.log()[before:]
            self.memories.refresh(memories, {one.key for one in steps if is_topic(one.key)})
        self.hub.tell("memories")

    def start(self, name: str, work: Callable[[], None]) -> None:
        """Something that takes longer than a request; one of each name at a time."""
        at_work = self.running.get(name)
        if at_work is None or not at_work.is_alive():
            thread = threading.Thread(target=work, name=f"reverie-{name}", daemon=True)
            self.running[name] = thread
            thread.start()

    def settle(self, seconds: float) -> None:
        """Wait for what takes longer than a request, but for a dream, which goes on alone."""
        until = time.monotonic() + seconds
        for name, thread in list(self.running.items()):
            if name != "dream":
                thread.join(max(0.0, until - time.monotonic()))

    # Answers

    def page(self, name: str, status: int = 200, **values: Any) -> Response:
        """A page made from a template."""
        text = self._templates.get_template(name).render(values)
        return HTMLResponse(text.encode("utf-8", "replace"), status)  # a file's name may be no text

    def to(self, address: str, said: str = "") -> Response:
        """Go and look there, with a word on what was done."""
        if said:
            address += f"{'&' if '?' in address else '?'}said={said}"
        return RedirectResponse(self.prefix + address, 303)

    def bare(self, name: str, **values: Any) -> str:
        """A page for somebody who is not let in: it tells nothing of the project."""
        return self._templates.get_template(name).render(values)

    def recall_rows(self, question: str, most: int) -> list[dict[str, Any]]:
        """Search the memory, one search at a time; the keeper refreshes what is slow."""
        from reverie.session.recall.query import recall_rows

        with self._lock:
            memory = self.open_memory
            memory.project = place = self.place
            if memory.is_searchable:
                memory.keep_index()
            return recall_rows(memory, question, time.time(), most, place.root, beside=True)

    def refresh_recall(self) -> None:
        """Bring the recall index up to date, where anybody has asked yet."""
        with self._lock:
            self.open_memory.refresh_index()

    def screens(self) -> tuple[tuple[str, str, str], ...]:
        """The screens in the menu; the fleet's where there is one."""
        return (*SCREENS, FLEET) if has_fleet(self.place) else SCREENS

    def waiting(self) -> dict[str, int]:
        """What waits for a person, for the numbers in the menu."""
        with self.memory() as memories:
            if memories is None:
                return {"review": 0, "dream": 0}
            found = dreams(dreams_folder(memories))
            waits = sum(one.status == "waiting" for one in found)
            return {"review": len(memories.review.items()), "dream": waits}


def missing(what: str, where: str = "") -> NotFound:
    return NotFound(f"There is no such {what}", where=where, do="The list shows those there are")


def _templates(desk: Workspace) -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(show.FILTERS)  # pyright: ignore[reportUnknownMemberType]
    known: dict[str, Any] = {
        "project": project_name(desk.place.home, desk.place.root),
        "folder": show.homely(desk.place.root),
        "prefix": desk.prefix,
        "projects": desk.projects,
        "shown_projects": SHOWN_PROJECTS,
        "screens": desk.screens,
        "waiting": desk.waiting,
        "now": time.time,
        "said_words": SAID,
        "layer_names": show.LAYERS,
    }
    made.globals.update(known)  # pyright: ignore[reportUnknownMemberType]
    return made


SCREENS: tuple[tuple[str, str, str], ...] = (
    ("sessions", "Sessions", "s"),
    ("memories", "Memories", "m"),
    ("review", "Review", "v"),
    ("recall", "Recall", "r"),
    ("dream", "Dream", "d"),
    ("health", "Health", "h"),
    ("savings", "Savings", "a"),
)
"""The screens in the menu: address, word, key behind `g`."""
FLEET = ("fleet", "Fleet", "f")


def has_fleet(place: Project) -> bool:
    """Whether a fleet's database is named, or a plan was made here; nothing is opened."""
    from reverie.fleet.worker import FILE

    return bool(place.environ.get("REVERIE_FLEET_DATABASE")) or (place.home / FILE).exists()


# --- What keeps the lists up to date while the page is open, and tells open pages what changed.
#
# One thread looks at sizes and times, reads what has changed, and rests four times as long as that
# took, at least a second. It works beside requests, never inside one.


LEAST = 1.0
REST = 4.0


class IndexRefresher:
    """The thread that looks."""

    def __init__(self, desk: Workspace) -> None:
        self._desk = desk
        self.has_looked = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reverie-keeper", daemon=True)
        self._dreams = ""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10)

    def _run(self) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                self.look()
            except ReverieError as error:
                self._desk.said = [*self._desk.said, str(error)][-20:]
            self.has_looked.set()
            self._stop.wait(max(LEAST, REST * (time.monotonic() - began)))

    def look(self) -> None:
        """Once: sessions, memories, dreams; what changed is told."""
        desk = self._desk
        for name in self._sessions():
            desk.hub.tell(f"session-{name}")
        with desk.memory() as memories:
            if memories is None:
                return
            changed = desk.memories.refresh(memories)
            desk.due = next_dream(desk.place, memories)
            state = "".join(
                f"{one.id}{one.status}{one.phase}{one.tools}"
                for one in dreams(dreams_folder(memories))
            )
        if changed or not desk.base.fact("score"):
            with desk.memory() as memories:
                desk.memories.check(memories)
            desk.refresh_recall()
            desk.hub.tell("memories")
        if state != self._dreams:
            self._dreams = state
            desk.hub.tell("dream")

    def _sessions(self) -> list[str]:
        desk = self._desk

        def step(count: int, whole: int) -> None:
            desk.reading = (count, whole)
            if count % 10 == 0:
                desk.hub.tell("sessions")
            if self._stop.is_set():
                raise ReverieError("stopped")

        changed = desk.sessions.refresh(step)
        desk.reading = (0, 0)
        if changed:
            desk.hub.tell("sessions")
        return changed[:50]
