"""The fold: what a transcript means.

`apply(view, entry)` is pure and total over the union of records, and costs the same
however long the transcript is; only a record that moves the prefix (it names something
already sent) rebuilds it. `fold` is `apply` over all entries, following the chain that
ends in the last leaf. A view once returned never changes. No clock, no I/O, no settings.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from operator import attrgetter, is_
from typing import Any, TypeAlias

from reverie.transcript.blocks import Block, block_from, elements
from reverie.transcript.messages import (
    HEAD,
    Item,
    Message,
    Piece,
    interrupted,
    message,
    missing_start,
)
from reverie.transcript.records import (
    CHAIN_SCOPED,
    AssistantMessage,
    Attached,
    Entry,
    Extracted,
    Failed,
    Forgotten,
    HeadSet,
    Mark,
    NotesTaken,
    Recalled,
    Replaced,
    ResultDecided,
    Sent,
    Started,
    Strip,
    TurnEnded,
    Usage,
    UserMessage,
    unchanging,
)
from reverie.transcript.trail import Ledger, Roll, Trail

STANDING = ("head", "replaced")  # kinds of items that stand in front of the live tail


@unchanging
class Call:
    """A tool call on the chain."""

    id: str
    name: str
    message: str


@dataclass(eq=False)
class View:
    """A transcript folded up to one entry. Never changed once it is handed out; neither
    frozen nor slotted because each record makes one, and a copied dict is the quickest."""

    base: View | None = None  # a fork's parent, as it was at the fork
    entries: Roll[Entry] = field(default_factory=Roll[Entry])
    leaf: str = ""
    journal_leaf: str = ""
    started: Started | None = None
    head: HeadSet | None = None

    items: Trail[Item] = field(default_factory=Trail[Item])
    closed: Trail[Message] = field(default_factory=Trail[Message])
    run: int = 0  # the first item of the run still open
    sealed: str = ""  # the newest replacement whose end deserves a long-lived mark
    live: int = 0  # the first item that is no head and stands for no others
    live_block: int = 0  # how many blocks stand before it
    standing: int = 0  # rough tokens of the items before it
    answers: int = 0  # assistant messages since items were last rebuilt
    reread: int = 0  # the live tokens each of them answered to, added up
    sealed_last: bool = False  # whether `sealed` ends right there, on a block that takes a mark
    waiting: tuple[Item, ...] = ()  # attachments with no unsent user message yet
    calls: Ledger[str, Call] = field(default_factory=Ledger[str, Call])
    open_calls: tuple[str, ...] = ()
    called: Mapping[str, int] = field(default_factory=dict[str, int])  # calls by tool
    decisions: Ledger[str, ResultDecided] = field(default_factory=Ledger[str, ResultDecided])

    sent: Sent | None = None
    sent_items: int = 0
    marks: tuple[Mark, ...] = ()  # of the last answered request, those still on the same bytes
    in_flight: tuple[Mark, ...] = ()  # of a request not answered yet
    moved: tuple[str, ...] = ()  # why the prefix moved since the last request
    usage: Usage | None = None
    estimated: int = 0  # rough tokens of all items
    anchored: int = 0  # `estimated` when `usage` was reported
    last_assistant_at: float | None = None
    turns: int = 0

    notes: NotesTaken | None = None  # the newest; it may name a message that is gone
    extracted: Extracted | None = None
    recalled: tuple[Recalled, ...] = ()  # since the last compaction
    boundary: str = ""  # the entry of the last compaction
    baseline: int = 0  # `estimated` behind it
    compaction_failures: int = 0  # in a row

    @property
    def session(self) -> str:
        return self.started.session if self.started else ""

    @property
    def is_fork(self) -> bool:
        return self.base is not None

    @property
    def head_tokens(self) -> int:
        """Rough tokens of system prompt and tools; the context blocks count as items."""
        if self.head is None:
            return 0
        tools = -(-len(self.head.tools.encode()) // 2)
        return tools + sum(b.tokens for b in head_blocks(self.head.system))

    @property
    def live_tokens(self) -> int:
        """Rough tokens of the live items."""
        return self.estimated - self.standing

    @property
    def tokens(self) -> int:
        """The canonical count: last reported usage, and an estimate of what came since."""
        if self.usage is None:
            return self.head_tokens + self.estimated
        return self.usage.total + self.estimated - self.anchored

    def unsent(self) -> list[Item]:
        return self.items.since(self.sent_items)

    def tail(self, *, complete: bool = True) -> tuple[Message, ...]:
        """The messages behind `closed`: the open run and, to make it a complete request,
        results for interrupted calls."""
        run, before = self.items.since(self.run), self.closed.last
        if self.open_calls and complete:
            result = interrupted(self.open_calls, run[-1].id)
            if run[0].role == "assistant":
                before = message(run, before)
                return before, message([result], before)
            run.append(result)
        return (message(run, before),) if run else ()


EMPTY = View()
_blank: Any = object.__new__
_Folds: TypeAlias = Callable[[View, Entry, Any], View]


def _copy(view: View, **changes: Any) -> View:
    """A view of its own to work on: it may be changed until it is handed out."""
    new: View = _blank(View)
    new.__dict__ = {**view.__dict__, **changes}
    return new


def _set(view: View, **changes: Any) -> View:
    view.__dict__.update(changes)
    return view


def head_blocks(array: str) -> tuple[Block, ...]:
    """The blocks of a JSON array of blocks."""
    return tuple(block_from(raw, value) for raw, value in elements(array))


def fold(entries: Iterable[Entry], base: View = EMPTY) -> View:
    """The view of a whole transcript: the chain of its last leaf, and all session records."""
    unique: dict[str, Entry] = {}
    for entry in entries:
        unique.setdefault(entry.id, entry)
    ordered = list(unique.values())
    chain = _chain(ordered)
    view = base if base is EMPTY else _copy(base, base=base)
    for entry in ordered:
        view = _step(view, entry, entry.on_chain and entry.id not in chain)
    return view


def apply(view: View, entry: Entry) -> View:
    """One entry more. Where it leaves the chain, the transcript is folded again."""
    leaf = view.leaf
    if entry.parent != leaf and leaf and entry.on_chain:
        known = view.entries.place(entry.id) is not None
        return view if known else fold([*view.entries, entry], view.base or EMPTY)
    return _step(view, entry, off_chain=False)


def expecting(view: View, message: UserMessage) -> View:
    """The end of the view as it would be with one more user message: for a look ahead, not
    to keep. It shares no list that the next record will grow."""
    start = min(view.run, view.sent_items)
    ahead = _copy(
        view,
        items=Trail(view.items.since(start)),
        closed=Trail[Message](),
        run=view.run - start,
        sent_items=view.sent_items - start,
        live=max(0, view.live - start),
    )
    return _user(ahead, Entry("expected", view.leaf, 0.0, message), message)


def branch(parent: View, started: Entry) -> View:
    """The view of a fork at its start: the parent's conversation, a transcript of its own."""
    base = _copy(
        parent,
        base=None,
        entries=Roll(),
        leaf="",
        journal_leaf="",
        sent=None,
        moved=(),
        sent_items=len(parent.items),
        marks=parent.in_flight or parent.marks,
        in_flight=(),
    )
    return apply(_copy(base, base=base), started)


