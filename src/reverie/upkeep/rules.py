"""Rules at the doors: which a call would break, and what one may do at the user's word."""

from __future__ import annotations

import os
from pathlib import Path

from reverie.errors import InvalidInput
from reverie.memory.rules import reading
from reverie.memory.rules.match import LEVELS, OFF, REMIND, CompiledRule
from reverie.memory.versions import Origin
from reverie.store.memories import Memories
from reverie.store.rules import RuleStore


def matches(
    memories: Memories, root: Path, cwd: Path, tool: str, given: object
) -> list[CompiledRule]:
    """The rules that a call would break, were it made now."""
    book = RuleStore(memories, root).book()
    return book.look(
        tool,
        given,
        cwd=os.path.realpath(cwd),
        root=os.path.realpath(root),
        user=os.path.expanduser("~"),
        resolve=os.path.realpath,
    )


def set_level(memories: Memories, name: str, level: str, origin: Origin) -> str:
    """Let a rule do more or less, at the user's word; gives its file."""
    if level not in LEVELS:
        do = f"It is {', '.join(LEVELS)}"
        raise InvalidInput("There is no such level", where=level[:80], do=do)
    one = memories.find(name)
    data = one.with_value(level, reading.LEVEL).data
    if data == one.data:  # somebody else wrote it there: now it is the user's word
        again = one.with_value(OFF if level != OFF else REMIND, reading.LEVEL).data
        memories.save(one.key, again, origin, reviewed=True)
    memories.save(one.key, data, origin, reviewed=True)
    return one.key
