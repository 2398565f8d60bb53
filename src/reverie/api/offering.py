"""The tools of a memory, for a model: searching it, and keeping a text in it.

What a model keeps is kept as an agent's word, not a person's: what reads like an instruction waits
for a person's look. What it finds is framed as memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from reverie.memory.trust import Trust
from reverie.tools.toolset import Answer, Offer, Toolset

if TYPE_CHECKING:
    from reverie.api.memory import Memory

SEARCH = "search_memory"
REMEMBER = "remember"
_SEARCHED: Mapping[str, Any] = MappingProxyType(
    {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for, in words"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 50},
        },
        "required": ["query"],
        "additionalProperties": False,
    }
)
_KEPT: Mapping[str, Any] = MappingProxyType(
    {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "The fact, with its reason, in full"},
            "name": {"type": "string", "description": "A few words to file it under"},
        },
        "required": ["text"],
        "additionalProperties": False,
    }
)


def memory_tools(memory: Memory) -> Toolset:
    """The tools of one memory."""
    return Toolset(
        [
            Offer(
                SEARCH,
                SEARCH,
                "Searches what is remembered from earlier conversations, best first, with ages.",
                _SEARCHED,
                lambda given: _found(memory, given),
            ),
            Offer(
                REMEMBER,
                REMEMBER,
                "Keeps one fact for later conversations. Not for what files or history tell.",
                _KEPT,
                lambda given: _kept(memory, given),
            ),
        ]
    )


def _found(memory: Memory, given: Mapping[str, Any]) -> Answer:
    from reverie.api import reading

    hits = memory.search(str(given["query"]), limit=int(given.get("limit") or 5))
    if not hits:
        return Answer("Nothing that is remembered fits.")
    return Answer("\n\n".join([reading.HEADING, *map(reading.note, hits)]))


def _kept(memory: Memory, given: Mapping[str, Any]) -> Answer:
    from dataclasses import replace

    from reverie.api import writing

    writer = replace(memory._writer(), trust=Trust.AGENT, tool=REMEMBER)  # pyright: ignore[reportPrivateUsage]
    saved = writing.add(writer, str(given["text"]), "", str(given.get("name") or ""), "")
    return Answer(str(saved))