def _chain(entries: Sequence[Entry]) -> set[str]:
    """Ids from the last leaf back. A parent that is missing is the chain entry before."""
    by_id = {e.id: (i, e) for i, e in enumerate(entries)}
    chain: set[str] = set()
    at = next((i for i in reversed(range(len(entries))) if entries[i].on_chain), None)
    while at is not None:
        entry = entries[at]
        chain.add(entry.id)
        found = by_id.get(entry.parent)
        if found is not None and found[1].id not in chain and found[0] < at:
            at = found[0]
            while at is not None and not entries[at].on_chain:
                at = _before(entries, at)
        elif entry.parent == "":
            at = None
        else:
            at = _before(entries, at)
    return chain


def _before(entries: Sequence[Entry], at: int) -> int | None:
    return next((i for i in reversed(range(at)) if entries[i].on_chain), None)


def _step(view: View, entry: Entry, off_chain: bool) -> View:
    entries = view.entries.push(entry)
    if entries is view.entries:
        return view
    new: View = _blank(View)
    new.__dict__ = view.__dict__.copy()
    new.entries = entries
    record = entry.record
    kind = record.__class__
    if kind in CHAIN_SCOPED:
        new.journal_leaf = entry.id
        if off_chain:
            return new
        if view.journal_leaf != entry.parent and view.journal_leaf:
            new = _moved(new, "rewound", 0)
        new.leaf = entry.id
    folds = _FOLDS.get(kind)
    return folds(new, entry, record) if folds else new


# --- what each record does


