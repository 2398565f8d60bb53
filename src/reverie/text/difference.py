"""Where two texts part. Pure, and as quick as comparing them."""

from __future__ import annotations


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
