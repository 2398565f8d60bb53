"""Counts and sizes in words: a number with its noun, bytes in a few signs."""

from __future__ import annotations


def plural(count: int, one: str, many: str = "") -> str:
    """A count and its noun."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def size(count: int) -> str:
    """Bytes in a few signs."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            break
        amount /= 1000
    return f"{amount:.0f} {unit}" if amount >= 10 or unit == "B" else f"{amount:.1f} {unit}"


def age(seconds: float) -> str:
    """How long ago, in the largest unit that fits."""
    left = max(0.0, seconds)
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if left >= length:
            return f"{left / length:,.0f} {unit}"
    return f"{left:.0f} s"
