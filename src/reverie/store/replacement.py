"""A newer rule in place of an older one: marked, never removed.

The older keeps its file, with the newer one's name in its frontmatter and in its line of the index;
sessions, recall and rules on calls leave it out. Both stand in the history, and a person may have
the older hold again. Which rule replaces which is decided in `topics/supersession`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reverie.errors import NotFound, StoreError
from reverie.store.fs import digest
from reverie.store.history_cache import ALIKE
from reverie.topics import entry as entries
from reverie.topics.entry import TopicFile
from reverie.topics.index import SUPERSEDED
from reverie.topics.supersession import subject_words, supersedes

if TYPE_CHECKING:
    from reverie.store.memory_store import MemoryStore, SaveOutcome
    from reverie.topics.versions import Origin

RIVALS = 50
"""Memories that are read to see whether a newer rule supersedes them."""


def supersede(memories: MemoryStore, newer: TopicFile, origin: Origin) -> None:
    """Mark the older rules that a newer one takes the place of, as part of the step that saves it.
    What rests on a better word than the newer stays."""
    words = subject_words(newer)
    if not words or newer.front.get(entries.SUPERSEDED) or newer.key.startswith(f"{entries.TEAM}/"):
        return
    for key in _rivals(memories, newer, words):
        try:
            older = memories.folder.read(key)
        except (NotFound, StoreError):
            continue
        decided = older.front.get(entries.SUPERSEDED)
        if decided or not supersedes(newer, older) or memories.trust(key) > origin.trust:
            continue
        marked = older.with_value(newer.key, entries.SUPERSEDED)
        hook = f"{SUPERSEDED}{newer.key}"
        memories.folder.save(key, marked.data, hook=hook, expect=digest(older.data))


def _rivals(memories: MemoryStore, newer: TopicFile, words: frozenset[str]) -> list[str]:
    """The memories whose lines of the index have words of a rule's subject; of a long index those
    that begin like the newer."""
    folder = memories.folder
    if folder.is_long(entries.INDEX):
        found = memories.indexes.known_like(entries.INDEX, newer.description[:ALIKE])
    else:
        lines = ((one.key, f"{one.title} {one.hook}".lower()) for one in folder.index().pointers)
        found = [key for key, line in lines if any(word in line for word in words)]
    return [key for key in found if key and key != newer.key][-RIVALS:]


def list_superseded(memories: MemoryStore) -> list[TopicFile]:
    """The memories in whose place newer rules hold, by their files' names."""
    found = (one.key for one in memories.folder.scan() if one.superseded)
    return [memories.folder.read(key) for key in sorted(found)]


def restore(memories: MemoryStore, name: str, origin: Origin) -> SaveOutcome:
    """Have a superseded memory hold again, with the newer one; no later rule marks it by itself."""
    older = memories.find(name)
    if not older.superseded:
        raise NotFound(
            "No newer rule superseded this memory",
            where=older.key,
            do="`reverie memory review list` shows those that were",
        )
    again = older.with_value(entries.STILL_CURRENT, entries.SUPERSEDED)
    return memories.save(older.key, again.data, origin, expect=digest(older.data))
