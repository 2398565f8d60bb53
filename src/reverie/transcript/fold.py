"""The fold: what each record does to a view.

`apply(view, entry)` is pure and total over the union of records, and costs the same
however long the transcript is; only a record that moves the prefix (it names something
already sent) rebuilds it, in `reverie.transcript.rewrites`. `fold_entries` is `apply` over all
entries, following the chain that ends in the last leaf. No clock, no I/O, no settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from reverie.transcript.messages import (
    Item,
    Message,
    SentBlock,
    interrupted_item,
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
    HeadSet,
    NotesTaken,
    Recalled,
    Replaced,
    RequestRefused,
    ResultDecided,
    Sent,
    Started,
    TurnEnded,
    UserMessage,
    WordsRemoved,
)
from reverie.transcript.rewrites import (
    as_decided,
    fold_decision,
    fold_refusal,
    fold_removal,
    fold_replacement,
    head_set,
    is_stale,
    move_prefix,
)
from reverie.transcript.view import EMPTY, Call, IndexedList, Trail, View, copy_view, put

_Folds: TypeAlias = Callable[[View, Entry, Any], View]


def fold_entries(entries: Iterable[Entry], base: View = EMPTY) -> View:
    """The view of a whole transcript: the chain of its last leaf, and all session records."""
    unique: dict[str, Entry] = {}
    for entry in entries:
        unique.setdefault(entry.id, entry)
    ordered = list(unique.values())
    chain = _chain(ordered)
    view = base if base is EMPTY else put(copy_view(base), base=base)
    for entry in ordered:
        view = _step(view, entry, entry.on_chain and entry.id not in chain)
    return view


def apply(view: View, entry: Entry) -> View:
    """One entry more. Where it leaves the chain, the transcript is folded again."""
    leaf = view.leaf
    if entry.parent != leaf and leaf and entry.on_chain:
        known = view.entries.place(entry.id) is not None
        return view if known else fold_entries([*view.entries, entry], view.base or EMPTY)
    return _step(view, entry, off_chain=False)


def expecting(view: View, message: UserMessage) -> View:
    """The end of the view as it would be with one more user message: for a look ahead, not
    to keep. It shares no list that the next record will grow."""
    start = min(view.run, view.sent_items)
    ahead = put(
        copy_view(view),
        items=Trail(view.items.since(start)),
        closed=Trail[Message](),
        run=view.run - start,
        sent_items=view.sent_items - start,
        live=max(0, view.live - start),
    )
    return _user(ahead, Entry("expected", view.leaf, 0.0, message), message)


def branch(parent: View, started: Entry) -> View:
    """The view of a fork at its start: the parent's conversation, a transcript of its own."""
    base = put(
        copy_view(parent),
        base=None,
        entries=IndexedList(),
        leaf="",
        journal_leaf="",
        sent=None,
        moved=(),
        sent_items=len(parent.items),
        marks=parent.in_flight or parent.marks,
        in_flight=(),
    )
    return apply(put(copy_view(base), base=base), started)


def _chain(entries: Sequence[Entry]) -> set[str]:
    """Ids from the last leaf back. A parent that is missing is the chain entry before."""
    by_id = {e.id: (i, e) for i, e in enumerate(entries)}
    chain: set[str] = set()
    at = next((i for i in reversed(range(len(entries))) if entries[i].on_chain), None)
    while at is not None:
        entry = entries[at]
        chain.add(entry.id)
        found = by_id.get(entry.parent)
        if found is not None and found[0] < at:  # only ever back: parents may go round
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
    new = copy_view(view)
    new.entries = entries
    record = entry.record
    kind = record.__class__
    if kind in CHAIN_SCOPED:
        new.journal_leaf = entry.id
        if off_chain:
            return new
        if view.journal_leaf != entry.parent and view.journal_leaf:
            new = move_prefix(new, "rewound", 0)
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
    pieces: list[SentBlock] = []
    still_open = list(view.open_calls)
    for i, block in enumerate(record.blocks):
        if block.type == "tool_result":
            call = block.call
            if call not in still_open:
                continue
            still_open.remove(call)
            decision = view.decisions.get(call)
            if decision is not None and is_stale(block, decision):
                view.decisions, decision = view.decisions.without(call), None
            pieces.append(SentBlock(as_decided(block, decision), source, i))
        elif not block.blank:
            pieces.append(SentBlock(block, source, i))
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
    pieces: list[SentBlock] = []
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
        pieces.append(SentBlock(block, source, i))
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


def _fold_attachment(view: View, entry: Entry, record: Attached) -> View:
    pieces = tuple(SentBlock(b, entry.id, i) for i, b in enumerate(record.blocks) if not b.blank)
    item = Item(entry.id, "user", pieces, "attached")
    if not pieces:
        return view
    if view.unsent():
        return _push(view, item)
    return put(view, waiting=(*view.waiting, item))


def _close_calls(view: View) -> View:
    """Give every call still open a result that says it was interrupted."""
    last = view.items[view.items.length - 1].id
    view = _push(view, interrupted_item(view.open_calls, last))
    return put(view, open_calls=())


def _fold_request(view: View, _: Entry, record: Sent) -> View:
    if record.last != view.leaf:  # it left from a branch that was abandoned since
        return put(view, sent=record)
    if view.open_calls:
        view = _close_calls(view)
    view.sent, view.sent_items = record, view.items.length
    view.in_flight, view.moved = record.marks, ()
    return view


def _fold_newest(name: str) -> _Folds:
    """A record that is remembered by its newest alone."""
    return lambda view, _, record: put(view, **{name: record})


def _turn(view: View, _: Entry, __: TurnEnded) -> View:
    return put(view, turns=view.turns + 1)


def _fold_recall(view: View, _: Entry, record: Recalled) -> View:
    return put(view, recalled=(*view.recalled, record))


def _fold_failure(view: View, _: Entry, record: Failed) -> View:
    failures = view.compaction_failures + (record.layer == "compaction")
    return put(view, compaction_failures=failures)


_FOLDS: Mapping[type, _Folds] = {
    UserMessage: _user,
    AssistantMessage: _assistant,
    ResultDecided: fold_decision,
    Sent: _fold_request,
    RequestRefused: fold_refusal,
    Attached: _fold_attachment,
    Replaced: fold_replacement,
    HeadSet: head_set,
    Started: _fold_newest("started"),
    WordsRemoved: fold_removal,
    TurnEnded: _turn,
    NotesTaken: _fold_newest("notes"),
    Extracted: _fold_newest("extracted"),
    Recalled: _fold_recall,
    Failed: _fold_failure,
}
"""By class, since every round folds four; what is not here changes nothing but the entries."""
