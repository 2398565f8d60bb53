"""Words as the judge of a dream compares them, and whether two sentences have the same ones.

The measure is the judge's own: what makes repairs has another.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from reverie.consolidation.subjects import tells_apart
from reverie.text.dates import NUMBER_WORDS, WEEKDAYS
from reverie.text.safety import strip
from reverie.text.stems import stem
from reverie.text.tokens import SMALL

OTHER_WORDS = 0.6
"""Share of the content words of each of two sentences that the other has, where they say the same:
of 17 near-duplicates and 8 rewordings in `tests/memory/test_facts.py` it keeps all apart."""
_MARK = re.compile(r"[*_`~]+(?=\S)|(?<=\S)[*_`~]+|\s{0,2}\(passed\)")
_LINK = re.compile(r"\]\((?![A-Za-z][\w+.-]*:)[^()\s]*\.md(?:#[^()\s]*)?\)")
_WORD = re.compile(
    "[\u2e80-\u2fff\u3005-\u3007\u3040-\u9fff\uac00-\ud7af]"
    r"|[-+±~≈<>≤≥$€£¥]?\d[\d.,:/]*(?<=\d)[%‰°]?"
    "|[^\\W\u2e80-\u9fff\uac00-\ud7af\u3040-\u30ff]+"
)
TURNS = frozenset(
    re.findall(
        r"\S+",
        """
        not no never none neither nor without cannot nothing nobody nowhere unless except until
        formerly previously longer stop stopped avoid instead rather outdated obsolete wrong
        false t don doesn didn isn aren wasn weren won wouldn shouldn mustn hasn haven hadn
        couldn nicht kein keine keinen keinem keiner keines nie niemals ohne außer weder früher
        ehemals statt falsch 不 没 無 无 未 勿 别 非 禁 除 曾
        """,
    )
)
"""Words that turn the sentence they stand in."""
JOINTS = frozenset(
    re.findall(
        r"\S+",
        """
        a an the of to in on at by for and or is are was be der die das 的
        """,
    )
)


def words_of(text: str) -> list[str]:
    """Return the words of a text as the judge compares them, numbers with their signs."""
    return [word.lower() for word in _WORD.findall(_seen(text))]


def _seen(text: str) -> str:
    return unicodedata.normalize("NFKC", strip(_LINK.sub("] ", _MARK.sub("", text))))


def same_in_other_words(one: str, other: str) -> bool:
    """Whether two sentences have the same numbers, names, denials and most content words, and no
    word of one stands in the place of a word of the other."""
    a, b = _content(one), _content(other)
    mine, theirs = set(a), set(b)
    if tells_apart(one, other) or _values(one) != _values(other):
        return False
    names = set(_capitals(one)) & set(_capitals(other))  # in their order: who reports to whom
    if [w for w in _capitals(one) if w in names] != [w for w in _capitals(other) if w in names]:
        return False
    if _places(a, theirs) & _places(b, mine):
        return False
    return len(mine & theirs) >= OTHER_WORDS * max(len(mine), len(theirs), 1)


def _content(text: str) -> list[str]:
    small = SMALL | JOINTS | TURNS
    return [stem(word) for word in words_of(text) if word not in small]


def _values(text: str) -> frozenset[str]:
    """What must be the same: numbers in digits or words, weekdays, names of code, denials."""
    words = words_of(text)
    counted = (str(NUMBER_WORDS[word]) for word in words if word in NUMBER_WORDS)
    days = (f"day {WEEKDAYS[word]}" for word in words if word in WEEKDAYS)
    signs = (word for word in words if "_" in word or word[-1].isdigit() or word[-1] in "%‰°")
    turns = ("not",) if TURNS.intersection(words) else ()
    return frozenset((*counted, *days, *signs, *turns))


def _capitals(text: str) -> list[str]:
    words = (word for word in _WORD.findall(_seen(text)) if word[0].isupper())
    return [word.lower() for word in words if word.lower() not in WEEKDAYS]


def _places(words: Sequence[str], shared: set[str]) -> set[tuple[str, str]]:
    """Between which shared words something stands that the other does not say."""
    found: set[tuple[str, str]] = set()
    left, inside = "", False
    for word in (*words, ""):
        if word and word not in shared:
            inside = True
            continue
        if inside:
            found.add((left, word))
        left, inside = word, False
    return found
