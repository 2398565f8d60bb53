"""Memories that say the same, also in other words, found without comparing every two.

Two files are near-duplicates where most of what is rare in either is in both: terms weigh by how
few files have them, so that what a project's memories all speak of counts little. Only files that
share several of their rarest terms are compared at all; the work grows with the number of files.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TypeVar

from reverie.memory.hygiene.reading import Memory

K = TypeVar("K", bound=Hashable)

SAME = 0.55
"""Share of the weight of two files' terms that both must have to be duplicates."""
LEAST_TERMS = 5
"""Files with fewer terms are too short to be told apart from another by them."""
_PROBES = 24  # of a file's terms, the rarest, by which others are found
_CROWD = 40  # files with one term, beyond which it tells nothing
_SHARED = 3  # rarest terms that two files must share to be compared


def weights(sets: Iterable[frozenset[str]]) -> dict[str, float]:
    """How much each term tells: the fewer have it, the more."""
    counts: Counter[str] = Counter()
    number = 0
    for one in sets:
        number += 1
        counts.update(one)
    return {term: math.log(1 + number / count) for term, count in counts.items()}


def overlap(a: frozenset[str], b: frozenset[str], weight: Mapping[str, float]) -> float:
    """The weight of the terms that both have, as a share of that of all."""
    shared = sum(weight.get(term, 1.0) for term in a & b)
    return shared / (shared + sum(weight.get(term, 1.0) for term in a ^ b) or 1.0)


def candidates(
    sets: Mapping[K, frozenset[str]],
    weight: Mapping[str, float],
    *,
    probes: int = _PROBES,
    crowd: int = _CROWD,
    shared: int = _SHARED,
) -> Iterator[tuple[K, K]]:
    """Pairs that share several of their rarest terms."""
    holders: dict[str, list[K]] = {}
    for key, own in sets.items():
        for term in sorted(own, key=lambda term: (-weight[term], term))[:probes]:
            holders.setdefault(term, []).append(key)
    counts: Counter[tuple[K, K]] = Counter()
    for keys in holders.values():
        if 1 < len(keys) <= crowd:
            counts.update(combinations(keys, 2))
    for pair, number in counts.items():
        least = min(len(sets[pair[0]]), len(sets[pair[1]]), probes)
        if number >= min(shared, max(2, least // 3)):
            yield pair


def near(
    sets: Mapping[K, frozenset[str]],
    weight: Mapping[str, float],
    *,
    probes: int = 7,
    crowd: int = _CROWD,
) -> Iterator[tuple[K, K]]:
    """Pairs of short sets that share two of their rarest terms."""
    holders: dict[tuple[str, str], list[K]] = {}
    for key, own in sets.items():
        rare = sorted(own, key=lambda term: (-weight[term], term))[:probes]
        for pair in combinations(sorted(rare), 2):
            holders.setdefault(pair, []).append(key)
    seen: set[tuple[K, K]] = set()
    for keys in holders.values():
        if 1 < len(keys) <= crowd:
            for found in combinations(keys, 2):
                if found not in seen:
                    seen.add(found)
                    yield found


def duplicates(memories: Sequence[Memory]) -> list[tuple[Memory, Memory, float]]:
    """Pairs of near-duplicates, the older file first, with how alike they are."""
    sets = {n: one.all for n, one in enumerate(memories)}
    sets = {n: own for n, own in sets.items() if len(own) >= LEAST_TERMS}
    weight = weights(sets.values())
    found: list[tuple[Memory, Memory, float]] = []
    for a, b in candidates(sets, weight):
        share = overlap(sets[a], sets[b], weight)
        if share >= SAME:
            pair = sorted((memories[a], memories[b]), key=lambda one: (one.written, one.key))
            found.append((pair[0], pair[1], share))
    return sorted(found, key=lambda pair: (pair[0].key, pair[1].key))
