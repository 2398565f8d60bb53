"""Context collapse: an append-only log of sealed lines, and a short live tail.

Instead of letting the context grow to the window and summarising it, old rounds are sealed:
each call becomes a line that says what was asked, how it ended and by which reference the
whole can be read back; the user's words stay as they were said, the assistant's answers up
to a limit. No model is called; the transcript keeps it all. Sealed bytes do not change, a
long-lived mark stands behind them, and a seal writes only its new lines and the kept end of
the tail. What the lines are is said at their head, in bytes that never leave. When lines pass
their budget the older ones fold (`folding`).

When to seal is a calculation (`price`). Where the tail holds thinking, and the provider binds
it to what precedes it, a seal waits for the end of a turn, or for the tail's limit; thinking
that is kept is stripped in the same record.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from reverie.layers.collapse import pastes
from reverie.layers.collapse.folding import FOLDED, SEALED, fold_lines, folded, framed
from reverie.layers.collapse.lines import seal_lines
from reverie.layers.collapse.price import is_due, kept_tokens, priced
from reverie.transcript.blocks import text_block
from reverie.transcript.messages import Item
from reverie.transcript.records import Record, Replaced, Stand
from reverie.transcript.view import STANDING, View
from reverie.world import WayBack, World

__all__ = ["FOLDED", "INTRO", "NAME", "SEALED", "explanation", "priced", "seal", "seal_lines"]

NAME = "collapse"
INTRO = (
    "[Earlier rounds of this conversation, sealed: shortened by the program, nothing is lost. "
    "<user> is what the user said, word for word; <assistant> an answer of yours, - what you said "
    "beside a call; > a tool call of yours with its reference, under it = how it ended, ! an "
    "error, then names from it. "
)
REST = (
    " Use it before you rely on what a line leaves out. Behind the last [end] the conversation "
    "goes on as it is.]"
)


def explanation(way_back: WayBack) -> str:
    """What the lines are, and how what they leave out is read back."""
    return INTRO + way_back.named() + REST


async def seal(view: View, world: World) -> Sequence[Record]:
    """Seal old rounds where it pays; fold old lines where they are many."""
    settings, limit = world.scaled, world.scaled.collapse_tail
    # a message whose calls still wait is not touched; a fork goes on with its parent's bytes
    if settings.context_policy != "collapse" or view.open_calls or view.is_fork:
        return ()
    if found := pastes.cut(view, world):
        return found
    price = priced(view, world, settings)
    if not (is_due(view, world, price, limit) and world.collapses):
        return ()
    first = view.live
    kept = _kept_from(view, kept_tokens(settings))
    # what already stands for others (a snip's mark, a summary) stays where it is
    old = list(takewhile(_is_live, view.items[first:kept]))
    text = seal_lines(settings, old, view.items.since(first + len(old)))
    if not text:
        return ()
    intro = text_block(explanation(world.way_back))
    head = _explanation(view)
    lines = text_block(framed(view, old, text, "sealed"))
    record = Replaced(
        old[0].id,
        old[-1].id,
        (Stand("user", (lines,) if head else (intro, lines)),),
        SEALED,
        strips=world.unbound(view.items.since(kept)),
        why=price.told(limit),
    )
    gone = fold_lines(view, settings, lines.tokens)
    if not gone:
        return (record,)
    told = await _summary(gone, world)
    fold = folded(view, gone, intro if head in [i.id for i in gone] else None, settings, told)
    return (record, fold) if fold is not None else (record,)


async def _summary(gone: Sequence[Item], world: World) -> str:
    if world.summariser is None:
        return ""
    from reverie.layers.collapse import summary  # only where a model is asked

    return await summary.written(gone, world)


def _is_live(item: Item) -> bool:
    return item.kind not in STANDING


def _explanation(view: View) -> str:
    """The item that says what the lines are, or nothing where none does."""
    for item in view.items[: view.live]:
        if item.reason in (SEALED, FOLDED) and item.pieces[0].block.get("text").startswith(INTRO):
            return item.id
    return ""


def _kept_from(view: View, budget: int) -> int:
    """The first item that stays live: whole rounds, and always the newest message."""
    items, first, size = view.items.since(0), view.live, 0
    at = len(items)
    while at > first and size + items[at - 1].tokens <= budget:
        at -= 1
        size += items[at].tokens
    while at < len(items) and items[at].role != "assistant":
        at += 1
    if at < len(items):
        return at
    at = len(items) - 1
    while at > first and items[at - 1].role == "user" and not items[at - 1].results:
        at -= 1
    if items[at].results:
        while at > first and items[at].role != "assistant":
            at -= 1
    return at
