"""Characters that are there and do not show: made visible for people, taken out for models.

Zero-width signs, the tag block that spells ASCII invisibly, signs that turn the direction of
writing, variation selectors and controls can carry words that nobody sees. `reveal` is what a
person is shown, `strip` what a model is given. Both keep what a script or an emoji needs: a
joiner between two letters of a script that joins, the flag of Scotland, `U+FE0F` behind a sign.

Nothing here changes a file, and a text without such characters comes back as it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

_FORMAT = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ufe00-\ufe0f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_CONTROL = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
_HIDDEN = re.compile(f"[{_FORMAT}{_CONTROL}]+")
_FLAG = re.compile("\U0001f3f4[\U000e0061-\U000e007a]{5}\U000e007f")
_FLAGS = frozenset({"gbeng", "gbsct", "gbwls"})
_JOINERS = "\u200c\u200d"
# Scripts whose words are spelt with joiners, by the beginning of their letters' names.
_JOINING = re.compile(
    "(?:ARABIC|SYRIAC|MONGOLIAN|NKO|DEVANAGARI|BENGALI|GURMUKHI|GUJARATI|ORIYA|TAMIL|TELUGU"
    "|KANNADA|MALAYALAM|SINHALA|KHMER|MYANMAR|TIBETAN)"
)


@dataclass(frozen=True, slots=True)
class Hidden:
    """A run of characters that do not show: where, which, and what the tag block spells."""

    line: int
    column: int
    points: tuple[str, ...]
    spells: str = ""


def find(text: str) -> tuple[Hidden, ...]:
    """Every run of hidden characters that nothing in the text needs."""
    return tuple(_described(text, start, end) for start, end in _spans(text))


def strip(text: str) -> str:
    """The text as a model may see it: nothing in it that a person would not see."""
    return _replaced(text, lambda _: "")


def reveal(text: str) -> str:
    """The text as a person is shown it: `⟦U+200B⟧` where something hides, and what it spells."""
    return _replaced(text, _shown)


def _shown(run: str) -> str:
    spelled = tag_text(run)
    named = " ".join(f"U+{ord(c):04X}" for c in run[:3]) + (" …" if len(run) > 3 else "")
    return f"⟦{named}: “{spelled}”⟧" if spelled else f"⟦{named}⟧"


def tag_text(run: str) -> str:
    """The words that characters of the tag block spell."""
    return "".join(chr(ord(c) - 0xE0000) for c in run if 0xE0020 <= ord(c) <= 0xE007E)


def _replaced(text: str, by: Callable[[str], str]) -> str:
    out: list[str] = []
    last = 0
    for start, end in _spans(text):
        out += [text[last:start], by(text[start:end])]
        last = end
    return "".join([*out, text[last:]]) if out else text


def _described(text: str, start: int, end: int) -> Hidden:
    above = text.count("\n", 0, start)
    column = start - (text.rfind("\n", 0, start) + 1)
    points = tuple(f"U+{ord(c):04X}" for c in text[start:end])
    return Hidden(above + 1, column + 1, points, tag_text(text[start:end]))


def _spans(text: str) -> list[tuple[int, int]]:
    if text.isascii() and text.isprintable():
        return []
    spared = {
        n
        for flag in _FLAG.finditer(text)
        if tag_text(flag[0]) in _FLAGS
        for n in range(flag.start() + 1, flag.end())
    }
    spans: list[tuple[int, int]] = []
    for found in _HIDDEN.finditer(text):
        for n in range(found.start(), found.end()):
            if n in spared or _needed(text, n):
                continue
            if spans and spans[-1][1] == n:
                spans[-1] = (spans[-1][0], n + 1)
            else:
                spans.append((n, n + 1))
    return spans


def _needed(text: str, at: int) -> bool:
    """Whether the sign is part of how something visible is written."""
    sign = text[at]
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if sign == "\ufeff":
        return at == 0
    if sign in "\ufe0e\ufe0f":
        return bool(before) and (_is_symbol(before) or before in "0123456789#*")
    if sign in _JOINERS:
        if before in ("\ufe0f", "\ufe0e"):
            before = text[at - 2 : at - 1]
        joined = _joins(before) and (_joins(after) or (sign == "\u200c" and not after.isalnum()))
        return joined or (sign == "\u200d" and _is_symbol(before) and _is_symbol(after))
    return False


def _joins(character: str) -> bool:
    return bool(character) and bool(_JOINING.match(unicodedata.name(character, "")))


def _is_symbol(character: str) -> bool:
    return bool(character) and unicodedata.category(character) in ("So", "Sk", "Sm", "Po")
