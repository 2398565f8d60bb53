"""Lists and maps that share what they have in common: an older one never changes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.transcript import IndexedList, PersistentMap, Trail

pytestmark = pytest.mark.spec("1")

# each step grows one of the versions made so far, not always the newest
steps = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6)), max_size=30)


@given(steps)
def test_an_older_sequence_stays_as_it_was(grown: list[tuple[int, int]]):
    versions: list[tuple[Trail[int], list[int]]] = [(Trail(), [])]
    for at, item in grown:
        trail, known = versions[at % len(versions)]
        versions.append((trail.push(item), [*known, item]))
    for trail, known in versions:
        assert trail[:] == trail.since(0) == list(trail) == known
        assert trail.last == (known[-1] if known else None)
        assert trail.cut(2)[:] == known[:2]
        assert (trail[1:3], trail[-2:], trail[::-1]) == (known[1:3], known[-2:], known[::-1])


@dataclass(frozen=True)
class Thing:
    id: str


@given(steps)
def test_an_older_roll_stays_as_it_was(grown: list[tuple[int, int]]):
    versions: list[tuple[IndexedList[Thing], list[Thing]]] = [(IndexedList(), [])]
    for at, key in grown:
        roll, known = versions[at % len(versions)]
        one = Thing(str(key))
        if one not in known:
            versions.append((roll.push(one), [*known, one]))
    for roll, known in versions:
        assert roll[:] == list(roll) == known
        for one in map(Thing, "01234567"):
            assert roll.place(one.id) == (known.index(one) if one in known else None)
            assert roll.find(one.id) == (one if one in known else None)
            assert (roll.push(one) is roll) == (one in known)
        assert roll.among("6420") == [one for one in known if one.id in "0246"]


@given(steps)
def test_an_older_map_stays_as_it_was(grown: list[tuple[int, int]]):
    versions: list[tuple[PersistentMap[int, int], dict[int, int]]] = [(PersistentMap(), {})]
    for value, (at, key) in enumerate(grown):
        ledger, known = versions[at % len(versions)]
        versions.append((ledger.put(key, value), {**known, key: value}))
    for ledger, known in versions:
        assert dict(ledger.items()) == known
        for key in range(8):
            assert (key in ledger) == (key in known)
            assert ledger.get(key) == known.get(key)
