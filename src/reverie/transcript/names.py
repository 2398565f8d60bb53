"""Names a model could not guess: paths, identifiers, flags, hashes.

They are what a later step is likely to repeat, so previews and sealed lines carry them.
Linear in the text, and bounded: only its first and last parts are looked at.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from hashlib import blake2b

SHORTEST = 8
LONGEST = 400
LOOKED_AT = 12_000  # characters of a text that are counted
_STEP = 200
_INSIDE = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-"
_SPACED = bytes([byte if byte in _INSIDE else ord(" ") for byte in range(256)])
_LONG = re.compile(rf" ([^ ]{{{SHORTEST - 1},}}[A-Za-z0-9_])")
_LEADING = "./-"  # of a path, a flag, a bullet
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [_ALPHABET[n & 31] + _ALPHABET[n >> 5] for n in range(1024)]
REFERENCE = re.compile(r"r:[0-9a-hjkmnp-tv-z]{6}")


def names(text: str) -> Counter[str]:
    """The telling words of a text without what leads them, and how often each occurs."""
    found = Counter[str]()
    for word, times in _counted(text).items():
        name = word.lstrip(_LEADING)
        if SHORTEST <= len(name) <= LONGEST and not _plain(name):
            found[name] += times
    return found


def _counted(text: str) -> Counter[str]:
    if len(text) > LOOKED_AT:
        foot = LOOKED_AT // 3
        text = text[: LOOKED_AT - foot] + "\n" + text[-foot:]
    return Counter(_words(text))


def _words(text: str) -> list[str]:
    """Its long words, without what stands behind them. All between words becomes a space
    first, so that the pattern begins to match once a word, not at each of its letters."""
    spaced = text.encode("utf-8", "replace").translate(_SPACED).decode()
    return _LONG.findall(" " + spaced)


@lru_cache(maxsize=5_000)
def _plain(word: str) -> bool:
    """Whether prose could hold it: no mixed case, no joined words, no letters with digits."""
    word = word.lstrip(_LEADING)
    if word.isalpha():
        return word.islower() or word.isupper() or word[1:].islower()
    return word[0].isdigit() and word.replace(".", "").replace("-", "").isdigit()


def outline(text: str, limit: int, without: str = "") -> str:
    """The most frequent telling words, within `limit` characters, leaving out known ones."""
    out: list[str] = []
    for name, _ in _counted(text).most_common():
        if len(name) < limit and not _plain(name) and name not in without:
            out.append(name)
            limit -= len(name) + 1
            if limit <= SHORTEST:
                break
    return " ".join(out)


def first_names(text: str, limit: int, looked_at: int, said: set[str]) -> list[str]:
    """The first telling words, within `limit` characters, of the text's beginning. None that
    was said before is said again."""
    out: list[str] = []
    at, stop = 0, min(len(text), looked_at)
    while at < stop and limit > SHORTEST:  # a few lines at a time: often the first are enough
        end = text.find("\n", at + _STEP + 3 * limit, stop)
        end = stop if end < 0 else end
        for name in _words(text[at:end]):
            if name not in said and len(name) < limit and not _plain(name):
                out.append(name)
                said.add(name)
                limit -= len(name) + 1
                if limit <= SHORTEST:
                    break
        at = end
    return out


@lru_cache(maxsize=2_000)
def reference(call: str) -> str:
    """A short name for a tool call, by which its result can be read back."""
    number = int.from_bytes(blake2b(call.encode("utf-8", "surrogatepass"), digest_size=4).digest())
    low, middle, high = number & 1023, number >> 10 & 1023, number >> 20 & 1023
    return f"r:{_PAIRS[low]}{_PAIRS[middle]}{_PAIRS[high]}"
