"""A transcript folded up to one entry: what it means, as a value.

`reverie.transcript.fold` makes views, a record at a time. A view once handed out never
changes. No clock, no I/O, no settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reverie.transcript.blocks import Block, block_from, elements
from reverie.transcript.messages import Item, Message, interrupted, message
from reverie.transcript.records import (
    Entry,
    Extracted,
    HeadSet,
    Mark,
    NotesTaken,
    Recalled,
    ResultDecided,
    Sent,
    Started,
    Usage,
    unchanging,
)
from reverie.transcript.trail import Roll, Trail, VersionedMap

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
    calls: VersionedMap[str, Call] = field(default_factory=VersionedMap[str, Call])
    open_calls: tuple[str, ...] = ()
    called: Mapping[str, int] = field(default_factory=dict[str, int])  # calls by tool
    decisions: VersionedMap[str, ResultDecided] = field(
        default_factory=VersionedMap[str, ResultDecided]
    )

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


def copied(view: View) -> View:
    """A view of its own to work on: it may be changed until it is handed out."""
    new: View = _blank(View)
    new.__dict__ = view.__dict__.copy()
    return new


def put(view: View, **changes: Any) -> View:
    view.__dict__.update(changes)
    return view


def head_blocks(array: str) -> tuple[Block, ...]:
    """The blocks of a JSON array of blocks."""
    return tuple(block_from(raw, value) for raw, value in elements(array))
