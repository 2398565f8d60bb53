"""Which messages are replaced, and the shortened conversation.

Which messages a compaction replaces: all, those from a message on, or those before one.

A range is whole rounds, so no call stands without its result. What the user said last and
nobody has answered yet always stays as it is, and so does what a background agent was told
to do. A range that names nothing is refused with what to do. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import Literal, TypeAlias

from reverie.errors import InvalidInput, NotFound
from reverie.light import dataclass
from reverie.transcript.blocks import MEDIA, Block, Json, block_of, text_block
from reverie.transcript.messages import Item, Message, SentBlock, message
from reverie.transcript.records import UserMessage
from reverie.transcript.rewrites import widen_range
from reverie.transcript.tasks import Task
from reverie.transcript.view import STANDING, Trail, View
from reverie.wire.request import NO_HEAD, Request

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
    first, end = _start(view), _first_unanswered(view)
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
    quote = _quote_message(view.items[at])
    scope = (
        "The summary stands only for the part of the conversation before the message that "
        f"begins as follows; that message and all behind it stay as they are:\n{quote}"
    )
    where = "The beginning of the conversation, up to here, was compacted."
    return _span(view, first, last, "up_to", scope, where)


def _from(view: View, at: int) -> ReplacedSpan:
    end = max(at + 1, _first_unanswered(view))
    quote = _quote_message(view.items[at])
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
    bounds = widen_range(view, items[first].id, items[last].id)
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


def _first_unanswered(view: View) -> int:
    """The first item of what the user said and nobody answered; the end where there is none.
    Results are no words of theirs: the summary takes them in with their calls."""
    at = len(view.items)
    while at and _is_user_text(view.items[at - 1]):
        at -= 1
    asked = any(item.kind == "message" for item in view.items.since(at))
    return at if asked else len(view.items)


def _is_user_text(item: Item) -> bool:
    return item.role == "user" and item.kind != "replaced" and not item.results


def _quote_message(item: Item) -> str:
    """The beginning of a message, so that the summariser finds it."""
    text = " ".join(" ".join(p.block.text for p in item.pieces).split())
    kinds = ", ".join(dict.fromkeys(p.block.type for p in item.pieces))
    return f"> {item.role}: {text[:QUOTED] or f'({kinds})'}"


# --- The conversation as a side query: for a summariser that cannot be sent the whole of it.
#
# A fork sends its parent's bytes, so it cannot be made shorter. Where those are too long, or
# nothing would be read from a cache anyway, the messages are sent anew: pictures and documents
# become a word, the provider's own summary its words, thinking and what is restored afterwards are
# left out, and the oldest rounds go until the gap is covered. What the user said in those is
# handed back, word for word. Pure: it builds a request and sends none.


RESTORED = frozenset({"date", "skills", "skill", "plan", "file"})
"""Kinds of attachments that come back after a compaction by themselves."""
_EDITS = "cache_edits"
SOURCE = "shortened"


@dataclass(frozen=True, slots=True)
class MessageRound:
    """A response and what was said to it: never cut in two."""

    items: tuple[Item, ...]
    tokens: int
    gone: bool  # whether it lies in the range that is replaced

    @property
    def words(self) -> Iterator[str]:
        """What the user said in it."""
        for item in self.items:
            if item.role == "user" and item.kind == "message" and not item.results:
                yield from (p.block.text for p in item.pieces if not p.block.blank)


def rounds(view: View, span: ReplacedSpan) -> tuple[tuple[Item, ...], tuple[MessageRound, ...]]:
    """What stands for older messages, and what an agent was told to do; and the rounds up to
    the end of a range, oldest first."""
    standing: list[Item] = []
    groups: list[list[tuple[int, Item]]] = []
    for at, item in enumerate(view.items[: span.last + 1]):
        if item.kind in STANDING or instructs(view, item):
            standing += [_light(view, item)] if item.kind != "head" else []
            continue
        if item.role == "assistant" or not groups:
            groups.append([])
        groups[-1].append((at, item))
    found = [
        MessageRound(made, sum(i.tokens for i in made), group[-1][0] >= span.first)
        for group in groups
        if (made := tuple(_light(view, item) for _, item in group))
    ]
    return tuple(standing), tuple(found)


def request(
    view: View,
    standing: Sequence[Item],
    kept: Sequence[MessageRound],
    left_out: int,
    words: str,
    task: Task,
) -> Request:
    """The side query: what is kept of the conversation, and the instruction."""
    note = f"[{left_out:,} earlier rounds are left out here]" if left_out else "[The conversation]"
    items = [
        _user_item(note),
        *standing,
        *(item for one in kept for item in one.items if item.pieces),
        _user_item(words),
    ]
    messages = messages_of(items)
    tokens = view.head_tokens + sum(m.tokens for m in messages)
    head = view.head or NO_HEAD
    return Request(head, Trail(messages), (), (), task.kind, task, view.leaf, tokens)


def continue_request(asked: Request, said: Sequence[Block], words: str) -> Request:
    """The side query with its answer so far behind it, and what is said to that, if anything."""
    spoken = tuple(SentBlock(b, SOURCE, n) for n, b in enumerate(said) if b.type != "tool_use")
    items = [Item(SOURCE, "assistant", spoken, "synthetic")] if spoken else []
    items += [_user_item(words)] if words else []
    messages = list(asked.messages())
    for item in items:
        messages.append(message([item], messages[-1]))
    tokens = asked.tokens + sum(m.tokens for m in messages[asked.count :])
    return replace(asked, closed=Trail(messages), tail=(), tokens=tokens)


def for_model(asked: Request, name: str) -> Request:
    """The side query for another model: the conversation's options were for its own."""
    return replace(asked, head=replace(asked.head, model=name, options="{}"))