def _push(view: View, item: Item) -> View:
    """One more item behind the others; a change of role closes the open run."""
    items, role = view.items, item.role
    last = items.last
    if last is not None and last.role != role:
        closed = view.closed
        view.closed = closed.push(message(items.since(view.run), closed.last))
        view.run = items.length
    if role == "assistant":
        view.answers += 1
        view.reread += view.estimated - view.standing
    view.items = items.push(item)
    view.estimated += item.tokens
    return view


def _user(view: View, entry: Entry, record: UserMessage) -> View:
    source = entry.id
    pieces: list[Piece] = []
    still_open = list(view.open_calls)
    for i, block in enumerate(record.blocks):
        if block.type == "tool_result":
            call = block.call
            if call not in still_open:
                continue
            still_open.remove(call)
            pieces.append(Piece(_as_decided(block, view.decisions.get(call)), source, i))
        elif not block.blank:
            pieces.append(Piece(block, source, i))
    if not pieces:
        return view
    view = _push(view, Item(source, "user", tuple(pieces)))
    for item in view.waiting:
        view = _push(view, item)
    view.open_calls, view.waiting = tuple(still_open), ()
    return view


def _assistant(view: View, entry: Entry, record: AssistantMessage) -> View:
    if view.open_calls:
        view = _close_calls(view)
    source = entry.id
    pieces: list[Piece] = []
    calls: list[str] = []
    for i, block in enumerate(record.blocks):
        if block.type == "tool_use":
            call = block.call
            if not call or call in view.calls:
                continue
            calls.append(call)
            name = block.get("name")
            view.calls = view.calls.put(call, Call(call, name, source))
            view.called = {**view.called, name: view.called.get(name, 0) + 1}
        pieces.append(Piece(block, source, i))
    if not pieces:
        return view
    if not view.items.length:
        view = _push(view, missing_start())
    view = _push(view, Item(source, "assistant", tuple(pieces)))
    view.open_calls = tuple(calls)
    view.sent_items = view.items.length
    view.last_assistant_at = entry.at
    view.marks, view.in_flight = view.in_flight or view.marks, ()
    if record.usage is not None and record.usage.total:
        view.usage, view.anchored = record.usage, view.estimated
    return view


def _attached(view: View, entry: Entry, record: Attached) -> View:
    pieces = tuple(Piece(b, entry.id, i) for i, b in enumerate(record.blocks) if not b.blank)
    item = Item(entry.id, "user", pieces, "attached")
    if not pieces:
        return view
    if view.unsent():
        return _push(view, item)
    return _set(view, waiting=(*view.waiting, item))


def _close_calls(view: View) -> View:
    """Give every call still open a result that says it was interrupted."""
    last = view.items[view.items.length - 1].id
    view = _push(view, interrupted(view.open_calls, last))
    return _set(view, open_calls=())


def _sent(view: View, _: Entry, record: Sent) -> View:
    if record.last != view.leaf:  # it left from a branch that was abandoned since
        return _set(view, sent=record)
    if view.open_calls:
        view = _close_calls(view)
    view.sent, view.sent_items = record, view.items.length
    view.in_flight, view.moved = record.marks, ()
    return view


def _head(view: View, _: Entry, record: HeadSet) -> View:
    old = view.head
    if old is not None and replace(old, reason="") == replace(record, reason=""):
        return view
    context = head_blocks(record.context)
    items = [i for i in view.items if i.kind != "head"]
    if context:
        pieces = tuple(Piece(b, HEAD, i) for i, b in enumerate(context))
        items.insert(0, Item(HEAD, "user", pieces, "head"))
    shift = len(items) - len(view.items)
    same = old is not None and old.context == record.context
    view = _set(view, head=record)
    if not same:
        view = _rebuilt(view, items, view.sent_items + shift)
    if view.sent is None:
        return view
    return _set(_moved(view, record.reason or "head", 0), marks=())


def _forgotten(view: View, _: Entry, record: Forgotten) -> View:
    """The words are gone from every entry before it; nothing sent can be relied on."""
    items = _stripped(view, list(view.items), record.strips)
    gone = len(view.items) - len(items)
    changed = _rebuilt(view, items, view.sent_items - gone)
    return changed if view.sent is None else _set(_moved(changed, "forgotten", 0), marks=())


