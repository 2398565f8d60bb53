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
LOOKED_AT = 12_000  # characters of a text that are counted
_STEP = 200
_INSIDE = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-"
_SPACED = bytes([byte if byte in _INSIDE else ord(" ") for byte in range(256)])
_LONG = re.compile(rf" ([^ ]{{{SHORTEST},}})")
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [_ALPHABET[n & 31] + _ALPHABET[n >> 5] for n in range(1024)]
REFERENCE = re.compile(r"r:[0-9a-hjkmnp-tv-z]{6}")


def names(text: str) -> Counter[str]:
    """The telling words of a text, with how often each occurs."""
    if len(text) > LOOKED_AT:
        foot = LOOKED_AT // 3
        text = text[: LOOKED_AT - foot] + "\n" + text[-foot:]
    found = Counter[str]()
    for word, times in Counter(_words(text)).items():
        if name := _name(word):
            found[name] = found.get(name, 0) + times
    return found


def _words(text: str) -> list[str]:
    """Its long words. Everything between words becomes a space first, so that the pattern
    begins to match once a word, not at each of its letters."""
    spaced = text.encode("utf-8", "replace").translate(_SPACED).decode()
    return _LONG.findall(" " + spaced)


def _name(word: str) -> str:
    """The word without what stands around it; empty where plain prose could hold it."""
    bare = word.strip("./-")
    if len(bare) < SHORTEST:
        return ""
    if bare.isalpha():  # mixed case tells
        plain = bare.islower() or bare.isupper() or bare[1:].islower()
    else:  # joined words, letters with digits
        plain = bare[0].isdigit() and bare.replace(".", "").replace("-", "").isdigit()
    return "" if plain else bare


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


def first_names(text: str, limit: int, looked_at: int, said: set[str]) -> list[str]:
    """The first telling words, within `limit` characters, of the text's beginning. None that
    was said before is said again."""
    out: list[str] = []
    at, stop = 0, min(len(text), looked_at)
    while at < stop and limit > SHORTEST:  # a few lines at a time: often the first are enough
        end = text.find("\n", at + _STEP + 3 * limit, stop)
        end = stop if end < 0 else end
        for word in dict.fromkeys(_words(text[at:end])):
            name = _name(word)
            if name and len(name) < limit and name not in said:
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