def messages_of(items: Sequence[Item]) -> list[Message]:
    """Items as the messages of a request: neighbours of one role are one message."""
    messages: list[Message] = []
    for _, run in groupby(items, attrgetter("role")):
        messages.append(message(list(run), messages[-1] if messages else None))
    return messages


def _user_item(text: str) -> Item:
    return Item(SOURCE, "user", (SentBlock(text_block(text), SOURCE, 0),), "synthetic")


def _light(view: View, item: Item) -> Item:
    """An item without what the summariser does not need."""
    if item.kind == "attached" and _kind(view, item) in RESTORED:
        return replace(item, pieces=())
    pieces = [
        replace(p, block=_plain(p.block))
        for p in item.pieces
        if not p.block.thinking and p.block.type != _EDITS
    ]
    return replace(item, pieces=tuple(pieces))


def _kind(view: View, item: Item) -> str:
    entry = view.entries.find(item.id)
    return str(getattr(entry.record, "kind", "")) if entry else ""


def _plain(block: Block) -> Block:
    """A block as words: a provider's own summary would be bound to what it stands for."""
    return (
        text_block(block.get("content")) if block.type == "compaction" else _describe_media(block)
    )


def _describe_media(block: Block) -> Block:
    """A picture or a document as a word, also inside a result."""
    if block.type in MEDIA:
        return text_block(f"[{block.type}]")
    content = block.value.get("content") if block.type == "tool_result" else None
    if not isinstance(content, list) or not any(_is_media(part) for part in content):
        return block
    worded: list[Json] = [
        {"type": "text", "text": f"[{part.get('type')}]"}
        if isinstance(part, dict) and _is_media(part)
        else part
        for part in content
    ]
    return block_of({**block.value, "content": worded})


def _is_media(part: Json) -> bool:
    return isinstance(part, dict) and part.get("type") in MEDIA


def has_media(items: Sequence[Item]) -> bool:
    return any(_describe_media(p.block) is not p.block for item in items for p in item.pieces)
