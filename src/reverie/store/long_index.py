"""Indexes too long to be read for each save: known, and added to at their end.

An index is known as long as it has the size, time and inode that it was left with. One that
others changed is compared with its history and read once more, and known from then on.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace

from reverie.store import memory_access
from reverie.store.files import Changed
from reverie.store.history import History, landed_line
from reverie.store.history_cache import ALIKE, KnownPointer
from reverie.topics.versions import FileStamp, encode, encode_seen

_TRIES = 20


class LongIndexes:
    """The indexes of the folder that a history is bound to; asked under the folder's lock."""

    def __init__(self, history: History) -> None:
        self._history = history

    def known_pointer(self, index: str, name: str) -> KnownPointer:
        """The lines of an index that point to a file."""
        self._know(index)
        return self._history.heads.pointer(index, name)

    def known_like(self, index: str, about: str) -> list[str]:
        """The files whose hooks begin like a text."""
        self._know(index)
        return self._history.heads.like(index, about[:ALIKE])

    def twin_of(self, key: str) -> str:
        """Another file whose name some file system would take for this one, or nothing."""
        return self._history.heads.twin_of(key)

    def grow(self, index: str, line: bytes) -> int:
        """Add a line to the end of an index; how many lines it has now. One that somebody
        without our lock changes meanwhile is looked at again."""
        for _ in range(_TRIES):
            with contextlib.suppress(Changed):
                return self._grow(index, line, self._know(index))
        raise Changed("The index changes again and again", where=index, do="Try again")

    def _grow(self, index: str, line: bytes, seen: FileStamp) -> int:
        history = self._history
        step = history.version(index, "", "")
        step = replace(step, added=line.decode(), size=seen.size, was=seen.modified)
        history.append([encode(step)], durable=True)
        end = memory_access.add(history.bound().files, index, line, seen)
        history.append([landed_line(step), encode_seen(end)])
        known = history.heads.index(index)
        return known.lines if known else 0

    def _know(self, index: str) -> FileStamp:
        """How a known index looks; it is made known where it is not."""
        history = self._history
        files = history.bound().files
        history.heads.refresh()
        history.settle(history.heads, [index])
        known = history.heads.index(index)
        seen = memory_access.observe_file(files, index)
        if known is None or known.seen != seen:
            history.look(keys=[index])
            seen = memory_access.observe_file(files, index)
            history.append([encode_seen(seen)])
            history.heads.learn(seen, files.read(index))
        return seen
