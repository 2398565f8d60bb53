"""Counts, sizes, ages and cuts of texts; where texts differ.

Numbers, sizes, ages, dates and long texts as people read them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

DAY = 86_400


# --- numbers


def plural(count: int, one: str, many: str = "", *, grouped: bool = True) -> str:
    """Return a count and its noun; thousands are grouped by commas."""
    number = f"{count:,}" if grouped else str(count)
    return f"{number} {one if count == 1 else many or one + 's'}"


def size(count: int) -> str:
    """Return bytes in a few characters."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            break
        amount /= 1000
    return f"{amount:.0f} {unit}" if amount >= 10 or unit == "B" else f"{amount:.1f} {unit}"


def number(count: float | None) -> str:
    """Return a whole number, or a dash where there is none."""
    return "–" if count is None else f"{count:,.0f}"


def short_number(count: float | None) -> str:
    """Return a number of tokens in a few characters, or a dash where there is none."""
    if count is None:
        return "–"
    for unit, scale in (("M", 1e6), ("k", 1e3)):
        if abs(count) >= scale:
            amount = count / scale
            return f"{amount:,.0f} {unit}" if amount >= 100 else f"{amount:.3g} {unit}"
    return f"{count:,.0f}"


# --- times


def age(seconds: float) -> str:
    """Return how long ago, in the largest unit that fits."""
    left = max(0.0, seconds)
    for unit, length in (("d", DAY), ("h", 3_600), ("min", 60)):
        if left >= length:
            return f"{left / length:,.0f} {unit}"
    return f"{left:.0f} s"


def days_since(at: float, now: float) -> int:
    """Return the whole days since a moment; 0 for one that is still to come."""
    return max(0, int((now - at) // DAY))


def utc_day(at: float) -> str:
    """Return the day of a moment, such as 2026-03-01."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


def utc_minute(at: float) -> str:
    """Return the day and minute of a moment, such as 2026-03-01 12:30."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


# --- texts


def cut(text: str, limit: int) -> str:
    """Return a text of at most `limit` characters, `…` where it goes on."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def cut_line(text: str, limit: int) -> str:
    """Return a text on one line of at most `limit` characters."""
    return cut(" ".join(text.split()), limit)


# --- Which lines two texts share, in order. Pure, and no text makes it run away.


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
    head = _common_lines(old, new)
    tail = _common_lines(old[head:][::-1], new[head:][::-1])
    low, high = len(old) - tail, len(new) - tail
    middle = [(head + a, head + b, 1) for a, b in _single(old[head:low], new[head:high])]
    found = [(0, 0, head), *middle, (low, high, tail)]
    return [block for block in found if block[2]]


def _common_lines(old: Sequence[H], new: Sequence[H]) -> int:
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


# --- Where two texts part. Pure, and as quick as comparing them.


def first_byte(one: bytes, other: bytes) -> int:
    """The first byte that differs; their common length where one begins with the other."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
