"""Whether a value is made of words.

It is cut into words where the case changes and at every sign and number. A part counts as a
word when its pairs of neighbouring letters are those that words are made of, one in six letters
aside, and there is a vowel in it. No dictionary is known and nothing looked at but the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

# After each letter the letters that often follow it, in English and in names of code.
_PAIRS = (
    "abcdefgiklmnprstuvwxyz babceijlmorstuy cacehiklorstuy dabcdegilmnoprsuvwy "
    "eabcdefghijklmnopqrstuvwxy faefilorstuy gaeghilnorsuy haeilmorstuy iabcdefgklmnoprstvxz "
    "jeou kaefilnpstuwy labcdefiklmopstuvy mabefilmopsuy nacdefghijklmnoprstuvy "
    "oabcdefghijklmnoprstuvwxyz padefghiloprstuy qu rabcdefghiklmnoprstuvwy sacefhiklmnopqstuwy "
    "tacdefhilmnorstuwy uabcdefgilmnoprst vaeio waehilnors xaceipt yabceilmnopstwz zaeio"
)
_FOLLOWS = {letters[0]: frozenset(letters[1:]) for letters in _PAIRS.split()}
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_UNLIKELY = re.compile(r"(.)\1\1|[^aeiouy]{5}")
_VOWEL = re.compile(r"[aeiouy]")


def worded(value: str, share: float) -> bool:
    """Whether this share of its letters belongs to words, numbers between them left aside."""
    words = noise = 0
    for part, apart, after_word in _parts(value):
        if is_word(part):
            words += len(part)
        elif not (_is_number(part) and (apart or after_word)) and not (apart and len(part) < 3):
            noise += len(part)
    return words >= 4 and words >= share * (words + noise)


def _parts(value: str) -> Iterator[tuple[str, bool, bool]]:
    """Each part, whether signs or ends are on both sides of it, and whether a word is before it."""
    last, word = -1, False
    for found in _PART.finditer(value):
        start, end = found.span()
        before = start != last
        after = end == len(value) or not value[end].isalnum()
        yield found[0], before and after, word and not before
        last, word = end, is_word(found[0])


def _is_number(part: str) -> bool:
    return part.isdigit() and len(part) <= 4


def is_word(part: str) -> bool:
    word = part.lower()
    if len(word) < 3 or not word.isalpha() or not _VOWEL.search(word) or _UNLIKELY.search(word):
        return False
    rare = sum(after not in _FOLLOWS[one] for one, after in pairwise(word))
    return rare <= len(word) // 6
