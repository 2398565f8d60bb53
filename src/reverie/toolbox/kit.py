"""The tools every agent has; Snip.

The tools every agent has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from reverie.errors import InvalidInput
from reverie.layers.microcompaction import snip_range
from reverie.toolbox.files import EDIT, READ, WRITE
from reverie.toolbox.read_back import READ_BACK
from reverie.toolbox.search import GLOB, GREP, LIST
from reverie.toolbox.shell import BASH, BASH_OUTPUT, KILL_SHELL
from reverie.toolbox.tool import Input, Registry, Tool, ToolContext, ToolOutput
from reverie.transcript.messages import Item
from reverie.transcript.records import Record
from reverie.transcript.view import View
from reverie.world import World

STANDARD: tuple[Tool, ...] = (
    READ,
    WRITE,
    EDIT,
    BASH,
    BASH_OUTPUT,
    KILL_SHELL,
    GREP,
    GLOB,
    LIST,
    READ_BACK,
)
"""The tools every agent has, in the order they are sent."""


def standard() -> Registry:
    """A registry with the standard tools; add others behind them."""
    return Registry(STANDARD)


# --- Snip: the model takes messages it no longer needs out of its own context.
#
# Messages have no numbers that a model sees, so it names the first and the last by words in them;
# words that fit none, or several, are refused with what they fit. The range is widened to whole
# rounds and leaves a marker; the transcript keeps everything, and calls in it can be read back. It
# takes effect before the next request, and what follows it is written to the cache anew.


NAME = "Snip"
SHORTEST = 8  # signs that name a message
SHOWN = 60


class SnipTarget(Protocol):
    """A session, as far as this tool sees it."""

    view: View
    world: World

    def hand(self, *records: Record) -> None: ...


def snip_tool(session: Callable[[], SnipTarget]) -> Tool:
    """The tool over one session's own context."""

    async def action(value: Input, context: ToolContext) -> ToolOutput:
        del context
        here = session()
        first = _find_message(here.view, str(value["first"]))
        last = _find_message(here.view, str(value.get("last") or value["first"]))
        record = snip_range(here.view, first.id, last.id, here.world)
        here.hand(record)
        return ToolOutput(f"{record.why}: gone from the context before the next request")

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


def _find_message(view: View, words: str) -> Item:
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
            do="Name it by other words of it" + (f": {_format_items(found)}" if found else ""),
        )
    return found[0]


def _words(item: Item) -> str:
    return " ".join(" ".join(piece.block.text.split()) for piece in item.pieces)


def _format_items(items: Sequence[Item]) -> str:
    return "; ".join(f"{item.role}: {_words(item)[:SHOWN]}…" for item in items[:5])
