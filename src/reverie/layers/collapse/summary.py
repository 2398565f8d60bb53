"""A few lines on what was decided, done and left open, written by a model when lines fold.

Only where a setting names a model for summaries: it reads the lines that fold, nothing else. An
answer that is empty, too long, late or an error is dropped, and the fold is what it would have
been without. The lines say that they are a model's.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import anyio

from reverie.errors import ReverieError
from reverie.layers.collapse import words
from reverie.memory.secrets import removed
from reverie.transcript.blocks import dump, text_block
from reverie.transcript.messages import Item, Message, Piece
from reverie.transcript.records import HeadSet
from reverie.transcript.tasks import Task
from reverie.transcript.view import Trail
from reverie.wire.request import Request
from reverie.world import Notice, World

SOURCE = "fold"
TOKENS = 400  # of the answer, at most
SECONDS = 20.0  # the answer may take
HEADING = "[What was decided, done and left open, in a model's words]"


async def written(items: Sequence[Item], world: World) -> str:
    """What a model says of these lines; nothing where there is none, or it says nothing of use."""
    if world.summariser is None or world.ask is None:
        return ""
    answer = ""
    with anyio.move_on_after(SECONDS):
        try:
            model = await world.summariser()
            if not model.capabilities.free:  # the embedded one has no words for this
                answer = (await world.ask(_request(items, model.name), model)).text
        except ReverieError as error:
            world.say(Notice("collapse", f"lines fold without a summary: {error}", "warning"))
    text = words.told_apart(removed(answer)[0].strip())
    if not text or text_block(text).tokens > TOKENS * 1.5:
        return ""
    return f"{HEADING}\n{text}"


def _request(items: Sequence[Item], model: str) -> Request:
    lines = "\n".join([piece.block.get("text") for item in items for piece in item.pieces])
    text = _prompt().replace("{{tokens}}", f"{TOKENS:,}").replace("{{lines}}", lines)
    block = text_block(text)
    head = HeadSet(model, options=dump({"max_tokens": TOKENS * 2}))
    said = Message("user", (Piece(block, SOURCE, 0),), None)
    return Request(
        head, Trail[Message](), (said,), source=SOURCE, task=Task(SOURCE), tokens=block.tokens
    )


@cache
def _prompt() -> str:
    return (files("reverie.layers") / "prompts" / "fold.md").read_text("utf-8")
