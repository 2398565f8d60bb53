"""What recall finds for some words, how well and why: the rows behind every door.

Results come best first, also those that would not be injected unasked. With `root` each says how
what it names stands in the repository now. Looking makes nothing but the index, which can be
deleted at any time.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

from reverie.errors import NotFound, ProviderError, StoreError
from reverie.memory.claims import claims
from reverie.memory.format.entry import TopicFile
from reverie.memory.recall.meaning import Meaning
from reverie.session.recall.checked import CheckedClaim, Repository
from reverie.session.recall.index import MemoryIndex
from reverie.session.recall.meaning import embeddings_by, meaning
from reverie.settings import environment
from reverie.store.history import History
from reverie.store.memories import history_folder, memory_folder
from reverie.store.memory import MemoryFolder
from reverie.store.recall.index import RecallHit
from reverie.store.written import FileTimes
from reverie.text.format import days_since
from reverie.upkeep.place import ProjectPlace
from reverie.world import Notice, Say


@contextlib.contextmanager
def recall_place(
    place: ProjectPlace, say: Say
) -> Generator[tuple[MemoryIndex, MemoryFolder | None] | None]:
    """The project's index and memory; None where there is nothing to search."""
    settings = place.loaded().settings
    folder = memory_folder(place.home, place.root, settings)
    index = MemoryIndex.of(
        place.home, place.root, place.environ, folder, settings=settings, say=say
    )
    if not folder.is_dir() and not index.transcripts.is_dir():
        yield None
        return
    memory = MemoryFolder(folder, create=False, say=say) if folder.is_dir() else None
    try:
        yield index, memory
    finally:
        index.close()
        if memory is not None:
            memory.close()


def recall_rows(
    place: ProjectPlace, text: str, now: float, k: int, say: Say, root: Path | None = None
) -> list[dict[str, Any]]:
    """What is found, for JSON; with `root`, why, and checked against the repository there."""
    with recall_place(place, say) as found:
        if found is None:
            return []
        meant = _meaning(place, found[0], text, say)
        hits = found[0].search(text, now, k=k, meaning=meant)
        return _rows(hits, found, now, place, root)


class OpenRecall:
    """Recall kept open for many questions: what is slow to bring up to date is brought so beside
    them, by `settle`. One thread at a time."""

    def __init__(self, place: ProjectPlace, say: Say) -> None:
        self._place = place
        self._say = say
        self._found: tuple[MemoryIndex, MemoryFolder | None] | None = None
        self._history: History | None = None
        self._opened = contextlib.ExitStack()

    def rows(self, text: str, now: float, k: int) -> list[dict[str, Any]]:
        """What `recall_rows` gives, checked against the repository."""
        found = self._open()
        if found is None:
            return []
        meant = _meaning(self._place, found[0], text, self._say)
        hits = found[0].search(text, now, k=k, meaning=meant, beside=True)
        return _rows(hits, found, now, self._place, self._place.root, self._read_history())

    def settle(self) -> None:
        """Bring the index up to date, where anybody has asked yet."""
        if self._found is not None:
            self._found[0].refresh()

    def close(self) -> None:
        self._opened.close()
        self._found = None
        self._close_history()

    def _close_history(self) -> None:
        if self._history is not None:
            self._history.close()
            self._history = None

    def _read_history(self) -> History | None:
        """The history, which reads on from where it was; another one where its folder is."""
        if self._history is not None:
            try:
                self._history.files.must_be_there()
            except NotFound:
                self._close_history()
        if self._history is None:
            self._history = _history_of(self._place)
        return self._history

    def _open(self) -> tuple[MemoryIndex, MemoryFolder | None] | None:
        if self._found is None or self._found[1] is None:  # no memory so far
            self.close()
            self._found = self._opened.enter_context(recall_place(self._place, self._say))
            if self._found is not None:
                self._opened.enter_context(self._found[0].opened())
        return self._found


def _rows(
    hits: Sequence[RecallHit],
    found: tuple[MemoryIndex, MemoryFolder | None],
    now: float,
    place: ProjectPlace,
    root: Path | None,
    history: History | None = None,
) -> list[dict[str, Any]]:
    index, memory = found
    known = dated(hits, index, memory, now, place, history)
    return [_row(hit, index, memory, now, root) for hit in known]


def dated(
    hits: Sequence[RecallHit],
    index: MemoryIndex,
    memory: MemoryFolder | None,
    now: float,
    place: ProjectPlace,
    history: History | None = None,
) -> list[RecallHit]:
    """The memories found, each with the time it was written instead of that of its file; from a
    history that is open, or the place's own."""
    if memory is None:
        return list(hits)
    with contextlib.ExitStack() as stack:
        opened = stack.enter_context(index.opened())
        if history is None and (history := _history_of(place)) is not None:
            stack.callback(history.close)
        times = FileTimes(memory, now, history, opened.alone)
        return [replace(hit, saved=times.at(hit.file)) for hit in hits]


def _history_of(place: ProjectPlace) -> History | None:
    """The history of the place's memory, to be read; None where there is none."""
    kept = history_folder(place.home, place.root, place.environ)
    return History(kept, now=time.time, create=False) if kept.is_dir() else None


def _meaning(place: ProjectPlace, index: MemoryIndex, text: str, say: Say) -> Meaning | None:
    """What the query means to the model of the setting; None where none is named, or, which is
    said, where it gives no answer."""
    model = embeddings_by(place.loaded().settings, place.environ)
    if model is None:
        return None
    index.refresh()

    async def asked() -> Meaning:
        try:
            with index.opened() as opened:
                return await meaning(opened, model, text)
        finally:
            await model.aclose()

    try:
        return anyio.run(asked)
    except ProviderError as error:
        say(Notice("recall", f"Searched by words only: {error}", "warning"))
        return None


def _row(
    hit: RecallHit, index: MemoryIndex, memory: MemoryFolder | None, now: float, root: Path | None
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "file": hit.file,
        "score": round(hit.score, 4),
        "clear": hit.clear,
        "type": hit.type,
        "name": hit.name,
        "description": hit.description,
        "saved": hit.saved,
        "days": days_since(hit.saved, now) if hit.saved else None,
        "line": hit.line,
        "passage": hit.passage,
        "path": str(index.folder / hit.file),
    }
    if root is not None:
        row["why"] = {name: round(value, 4) for name, value in hit.why}
        row["checked"] = [_checked(c) for c in _claims(hit, memory, root)]
    return row


def _claims(hit: RecallHit, memory: MemoryFolder | None, root: Path) -> tuple[CheckedClaim, ...]:
    try:
        text = memory.read(hit.file).text if memory is not None else ""
    except (NotFound, StoreError):
        return ()
    path = environment().get("PATH", "")
    also = None if memory is None else memory.root
    return Repository(root, path=path, also=also).check(claims(text))


def _checked(found: CheckedClaim) -> dict[str, Any]:
    claim = found.claim
    value = {"kind": claim.kind, "text": claim.text, "line": claim.line}
    return {**value, "status": found.status, "where": found.where, "why": found.why}


def entry_of(memory: MemoryFolder | None, key: str) -> TopicFile:
    """A memory that was found."""
    if memory is None:
        raise NotFound("There is no memory in this project", where=key)
    return memory.read(key)