def _decided(view: View, _: Entry, record: ResultDecided) -> View:
    view.decisions = view.decisions.put(record.call, record)
    if not record.content or record.call not in view.calls or record.call in view.open_calls:
        return view
    unsent = view.unsent()
    edited = [_edited(i, record) for i in unsent]
    if any(new is not old for new, old in zip(edited, unsent, strict=True)):
        items = Trail(view.items[: view.sent_items] + edited)
        change = sum(i.tokens for i in edited) - sum(i.tokens for i in unsent)
        return _set(view, items=items, estimated=view.estimated + change)
    items = [_edited(i, record) for i in view.items]
    first = next((n for n, i in enumerate(items) if i is not view.items[n]), None)
    if first is None:
        return view
    items[first:] = _stripped(view, items[first:], record.strips)
    gone = len(view.items) - len(items)
    standing = _blocks_before(view, first)
    return _moved(_rebuilt(view, items, view.sent_items - gone), record.action, standing)


def _edited(item: Item, record: ResultDecided) -> Item:
    if record.call not in item.results:
        return item
    pieces: list[Piece] = []
    for piece in item.pieces:
        block = piece.block
        if block.type == "tool_result" and block.call == record.call:
            block = _as_decided(block, record)
        pieces.append(piece if block is piece.block else replace(piece, block=block))
    same = all(new is old for new, old in zip(pieces, item.pieces, strict=True))
    return item if same else replace(item, pieces=tuple(pieces))


def _stripped(view: View, items: Sequence[Item], strips: Sequence[Strip]) -> list[Item]:
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


def _as_decided(block: Block, decision: ResultDecided | None) -> Block:
    """A tool result with the content that was decided for it."""
    if decision is None or not decision.content:
        return block
    return block.with_member("content", decision.content)


def _replaced(view: View, entry: Entry, record: Replaced) -> View:
    bounds = widened(view, record.first, record.last)
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
            tuple(Piece(b, entry.id, i) for i, b in enumerate(by.blocks)),
            "replaced",
            covers,
            record.seals,
            record.reason,
        )
        for n, by in enumerate(record.by)
        if by.blocks
    ]
    kept = _stripped(view, items[last + 1 :], record.strips)
    sent = view.sent_items - (len(items) - last - 1 - len(kept))
    items[first:] = [*stand, *kept]
    moves, standing = first < view.sent_items, _blocks_before(view, first)
    behind = _sent_after(sent, first, last, len(stand), items)
    if record.boundary is None:
        changed = _rebuilt(view, items, behind)
    else:
        ratio = (view.tokens - view.head_tokens) / view.estimated if view.estimated else 1.0
        changed = _behind_a_boundary(_rebuilt(view, items, behind), entry.id, ratio)
    return _moved(changed, record.reason, standing) if moves else changed


def _behind_a_boundary(view: View, entry: str, ratio: float) -> View:
    """What is counted in tokens or messages starts over. The last usage told how many real
    tokens an estimated one stands for: what is left is counted by that."""
    if view.usage is not None:
        left = view.head_tokens + round(view.estimated * max(0.5, ratio))
        view.anchored = view.usage.total + view.estimated - left
    changes = {"boundary": entry, "baseline": view.estimated, "recalled": ()}
    return _set(view, compaction_failures=0, **changes)


def widened(view: View, first: str, last: str) -> tuple[int, int] | None:
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


# --- rebuilding what a moving record changes


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
    return _set(
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


def _moved(view: View, reason: str, blocks: int) -> View:
    """The prefix moved behind its first `blocks` message blocks; only marks there still stand."""
    standing = tuple(m for m in view.marks if m.part != "messages" or m.block < blocks)
    return _set(view, moved=(*view.moved, reason), marks=standing, in_flight=())


# --- what each record does to a view


def _noted(name: str) -> _Folds:
    """A record that is remembered by its newest alone."""
    return lambda view, _, record: _set(view, **{name: record})


def _turn(view: View, _: Entry, __: TurnEnded) -> View:
    return _set(view, turns=view.turns + 1)


def _recalled(view: View, _: Entry, record: Recalled) -> View:
    return _set(view, recalled=(*view.recalled, record))


def _failed(view: View, _: Entry, record: Failed) -> View:
    failures = view.compaction_failures + (record.layer == "compaction")
    return _set(view, compaction_failures=failures)


_FOLDS: Mapping[type, _Folds] = {
    UserMessage: _user,
    AssistantMessage: _assistant,
    ResultDecided: _decided,
    Sent: _sent,
    Attached: _attached,
    Replaced: _replaced,
    HeadSet: _head,
    Started: _noted("started"),
    Forgotten: _forgotten,
    TurnEnded: _turn,
    NotesTaken: _noted("notes"),
    Extracted: _noted("extracted"),
    Recalled: _recalled,
    Failed: _failed,
}
"""By class, since every round folds four; what is not here changes nothing but the entries."""
