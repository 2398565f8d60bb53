"""The conversation as a side query: for a summariser that cannot be sent the whole of it.

A fork sends its parent's bytes, so it cannot be made shorter. Where those are too long, or
nothing would be read from a cache anyway, the messages are sent anew: pictures and documents
become a word, the provider's own summary its words, thinking and what is restored afterwards
are left out, and the oldest rounds go until the gap is covered. What the user said in those
is handed back, word for word. Pure: it builds a request and sends none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter

from reverie.layers.compaction.ranges import ReplacedSpan, instructs
from reverie.light import dataclass
from reverie.transcript.blocks import Block, Json, block_of, text_block
from reverie.transcript.messages import Item, Message, Piece, message
from reverie.transcript.tasks import Task
from reverie.transcript.view import STANDING, Trail, View
from reverie.wire.request import NO_HEAD, Request

MEDIA = ("image", "document")
RESTORED = frozenset({"date", "skills", "skill", "plan", "file"})
"""Kinds of attachments that come back after a compaction by themselves."""
_EDITS = "cache_edits"
SOURCE = "shortened"


@dataclass(frozen=True, slots=True)
class Round:
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


def rounds(view: View, span: ReplacedSpan) -> tuple[tuple[Item, ...], tuple[Round, ...]]:
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
        Round(made, sum(i.tokens for i in made), group[-1][0] >= span.first)
        for group in groups
        if (made := tuple(_light(view, item) for _, item in group))
    ]
    return tuple(standing), tuple(found)


def request(
    view: View,
    standing: Sequence[Item],
    kept: Sequence[Round],
    left_out: int,
    words: str,
    task: Task,
) -> Request:
    """The side query: what is kept of the conversation, and the instruction."""
    note = f"[{left_out:,} earlier rounds are left out here]" if left_out else "[The conversation]"
    items = [
        _said(note),
        *standing,
        *(item for one in kept for item in one.items if item.pieces),
        _said(words),
    ]
    messages = messages_of(items)
    tokens = view.head_tokens + sum(m.tokens for m in messages)
    head = view.head or NO_HEAD
    return Request(head, Trail(messages), (), (), task.kind, task, view.leaf, tokens)


def continued(asked: Request, said: Sequence[Block], words: str) -> Request:
    """The side query with its answer so far behind it, and what is said to that, if anything."""
    spoken = tuple(Piece(b, SOURCE, n) for n, b in enumerate(said) if b.type != "tool_use")
    items = [Item(SOURCE, "assistant", spoken, "synthetic")] if spoken else []
    items += [_said(words)] if words else []
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


def _said(text: str) -> Item:
    return Item(SOURCE, "user", (Piece(text_block(text), SOURCE, 0),), "synthetic")


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
    return text_block(block.get("content")) if block.type == "compaction" else _worded(block)


def _worded(block: Block) -> Block:
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
    return any(_worded(p.block) is not p.block for item in items for p in item.pieces)
