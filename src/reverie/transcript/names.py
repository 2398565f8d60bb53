"""Names a model could not guess: paths, identifiers, flags, hashes.

They are what a later step is likely to repeat, so previews and sealed lines carry them.
Linear in the text, and bounded: only its first and last parts are looked at.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container
from functools import lru_cache
from hashlib import blake2b

SHORTEST = 8
LOOKED_AT = 12_000  # characters of a text that are counted
_STEP = 400
_INSIDE = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-"
_SPACED = bytes([byte if byte in _INSIDE else 32 for byte in range(256)])
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [_ALPHABET[n & 31] + _ALPHABET[n >> 5] for n in range(1024)]
REFERENCE = re.compile(r"r:[0-9a-hjkmnp-tv-z]{6}")


def names(text: str) -> Counter[str]:
    """The telling words of a text, with how often each occurs."""
    if len(text) > LOOKED_AT:
        foot = LOOKED_AT // 3
        text = text[: LOOKED_AT - foot] + "\n" + text[-foot:]
    found = Counter(map(_name, _words(text)))
    found.pop("", None)
    return found


def _words(text: str) -> list[bytes]:
    """Its long words; as bytes, which are cut apart in half the time a pattern takes."""
    words = text.encode("utf-8", "replace").translate(_SPACED).split()
    return [word for word in words if len(word) >= SHORTEST]


@lru_cache(maxsize=20_000)
def _name(word: bytes) -> str:
    """The word without what stands around it; empty where plain prose could hold it."""
    bare = word.decode().strip("./-")
    return bare if len(bare) >= SHORTEST and _telling(bare) else ""


def _telling(word: str) -> bool:
    """Joined words, mixed case, letters with digits: nothing plain prose would hold."""
    if word.isalpha():
        return not (word.islower() or word.isupper() or word[1:].islower())
    return not word.replace(".", "").replace("-", "").isdigit()


def outline(text: str, limit: int, without: str = "") -> str:
    """The most frequent telling words, within `limit` characters, leaving out known ones."""
    found = names(text)
    out: list[str] = []
    for name in sorted(found, key=found.__getitem__, reverse=True):
        if len(name) < limit and name not in without:
            out.append(name)
            limit -= len(name) + 1
            if limit <= SHORTEST:
                break
    return " ".join(out)


def first_names(text: str, limit: int, looked_at: int, without: Container[str]) -> list[str]:
    """The first telling words, within `limit` characters, of the text's beginning."""
    out: dict[str, None] = {}
    at, stop = 0, min(len(text), looked_at)
    while at < stop and limit > SHORTEST:  # a few lines at a time: often the first are enough
        end = text.find("\n", at + _STEP, stop)
        end = stop if end < 0 else end
        for name in map(_name, _words(text[at:end])):
            if name and len(name) < limit and name not in out and name not in without:
                out[name] = None
                limit -= len(name) + 1
        at = end
    return list(out)


def reference(call: str) -> str:
    """A short name for a tool call, by which its result can be read back."""
    number = int.from_bytes(blake2b(call.encode("utf-8", "surrogatepass"), digest_size=4).digest())
    low, middle, high = number & 1023, number >> 10 & 1023, number >> 20 & 1023
    return f"r:{_PAIRS[low]}{_PAIRS[middle]}{_PAIRS[high]}"
