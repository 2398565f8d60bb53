"""Records that change what was there already, and what of a view they rebuild.

A decision on a result, a replaced range, another head, words that were forgotten. Where
one names something already sent, the prefix moves: messages before the first change are
shared, those behind it are made anew, and the view says why. Each function works on a view
of its own and gives it back.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import takewhile
from operator import attrgetter, is_

from reverie.transcript.blocks import Block, members
from reverie.transcript.messages import HEAD, Item, SentBlock, message
from reverie.transcript.records import (
    Entry,
    HeadSet,
    Replaced,
    RequestRefused,
    ResultDecided,
    Strip,
    WordsRemoved,
)
from reverie.transcript.view import STANDING, Trail, View, head_blocks, put


def fold_decision(view: View, _: Entry, record: ResultDecided) -> View:
    view.decisions = view.decisions.put(record.call, record)
    if not record.content or record.call not in view.calls or record.call in view.open_calls:
        return view
    unsent = view.unsent()
    if any(record.call in item.results for item in unsent):
        edited = [_edit_item(i, record) for i in unsent]
        if all(new is old for new, old in zip(edited, unsent, strict=True)):
            return view
        items = Trail(view.items[: view.sent_items] + edited)
        change = sum(i.tokens for i in edited) - sum(i.tokens for i in unsent)
        return put(view, items=items, estimated=view.estimated + change)
    items = [_edit_item(i, record) for i in view.items]
    first = next((n for n, i in enumerate(items) if i is not view.items[n]), None)
    if first is None:
        return view
    items[first:] = _strip_thinking(view, items[first:], record.strips)
    gone = len(view.items) - len(items)
    standing = _blocks_before(view, first)
    return move_prefix(_rebuilt(view, items, view.sent_items - gone), record.action, standing)


def _edit_item(item: Item, record: ResultDecided) -> Item:
    if record.call not in item.results:
        return item
    pieces: list[SentBlock] = []
    for piece in item.pieces:
        block = piece.block
        if block.type == "tool_result" and block.call == record.call:
            block = as_decided(block, record)
        pieces.append(piece if block is piece.block else replace(piece, block=block))
    same = all(new is old for new, old in zip(pieces, item.pieces, strict=True))
    return item if same else replace(item, pieces=tuple(pieces))


def as_decided(block: Block, decision: ResultDecided | None) -> Block:
    """A tool result with the content that was decided for it."""
    if decision is None or not decision.content:
        return block
    return block.with_member("content", decision.content)


def is_stale(block: Block, decision: ResultDecided) -> bool:
    """Whether a decision that stands before a result was made for another result of its call."""
    if not decision.content or not decision.sha256:
        return False
    content, raw = block.value.get("content"), members(block.raw).get("content", ("", None))[0]
    data = content if isinstance(content, str) else raw
    found = sha256(data.encode("utf-8", "surrogatepass")).hexdigest()
    return found != decision.sha256 and raw != decision.content


def fold_refusal(view: View, _: Entry, __: RequestRefused) -> View:
    """What the refused request carried behind the last answer is new to the model still."""
    last = view.items.last
    answered = view.run if last is not None and last.role == "user" else len(view.items)
    standing = _blocks_before(view, answered)
    return put(move_prefix(view, "refused", standing), sent_items=min(view.sent_items, answered))


def head_set(view: View, _: Entry, record: HeadSet) -> View:
    old = view.head
    if old is not None and replace(old, reason="") == replace(record, reason=""):
        return view
    context = head_blocks(record.context)
    items = [i for i in view.items if i.kind != "head"]
    if context:
        pieces = tuple(SentBlock(b, HEAD, i) for i, b in enumerate(context))
        items.insert(0, Item(HEAD, "user", pieces, "head"))
    shift = len(items) - len(view.items)
    same = old is not None and old.context == record.context
    view = put(view, head=record)
    if not same:
        view = _rebuilt(view, items, view.sent_items + shift)
    if view.sent is None:
        return view
    return put(move_prefix(view, record.reason or "head", 0), marks=())


def fold_removal(view: View, _: Entry, record: WordsRemoved) -> View:
    """The words are gone from every entry before it; nothing sent can be relied on."""
    items = _strip_thinking(view, list(view.items), record.strips)
    gone = len(view.items) - len(items)
    changed = _rebuilt(view, items, view.sent_items - gone)
    return changed if view.sent is None else put(move_prefix(changed, "forgotten", 0), marks=())


def _strip_thinking(view: View, items: Sequence[Item], strips: Sequence[Strip]) -> list[Item]:
    """Items without the thinking an edit made invalid. A message whose calls still wait
    for results keeps its own."""
    if not strips:
        return list(items)
    named, waiting = set(strips), set(view.open_calls)
    out: list[Item] = []
    for item in items:
        pieces = tuple(
            p for p in item.pieces if not p.block.thinking or Strip(p.source, p.index) not in named
        )
        if pieces == item.pieces or waiting.intersection(item.calls):
            out.append(item)
        elif pieces:
            out.append(replace(item, pieces=pieces))
    return out


def fold_replacement(view: View, entry: Entry, record: Replaced) -> View:
    bounds = widen_range(view, record.first, record.last)
    if bounds is None:
        return view
    first, last = bounds
    items = view.items.since(0)
    gone = items[first : last + 1]
    covers = frozenset(i.id for i in gone).union(*(i.covers for i in gone))
    stand = [
        Item(
            f"{entry.id}:{n}" if n else entry.id,
            by.role,
            tuple(SentBlock(b, entry.id, i) for i, b in enumerate(by.blocks)),
            "replaced",
            covers,
            record.seals,
            record.reason,
        )
        for n, by in enumerate(record.by)
        if by.blocks
    ]
    kept = _strip_thinking(view, items[last + 1 :], record.strips)
    sent = view.sent_items - (len(items) - last - 1 - len(kept))
    items[first:] = [*stand, *kept]
    moves, standing = first < view.sent_items, _blocks_before(view, first)
    behind = _sent_after(sent, first, last, len(stand), items)
    if record.boundary is None:
        changed = _rebuilt(view, items, behind)
    else:
        ratio = (view.tokens - view.head_tokens) / view.estimated if view.estimated else 1.0
        changed = _behind_a_boundary(_rebuilt(view, items, behind), entry.id, ratio)
    return move_prefix(changed, record.reason, standing) if moves else changed


def _behind_a_boundary(view: View, entry: str, ratio: float) -> View:
    """What is counted in tokens or messages starts over. The last usage told how many real
    tokens an estimated one stands for: what is left is counted by that."""
    if view.usage is not None:
        left = view.head_tokens + round(view.estimated * max(0.5, ratio))
        view.anchored = view.usage.total + view.estimated - left
    changes = {"boundary": entry, "recalled": ()}
    return put(view, compaction_failures=0, **changes)


def widen_range(view: View, first: str, last: str) -> tuple[int, int] | None:
    """The items a range covers once no call is cut from its results, nor an older
    replacement in two; None where it names nothing, or only a round still in hand."""
    items = view.items.since(0)
    starts = [n for n, i in enumerate(items) if i.id == first or first in i.covers]
    ends = [n for n, i in enumerate(items) if i.id == last or last in i.covers]
    if not starts or not ends:
        return None
    start, end = min(starts[0], ends[0]), max(starts[-1], ends[-1])
    if view.open_calls:
        waiting = next(
            n for n, i in enumerate(items) if i.calls and set(i.calls) & set(view.open_calls)
        )
        end = min(end, waiting - 1)
    while 0 < start <= end and _are_one(items, start):
        start -= 1
    while start <= end < len(items) - 1 and _are_one(items, end + 1):
        end += 1
    if end < start or items[start].kind == "head":
        return None
    return start, end


def _are_one(items: Sequence[Item], at: int) -> bool:
    """Whether an item and the one before it may not be parted: results that are still to come
    answer the calls before them, and an older replacement may stand in several items."""
    before, item = items[at - 1], items[at]
    if before.kind == item.kind == "replaced" and before.covers == item.covers:
        return True
    to_come = takewhile(lambda i: i.role == "user", items[at:])
    return any(i.results for i in to_come)


# --- rebuilding


def _sent_after(sent: int, first: int, last: int, stand: int, items: Sequence[Item]) -> int:
    """How many items count as sent once a range gave way to what stands for it.
    What stands at the very end is new to the model, and attachments may join it."""
    if sent <= first or first + stand >= len(items):
        return min(sent, first)
    return first + stand + max(0, sent - last - 1)


def _rebuilt(view: View, items: Sequence[Item], sent_items: int) -> View:
    """The same view over other items; messages before the first change are shared."""
    same = sum(takewhile(bool, map(is_, items, view.items)))
    start = same
    while start and items[start - 1].role == items[same - 1].role:
        start -= 1  # the run that the first change may belong to
    before = sum([len(item.pieces) for item in items[:start]])
    closed = view.closed.since(0)
    del closed[bisect_left(closed, before, key=attrgetter("end")) + 1 if start else 0 :]
    for at in range(start + 1, len(items)):
        if items[at].role != items[at - 1].role:
            closed.append(message(items[start:at], closed[-1] if closed else None))
            start = at
    live = next((n for n, i in enumerate(items) if i.kind not in STANDING), len(items))
    standing = sum([i.tokens for i in items[:live]])
    sealed = next((i.pieces[0].source for i in reversed(items) if i.seals), "")
    end = items[live - 1].pieces[-1] if live else None
    return put(
        view,
        items=Trail(items),
        closed=Trail(closed),
        run=start,
        sent_items=max(0, min(sent_items, len(items))),
        estimated=standing + sum([i.tokens for i in items[live:]]),
        sealed=sealed,
        live=live,
        standing=standing,
        answers=0,
        reread=0,
        live_block=sum([len(item.pieces) for item in items[:live]]),
        sealed_last=bool(end and end.source == sealed and end.block.markable),
    )


def _blocks_before(view: View, item: int) -> int:
    """How many message blocks stand in whole messages before an item."""
    blocks = sum([len(i.pieces) for i in view.items[:item]])
    whole = bisect_right(view.closed, blocks, key=attrgetter("end"))
    return view.closed[whole - 1].end if whole else 0


def move_prefix(view: View, reason: str, blocks: int) -> View:
    """The prefix moved behind its first `blocks` message blocks; only marks there still stand."""
    standing = tuple(m for m in view.marks if m.part != "messages" or m.block < blocks)
    return put(view, moved=(*view.moved, reason), marks=standing, in_flight=())
