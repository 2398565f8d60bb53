"""Which messages a compaction replaces: all, those from a message on, or those before one.

A range is whole rounds, so no call stands without its result. What the user said last and
nobody has answered yet always stays as it is, and so does what a background agent was told
to do. A range that names nothing is refused with what to do. Pure.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from reverie.errors import InvalidInput, NotFound
from reverie.light import dataclass
from reverie.transcript.messages import Item
from reverie.transcript.moves import widened
from reverie.transcript.records import UserMessage
from reverie.transcript.view import View

Side: TypeAlias = Literal["from", "up_to"]
QUOTED = 300  # characters of the message that a part begins or ends with
INSTRUCTION = "instruction"
"""The origin of what a background agent is told to do."""
NOTHING = "There is nothing to compact yet"


@dataclass(frozen=True, slots=True)
class ReplacedSpan:
    """Items of a view that are to be replaced, and what that is called."""

    first: int
    last: int
    gone: tuple[Item, ...]
    side: Side | Literal["all"]
    scope: str  # for the summariser
    where: str  # for whoever reads the summary

    @property
    def tokens(self) -> int:
        return sum(item.tokens for item in self.gone)


def whole(view: View) -> ReplacedSpan:
    """Everything, but for what the user said last."""
    first, end = _start(view), _unanswered(view)
    if first >= end:
        raise InvalidInput(NOTHING, where=view.session)
    scope = "The summary stands for the whole conversation."
    if end < len(view.items):
        scope = (
            "The summary stands for the whole conversation but for the user's last message, "
            "which stays as it is behind it: do not answer it, do not list it."
        )
    where = "The conversation up to here was compacted."
    return _span(view, first, end - 1, "all", scope, where)


def part(view: View, side: Side, pivot: str) -> ReplacedSpan:
    """The messages from `pivot` on, or those before it."""
    at = next((n for n, item in enumerate(view.items) if item.holds(pivot)), None)
    if at is None or view.items[at].kind == "head":
        raise NotFound(
            "there is no such message in the conversation",
            where=pivot[:80],
            do="/compact --from without an id lists the messages there are",
        )
    if side == "from":
        return _from(view, at)
    first, last = _start(view), at - 1
    if last < first:
        raise InvalidInput("there is nothing before this message", where=pivot[:80])
    quote = _quoted(view.items[at])
    scope = (
        "The summary stands only for the part of the conversation before the message that "
        f"begins as follows; that message and all behind it stay as they are:\n{quote}"
    )
    where = "The beginning of the conversation, up to here, was compacted."
    return _span(view, first, last, "up_to", scope, where)


def _from(view: View, at: int) -> ReplacedSpan:
    end = max(at + 1, _unanswered(view))
    quote = _quoted(view.items[at])
    scope = (
        "The summary stands only for the end of the conversation, from the message on that "
        f"begins as follows; everything before it stays as it is, so do not repeat it:\n{quote}"
    )
    where = "The conversation from here on was compacted; what stands before is as it was."
    return _span(view, at, end - 1, "from", scope, where)


def _span(
    view: View, first: int, last: int, side: Side | Literal["all"], scope: str, where: str
) -> ReplacedSpan:
    items = view.items
    bounds = widened(view, items[first].id, items[last].id)
    if bounds is None:
        raise InvalidInput(
            "this part cannot be compacted",
            where=items[first].id,
            do="Name a message whose calls have their results",
        )
    start, end = bounds
    return ReplacedSpan(
        start, end, tuple(items.since(start)[: end - start + 1]), side, scope, where
    )


def _start(view: View) -> int:
    """The first item that is neither the head nor what an agent was told to do."""
    stays = (i.kind == "head" or instructs(view, i) for i in view.items)
    return next((n for n, kept in enumerate(stays) if not kept), len(view.items))


def instructs(view: View, item: Item) -> bool:
    """Whether an item is what a background agent was told to do: no summary stands for it."""
    entry = view.entries.find(item.id)
    record = entry.record if entry else None
    return isinstance(record, UserMessage) and record.origin == INSTRUCTION


def _unanswered(view: View) -> int:
    """The first item of what the user said and nobody answered; the end where there is none.
    Results are no words of theirs: the summary takes them in with their calls."""
    at = len(view.items)
    while at and _said(view.items[at - 1]):
        at -= 1
    asked = any(item.kind == "message" for item in view.items.since(at))
    return at if asked else len(view.items)


def _said(item: Item) -> bool:
    return item.role == "user" and item.kind != "replaced" and not item.results


def _quoted(item: Item) -> str:
    """The beginning of a message, so that the summariser finds it."""
    text = " ".join(" ".join(p.block.text for p in item.pieces).split())
    kinds = ", ".join(dict.fromkeys(p.block.type for p in item.pieces))
    return f"> {item.role}: {text[:QUOTED] or f'({kinds})'}"
