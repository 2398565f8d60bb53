"""Which lines two texts share, in order. Pure, and no text makes it run away."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import TypeVar

from reverie.text.difference import first_byte

H = TypeVar("H", bound=Hashable)

_MAX_PAIRS = 20_000
_MAX_LINES = 2_000


def union(ours: Sequence[H], theirs: Sequence[H]) -> tuple[H, ...]:
    """All lines of both, what they share once."""
    out: list[H] = []
    low = start = 0
    for left, right, size in [*matching(ours, theirs), (len(ours), len(theirs), 0)]:
        out += [*ours[low:left], *theirs[start:right], *ours[left : left + size]]
        low, start = left + size, right + size
    return tuple(out)


def matching(old: Sequence[H], new: Sequence[H]) -> list[tuple[int, int, int]]:
    """Stretches that two texts share, as (place in the old, place in the new, lines), in order.

    Long texts, and those that repeat the same lines, are matched from both ends and by the lines
    that each has once: what that costs grows with their length alone.
    """
    counts = Counter(new)
    pairs = sum(counts[line] for line in old)
    if pairs <= _MAX_PAIRS and len(old) + len(new) <= _MAX_LINES:
        from difflib import SequenceMatcher

        return [*SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()[:-1]]
    head = _shared(old, new)
    tail = _shared(old[head:][::-1], new[head:][::-1])
    low, high = len(old) - tail, len(new) - tail
    middle = [(head + a, head + b, 1) for a, b in _single(old[head:low], new[head:high])]
    found = [(0, 0, head), *middle, (low, high, tail)]
    return [block for block in found if block[2]]


def _shared(old: Sequence[H], new: Sequence[H]) -> int:
    """How many lines two texts begin with in common."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(old), len(new)))


def _single(old: Sequence[H], new: Sequence[H]) -> list[tuple[int, int]]:
    """The lines that both texts have just once, as many as stand in the same order."""
    left, right = Counter(old), Counter(new)
    places = {line: n for n, line in enumerate(new)}
    once = [(n, places[line]) for n, line in enumerate(old) if left[line] == right[line] == 1]
    ends: list[int] = []  # the lowest place that a run of each length can end with
    last: list[int] = []  # which pair that is
    before: list[int] = []
    for number, (_, at) in enumerate(once):
        size = bisect_left(ends, at)
        ends[size : size + 1] = [at]
        last[size : size + 1] = [number]
        before.append(last[size - 1] if size else -1)
    run: list[tuple[int, int]] = []
    number = last[-1] if last else -1
    while number >= 0:
        run.append(once[number])
        number = before[number]
    return run[::-1]


def changed_lines(old: bytes, new: bytes) -> tuple[bytes, bytes]:
    """The lines of two texts between their first difference and their last."""
    start = old.rfind(b"\n", 0, first_byte(old, new)) + 1
    same = first_byte(old[start:][::-1], new[start:][::-1])
    return _upto(old, start, same), _upto(new, start, same)


def _upto(text: bytes, start: int, same: int) -> bytes:
    end = text.find(b"\n", len(text) - same)
    return text[start:] if end < 0 else text[start : end + 1]
