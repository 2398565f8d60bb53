"""History snip: a range of messages leaves the projection; the transcript keeps it.

`snip` is a pure choice: it names the first and the last message of a range and gives the
record that takes it out, with a marker in its place. The range is widened to whole
rounds, so a call never stands without its result; a round that still waits for results,
and what stands in front of the conversation, are left alone. Calls in it can still be
read back by their reference. Nothing is summarised and no model is called.
"""

from __future__ import annotations

from reverie.errors import InvalidInput, NotFound
from reverie.text.format import plural
from reverie.transcript.blocks import text_block
from reverie.transcript.messages import Item
from reverie.transcript.moves import widened
from reverie.transcript.names import reference
from reverie.transcript.records import Replaced, Stand
from reverie.transcript.view import View
from reverie.world import World

SNIPPED = "snip"
NAMED = 20  # references that the marker names


def snip(view: View, first: str, last: str, world: World) -> Replaced:
    """The record that drops the messages from `first` to `last`."""
    if not world.flags.get("history_snip"):
        raise InvalidInput("snipping is switched off", where="history_snip")
    for ident in (first, last):
        if not any(item.holds(ident) for item in view.items):
            raise NotFound("no such message in the conversation", where=ident)
    bounds = widened(view, first, last)
    if bounds is None:
        raise InvalidInput(
            "this range cannot be snipped",
            where=f"{first} to {last}",
            do="Name messages of the conversation whose calls have their results",
        )
    start, end = bounds
    gone = view.items.since(start)[: end - start + 1]
    return Replaced(
        gone[0].id,
        gone[-1].id,
        (Stand("user", (text_block(_marker(gone)),)),),
        SNIPPED,
        seals=False,
        strips=world.unbound(view.items.since(end + 1)),
        why=f"{plural(len(gone), 'message')}, as asked",
    )


def _marker(gone: list[Item]) -> str:
    refs = [reference(call) for item in gone for call in item.calls]
    named = " ".join(refs[:NAMED]) + (" …" if len(refs) > NAMED else "")
    calls = f" Its calls can be read back: {named}" if refs else ""
    plural = "s" if len(gone) > 1 else ""
    return f"[{len(gone)} message{plural} snipped here.{calls}]"
