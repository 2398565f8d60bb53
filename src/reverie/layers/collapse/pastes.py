"""Pastes that a live tail cannot hold are cut before they are first sent.

A user's message is shown whole as it arrives, and until it is sealed. Only where what they
just said is larger than the tail may be do its longest texts give way to their two ends and
their names; a reference reads them back. That happens before any request has carried them, so
no sent byte changes.
"""

from __future__ import annotations

from collections.abc import Sequence

from reverie.layers.collapse import words
from reverie.transcript.blocks import Block, text_block
from reverie.transcript.messages import Item
from reverie.transcript.names import reference
from reverie.transcript.records import Record, Replaced, Stand
from reverie.transcript.view import View
from reverie.world import World

PASTED = "paste"


def cut(view: View, world: World) -> Sequence[Record]:
    """The unsent messages of the user's whose longest texts have to be cut. A list that is only
    fitted is its caller's: there a message too long for the window is refused, not cut."""
    if not world.way_back.files:
        return ()
    new = [i for i in view.unsent() if i.kind == "message" and i.role == "user" and not i.results]
    excess = sum([i.tokens for i in new]) - world.scaled.collapse_tail
    if excess <= 0:
        return ()
    sizes = sorted([(p.block.tokens, i.id, p.index) for i in new for p in i.pieces], reverse=True)
    gone: set[tuple[str, int]] = set()
    for size, ident, index in sizes:
        if excess <= 0 or size <= words.PASTE:
            break
        gone.add((ident, index))
        excess -= size
    named = {ident for ident, _ in gone}
    return [_record(i, gone, world) for i in new if i.id in named]


def _record(item: Item, gone: set[tuple[str, int]], world: World) -> Replaced:
    blocks = [
        _shortened(p.block, item.id, world) if (item.id, p.index) in gone else p.block
        for p in item.pieces
    ]
    why = f"the message had {item.tokens:,} tokens"
    by = (Stand("user", tuple(blocks)),)
    return Replaced(item.id, item.id, by, PASTED, seals=False, why=why)


def _shortened(block: Block, ident: str, world: World) -> Block:
    text, ref = block.get("text"), reference(ident)
    if not text:
        return block
    told = f"[This is a part. {world.way_back.tool} with the reference {ref} gives all of it.]"
    return text_block(f"{words.pasted(text)}\n{told}")
