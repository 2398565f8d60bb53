"""Snip: the model takes messages it no longer needs out of its own context.

Messages have no numbers that a model sees, so it names the first and the last by words in them;
words that fit none, or several, are refused with what they fit. The range is widened to whole
rounds and leaves a marker; the transcript keeps everything, and calls in it can be read back. It
takes effect before the next request, and what follows it is written to the cache anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from reverie.errors import InvalidInput
from reverie.layers.snip import snip
from reverie.tools.tool import Input, Output, Tool, ToolContext
from reverie.transcript.messages import Item
from reverie.transcript.records import Record
from reverie.transcript.view import View
from reverie.world import World

NAME = "Snip"
SHORTEST = 8  # signs that name a message
SHOWN = 60


class Snipping(Protocol):
    """A session, as far as this tool sees it."""

    view: View
    world: World

    def hand(self, *records: Record) -> None: ...


def snip_tool(session: Callable[[], Snipping]) -> Tool:
    """The tool over one session's own context."""

    async def action(value: Input, context: ToolContext) -> Output:
        del context
        here = session()
        first = _named(here.view, str(value["first"]))
        last = _named(here.view, str(value.get("last") or value["first"]))
        record = snip(here.view, first.id, last.id, here.world)
        here.hand(record)
        return Output(f"{record.why}: gone from the context before the next request")

    return Tool(
        NAME,
        "Takes a stretch of the conversation out of your context, for good: long results and "
        "dead ends that nobody needs any more. Name the first and the last message by words in "
        "them. Calls in it can still be read back. Everything behind it is sent anew, which "
        "costs: use it for much, early, and rarely.",
        {
            "type": "object",
            "properties": {
                "first": {"type": "string", "description": "Words of the first message to go"},
                "last": {"type": "string", "description": "Words of the last one; else the same"},
            },
            "required": ["first"],
            "additionalProperties": False,
        },
        action,
    )


def _named(view: View, words: str) -> Item:
    """The one message that holds these words."""
    wanted = " ".join(words.split())
    if len(wanted) < SHORTEST:
        raise InvalidInput(f"{SHORTEST} signs at least name a message", where=wanted)
    open_calls = set(view.open_calls)
    live = [
        item
        for item in view.items
        if item.kind != "head" and not open_calls.intersection(item.calls)
    ]
    found = [item for item in live if wanted in _words(item)]
    if len(found) != 1:
        raise InvalidInput(
            f"{len(found)} messages hold these words" if found else "No message holds these words",
            where=wanted[:SHOWN],
            do="Name it by other words of it" + (f": {_shown(found)}" if found else ""),
        )
    return found[0]


def _words(item: Item) -> str:
    return " ".join(" ".join(piece.block.text.split()) for piece in item.pieces)


def _shown(items: Sequence[Item]) -> str:
    return "; ".join(f"{item.role}: {_words(item)[:SHOWN]}…" for item in items[:5])
