"""The recall index of one project, kept up to date beside its use.

A look searches at once where bringing the index up to date takes long, and afterwards where it
is quick: small memories are always seen as they are, large ones as they were a turn ago. The
index lies with the project's transcripts and may be deleted at any time. Its file is open while
it is used and no longer. Closed is closed: a look that comes late does not open it again.

With a model of meaning in this process, every look asks it; texts get their vectors beside looks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Container, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from reverie.errors import StoreError
from reverie.light import dataclass
from reverie.memory.recall.meaning import LocalModel, Meaning
from reverie.memory.recall.ranking import Query
from reverie.session.recall.meaning import fill, local_model, meanings
from reverie.settings import DEFAULTS, Settings
from reverie.store.project import Project
from reverie.store.recall.index import NAME, HitKind, RecallHit, RecallIndex
from reverie.world import Say, say_nothing

LOOKED = 20
"""Memories of a turn that are looked at closely."""
QUICK = 0.01
"""Seconds that bringing the index up to date may take in front of a search."""


@dataclass(frozen=True, slots=True)
class Looked:
    """How many memories there are, and those that fit best."""

    considered: int
    hits: tuple[RecallHit, ...] = ()


class MemoryIndex:
    """The index over one memory folder and the transcripts of its project."""

    def __init__(
        self,
        folder: Path,
        transcripts: Path,
        *,
        settings: Settings = DEFAULTS,
        say: Say = say_nothing,
        now: Callable[[], float] = time.monotonic,
        model: Callable[[], LocalModel | None] | None = None,
    ) -> None:
        self.folder = folder
        self.transcripts = transcripts
        self._header_lines = settings.recall_header_lines
        self._say = say
        self._now = now
        self._model = model or partial(local_model, settings, say)
        self._index: RecallIndex | None = None
        self._closed = False
        self._users = 0
        self._looking = False  # a look has begun that `settle` ends
        self._opening = threading.Lock()
        self._took: float | None = None
        self._seen = 0

    @classmethod
    def of(cls, project: Project, *, say: Say = say_nothing) -> MemoryIndex:
        """Return the index of a project's memory; nothing is made."""
        kept = project.sessions_folder
        return cls(project.memory_folder, kept, settings=project.settings, say=say)

    @contextmanager
    def opened(self) -> Generator[RecallIndex]:
        """The index, open for as long as anybody uses it."""
        index = self._taken()
        try:
            yield index
        finally:
            self._given_back()

    def _taken(self) -> RecallIndex:
        path = self.transcripts / NAME
        with self._opening:
            if self._closed:
                raise StoreError("the recall index is closed", where=str(path))
            if self._index is None:
                lines = self._header_lines
                self._index = RecallIndex.open(path, say=self._say, header_lines=lines)
            self._users += 1
            return self._index

    def _given_back(self) -> None:
        with self._opening:
            self._users -= 1
            self._rest()

    def _rest(self) -> None:
        if self._index is not None and not self._users and not self._looking:
            self._index.close()
            self._index = None

    def close(self) -> None:
        with self._opening:
            if self._index is not None:
                self._index.close()
            self._index, self._closed = None, True

    def refresh(self) -> None:
        """Bring the index up to date with the memory folder."""
        start = self._now()
        with self.opened() as index:
            done = index.refresh(self.folder)
        self._took = self._now() - start
        self._seen = done.seen

    def look(self, text: str, now: float, without: Container[str] = ()) -> Looked:
        """The memories that fit a text, best first; the file stays open until `settle`."""
        self._looking = True
        with self.opened() as index:
            if not self._is_slow:
                self.refresh()
            model = self._model()
            meant = meanings(model, text, now) if model is not None else []
            begun = index.begun
            hits = index.about(text, now, k=LOOKED, exclude=without, meanings=meant)
            if index.begun != begun:  # it was deleted, and is empty
                self.refresh()
                hits = index.about(text, now, k=LOOKED, exclude=without, meanings=meant)
        return Looked(self._seen, tuple(hits))

    def alone(self, at: float) -> bool:
        """Whether at most one memory's file is of this time, and not many of a checkout or copy."""
        try:
            with self.opened() as index:
                return index.alone(at)
        except StoreError:  # it was closed meanwhile: nobody knows
            return False

    @property
    def _is_slow(self) -> bool:
        """Whether a refresh takes too long to do in front of a look."""
        return self._took is not None and self._took > QUICK

    def settle(self) -> None:
        """Beside a look: what is too slow to do in front of it."""
        with self.opened() as index:
            self._looking = False
            if self._took is None or self._took > QUICK:
                self.refresh()
            model = self._model()
            if model is not None:
                fill(index, model)

    def search(
        self,
        text: str,
        now: float,
        *,
        k: int,
        kinds: Sequence[HitKind] = ("memory",),
        without: Container[str] = (),
        meaning: Meaning | None = None,
        beside: bool = False,
    ) -> list[RecallHit]:
        """A search that somebody asked for: everything is brought up to date first. With `beside`
        somebody else does that where it is too slow to do in front of a search."""
        with self.opened() as index:
            if "memory" in kinds and not (beside and self._is_slow):
                self.refresh()
            if "transcript" in kinds:
                index.refresh_transcripts(self.transcripts)
            model = self._model() if meaning is None else None
            if model is not None:
                fill(index, model, kinds)
                (vector,) = model.encode([text])
                meaning = Meaning(model.name, vector)
            query, begun = Query.of(text, now), index.begun
            hits = index.search(query, k=k, kinds=kinds, exclude=without, meaning=meaning)
            if index.begun != begun:  # it was deleted, and is empty
                self.refresh()
                hits = index.search(query, k=k, kinds=kinds, exclude=without, meaning=meaning)
            return hits
