"""Lists and maps that share what they have in common.

A `Trail` is a shared list and a length, a `Ledger` a map with a past. Growing the
newest one costs the same however long it is; growing an older one copies first,
so a value once handed out never changes. Neither is meant for several threads.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from itertools import islice
from typing import Generic, TypeVar, cast, overload

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Trail(Generic[T]):
    """An immutable sequence whose longer versions share their beginning."""

    __slots__ = ("_length", "_shared")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._shared: list[T] = list(items)
        self._length = len(self._shared)

    @classmethod
    def _of(cls, shared: list[T], length: int) -> Trail[T]:
        new = cls.__new__(cls)
        new._shared = shared
        new._length = length
        return new

    def push(self, *items: T) -> Trail[T]:
        """The same sequence with `items` behind it."""
        shared = self._shared
        if len(shared) != self._length or not shared:
            shared = shared[: self._length]
        shared.extend(items)
        return self._of(shared, len(shared))

    def cut(self, length: int) -> Trail[T]:
        """The first `length` items; shares them."""
        return self._of(self._shared, max(0, min(length, self._length)))

    def since(self, start: int) -> list[T]:
        """The items from `start` on, as a list of their own."""
        return self._shared[start : self._length]

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        return islice(self._shared, self._length)

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> list[T]: ...
    def __getitem__(self, at: int | slice) -> T | list[T]:
        if isinstance(at, slice):
            return self._shared[: self._length][at]
        if not -self._length <= at < self._length:
            raise IndexError(at)
        return self._shared[at if at >= 0 else self._length + at]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trail) and self[:] == cast("Trail[T]", other)[:]

    def __hash__(self) -> int:
        return hash(self._length)

    def __repr__(self) -> str:
        return f"Trail({self[:]!r})"


class Ledger(Generic[K, V]):
    """An immutable map; each key remembers when it was set, so older versions stay true."""

    __slots__ = ("_length", "_shared")

    def __init__(self) -> None:
        self._shared: tuple[list[K], dict[K, list[tuple[int, V]]]] = ([], {})
        self._length = 0

    def put(self, key: K, value: V) -> Ledger[K, V]:
        """The same map with `key` set to `value`."""
        shared = self._shared
        if len(shared[0]) != self._length or not self._length:
            shared = self._copied()
        shared[0].append(key)
        shared[1].setdefault(key, []).append((self._length, value))
        return self._of(shared, self._length + 1)

    @classmethod
    def _of(cls, shared: tuple[list[K], dict[K, list[tuple[int, V]]]], length: int) -> Ledger[K, V]:
        new = cls.__new__(cls)
        new._shared = shared
        new._length = length
        return new

    def _copied(self) -> tuple[list[K], dict[K, list[tuple[int, V]]]]:
        order = self._shared[0][: self._length]
        kept: dict[K, list[tuple[int, V]]] = {}
        for key in order:
            if key not in kept:
                kept[key] = [e for e in self._shared[1][key] if e[0] < self._length]
        return order, kept

    def get(self, key: K) -> V | None:
        """The value last set for `key`, or None."""
        for when, value in reversed(self._shared[1].get(key, ())):
            if when < self._length:
                return value
        return None

    def __contains__(self, key: K) -> bool:
        return any(when < self._length for when, _ in self._shared[1].get(key, ()))

    def items(self) -> Iterator[tuple[K, V]]:
        """Each key once, in the order first set, with its value."""
        for key in dict.fromkeys(islice(self._shared[0], self._length)):
            value = self.get(key)
            if value is not None:
                yield key, value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ledger):
            return False
        return dict(self.items()) == dict(cast("Ledger[K, V]", other).items())

    def __hash__(self) -> int:
        return hash(self._length)

    def __repr__(self) -> str:
        return f"Ledger({dict(self.items())!r})"
