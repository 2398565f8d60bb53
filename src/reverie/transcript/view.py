"""A transcript folded up to one entry: what it means, as a value that shares what it can.

`reverie.transcript.fold` makes views, a record at a time. A view once handed out never
changes. No clock, no I/O, no settings.

Its lists and maps share what they have in common: a `Trail` is a shared list and a length, a
`IndexedList` one with an index, a `PersistentMap` a map with a past. Growing the newest one costs
the same however long it is; growing an older one copies first, so a value once handed out never
changes. None is meant for several threads.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, cast, overload

from reverie.transcript.blocks import Block, block_from, elements
from reverie.transcript.messages import Item, Message, interrupted_item, message
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

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
N = TypeVar("N", bound="Identified")
_Past: TypeAlias = "tuple[int, V | None, _Past[V] | None]"  # when it was set, to what, and before
_blank: Any = object.__new__


class Trail(Generic[T]):
    """An immutable sequence whose longer versions share their beginning."""

    __slots__ = ("_shared", "length")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._shared: list[T] = list(items)
        self.length = len(self._shared)

    def push(self, item: T) -> Trail[T]:
        """The same sequence with `item` behind it."""
        shared, length = self._shared, self.length
        if len(shared) != length or not length:
            shared = shared[:length]
        shared.append(item)
        new: Trail[T] = _blank(Trail)
        new._shared = shared
        new.length = length + 1
        return new

    def cut(self, length: int) -> Trail[T]:
        """The first `length` items; shares them."""
        new: Trail[T] = _blank(Trail)
        new._shared, new.length = self._shared, max(0, min(length, self.length))
        return new

    @property
    def last(self) -> T | None:
        return self._shared[self.length - 1] if self.length else None

    def since(self, start: int) -> list[T]:
        """The items from `start` on, as a list of their own."""
        return self._shared[start : self.length]

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[T]:
        return islice(self._shared, self.length)

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> list[T]: ...
    def __getitem__(self, at: int | slice) -> T | list[T]:
        if isinstance(at, slice):
            start, stop, step = at.indices(self.length)
            return self._shared[start:stop] if step == 1 else self._shared[: self.length][at]
        if not -self.length <= at < self.length:
            raise IndexError(at)
        return self._shared[at if at >= 0 else self.length + at]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trail) and self[:] == cast("Trail[T]", other)[:]

    def __hash__(self) -> int:
        return hash(self.length)

    def __repr__(self) -> str:
        return f"Trail({self[:]!r})"


class Identified(Protocol):
    """What a roll holds."""

    @property
    def id(self) -> str: ...


class IndexedList(Trail[N]):
    """A trail whose items are also found by their ids, each of which is there once."""

    __slots__ = ("_places",)

    def __init__(self) -> None:
        super().__init__()
        self._places: dict[str, int] = {}

    def push(self, item: N) -> IndexedList[N]:
        """The same roll with `item` behind the others, or itself where its id is there."""
        shared, places, length, ident = self._shared, self._places, self.length, item.id
        if places.get(ident, length) < length:
            return self
        if len(shared) != length or not length:
            shared = shared[:length]
            places = {known.id: at for at, known in enumerate(shared)}
        shared.append(item)
        places[ident] = length
        new: IndexedList[N] = _blank(IndexedList)
        new._shared, new._places, new.length = shared, places, length + 1
        return new

    def place(self, ident: str) -> int | None:
        """Where the item of this id stands, or None."""
        place = self._places.get(ident)
        return place if place is not None and place < self.length else None

    def among(self, idents: Iterable[str]) -> list[N]:
        """The items of these ids, in their order here."""
        length, place = self.length, self._places.get
        places = [at for ident in idents if (at := place(ident, length)) < length]
        return [self._shared[at] for at in sorted(places)]

    def find(self, ident: str) -> N | None:
        """The item of this id, or None."""
        place = self.place(ident)
        return None if place is None else self._shared[place]


class PersistentMap(Generic[K, V]):
    """An immutable map; each key remembers when it was set, so older versions stay true."""

    __slots__ = ("_kept", "_length", "_order")

    def __init__(self) -> None:
        self._order: list[K] = []
        self._kept: dict[K, _Past[V]] = {}
        self._length = 0

    def put(self, key: K, value: V) -> PersistentMap[K, V]:
        """The same map with `key` set to `value`."""
        return self._set(key, value)

    def without(self, key: K) -> PersistentMap[K, V]:
        """The same map without `key`."""
        return self._set(key, None)

    def _set(self, key: K, value: V | None) -> PersistentMap[K, V]:
        order, kept, length = self._order, self._kept, self._length
        if len(order) != length or not length:
            order, kept = self._copy_entries()
        order.append(key)
        kept[key] = (length, value, kept.get(key))
        new: PersistentMap[K, V] = _blank(PersistentMap)
        new._order, new._kept, new._length = order, kept, length + 1
        return new

    def _copy_entries(self) -> tuple[list[K], dict[K, _Past[V]]]:
        order = self._order[: self._length]
        kept: dict[K, _Past[V]] = {}
        for key in order:
            past = self._past(key)
            if past is not None:
                kept[key] = past
        return order, kept

    def _past(self, key: K) -> _Past[V] | None:
        """What this version knows of a key."""
        past = self._kept.get(key)
        while past is not None and past[0] >= self._length:
            past = past[2]
        return past

    def get(self, key: K) -> V | None:
        """The value last set for `key`, or None."""
        past = self._kept.get(key)
        if past is not None and past[0] >= self._length:
            past = self._past(key)
        return None if past is None else past[1]

    def __contains__(self, key: K) -> bool:
        return self.get(key) is not None

    def items(self) -> Iterator[tuple[K, V]]:
        """Each key once, in the order first set, with its value."""
        for key in dict.fromkeys(islice(self._order, self._length)):
            value = self.get(key)
            if value is not None:
                yield key, value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PersistentMap):
            return False
        return dict(self.items()) == dict(cast("PersistentMap[K, V]", other).items())

    def __hash__(self) -> int:
        return hash(self._length)

    def __repr__(self) -> str:
        return f"Ledger({dict(self.items())!r})"


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
    entries: IndexedList[Entry] = field(default_factory=IndexedList[Entry])
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
    calls: PersistentMap[str, Call] = field(default_factory=PersistentMap[str, Call])
    open_calls: tuple[str, ...] = ()
    called: Mapping[str, int] = field(default_factory=dict[str, int])  # calls by tool
    decisions: PersistentMap[str, ResultDecided] = field(
        default_factory=PersistentMap[str, ResultDecided]
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
            result = interrupted_item(self.open_calls, run[-1].id)
            if run[0].role == "assistant":
                before = message(run, before)
                return before, message([result], before)
            run.append(result)
        return (message(run, before),) if run else ()


EMPTY = View()


def copy_view(view: View) -> View:
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
