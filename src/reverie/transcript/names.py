"""Names a model could not guess: paths, identifiers, flags, hashes.

They are what a later step is likely to repeat, so previews and sealed lines carry them.
Linear in the text, and bounded: only its first and last parts are looked at.
"""

from __future__ import annotations

import re
from collections import Counter
from hashlib import blake2b

_WORD = re.compile(r"[\w./-]{6,}", re.ASCII)
_TELLING = re.compile(
    r"[a-z][A-Z]|[A-Za-z][0-9]|[0-9][A-Za-z]|[\w]/[\w]|[A-Za-z0-9][_-][A-Za-z0-9]"
)
SHORTEST = 8
LOOKED_AT = 200_000
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
REFERENCE = re.compile(r"r:[0-9a-hjkmnp-tv-z]{6}")


def names(text: str) -> Counter[str]:
    """The telling words of a text, with how often each occurs."""
    if len(text) > LOOKED_AT:
        text = text[: LOOKED_AT // 2] + "\n" + text[-LOOKED_AT // 2 :]
    found = Counter(_WORD.findall(text))
    out: Counter[str] = Counter()
    for word, count in found.items():
        bare = word.strip("./-")
        if len(bare) >= SHORTEST and _telling(bare):
            out[bare] += count
    return out


def _telling(word: str) -> bool:
    """Joined words, mixed case, letters with digits: nothing plain prose would hold."""
    if word.isalpha():
        return not (word.islower() or word.isupper() or word[1:].islower())
    return not word.replace(".", "").replace("-", "").isdigit()


def outline(text: str, limit: int, without: str = "") -> str:
    """The most frequent telling words, within `limit` characters, leaving out known ones."""
    out: list[str] = []
    size = 0
    for word, _ in names(text).most_common():
        if size + len(word) + 1 > limit or word in without:
            continue
        out.append(word)
        size += len(word) + 1
    return " ".join(out)


def reference(call: str) -> str:
    """A short name for a tool call, by which its result can be read back."""
    number = int.from_bytes(blake2b(call.encode("utf-8", "surrogatepass"), digest_size=4).digest())
    letters = "".join(_ALPHABET[(number >> shift) & 31] for shift in range(0, 30, 5))
    return f"r:{letters}"
