"""The words of a passage that carry what it says.

Hard terms are what no paraphrase changes: numbers, names, identifiers, paths. Soft terms are
the other words, by their stem, without those that only join. Whether a passage denies is kept
beside them, since one word turns its meaning. A script without spaces gives a term a pair of
signs. The same text gives the same terms in any case, Markdown or white space.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from reverie.light import dataclass
from reverie.text.stems import stem
from reverie.text.untrusted import strip

_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\u3040-\u30ff]+")
_TOKEN = re.compile(
    r"[^\W\u2e80-\u9fff\uac00-\ud7af\u3040-\u30ff]"
    r"(?:[^\W\u2e80-\u9fff\uac00-\ud7af\u3040-\u30ff]|[./:@+'’#-](?=\w))*"
    "|[\u2e80-\u9fff\uac00-\ud7af\u3040-\u30ff]+"
)
_LINK = re.compile(r"\]\((?:(?![A-Za-z][\w+.-]*:)[^()\s]*\.md(?:#[^()\s]*)?|([^()\s]*))\)")
"""Where a link leads; to another memory, that is no word of the text."""
_INSIDE = re.compile(r"[_/.:@#+]|[a-z][A-Z]|\d")
_PART = re.compile(r"[^\W_]+")
SMALL = frozenset(
    re.findall(
        r"\S+",
        """
        a an the this that these those there here it its it's is are was were be been being am
        i me my we us our you your he him his she her they them their who whom which what
        and or but nor so if then than as at by for from in into of off on onto out over to up
        upon with within via per about above below under between through during while when where
        why how has have had having do does did done doing will would shall should can could may
        might must need also just only very too more most much many some any each every both all
        such same other another own one ones well even still yet already again
        because since though although however therefore thus hence
        """,
    )
)
DENIALS = frozenset(
    re.findall(
        r"\S+",
        """not no never none neither nor without cannot can't don't doesn't didn't isn't aren't
        wasn't weren't won't wouldn't shouldn't mustn't hasn't haven't hadn't couldn't nothing
        nobody nowhere""",
    )
)
_NO_WIDE = re.compile("不|没|無|无|未|勿|别|禁止|非")
_SINCE = frozenset(
    ("today", "yesterday", "tomorrow", "tonight", "now", "currently", "recently", "ago", "next")
)
"""Words that tell a time from where they were written; a date in their place says more."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a passage says, as sets that can be compared."""

    hard: frozenset[str]
    soft: frozenset[str]
    denies: bool
    numbers: frozenset[str] = frozenset()  # those of the hard terms that are amounts or dates

    @property
    def all(self) -> frozenset[str]:
        return self.hard | self.soft

    def __len__(self) -> int:
        return len(self.hard) + len(self.soft)


def tokens(text: str) -> Iterator[str]:
    """The words as they are written, without marks around them."""
    seen = strip(text)
    if not seen.isascii():
        seen = unicodedata.normalize("NFKC", seen).replace("’", "'")
    for found in _TOKEN.finditer(_LINK.sub(_target, seen)):
        yield found[0].strip("_") or found[0]


def _target(found: re.Match[str]) -> str:
    return f"] {found[1] or ''} "


def plain(text: str) -> str:
    """The words in a row, lower case and one space apart: what is compared word by word."""
    return " ".join(token.lower() for token in _parts(text))


def _parts(text: str) -> Iterator[str]:
    for token in tokens(text):
        yield from _PART.findall(token)


def terms(text: str, *, titled: bool = False) -> Terms:
    """The terms of a passage; in one that is `titled`, a capital letter makes no name."""
    hard: set[str] = set()
    soft: set[str] = set()
    numbers: set[str] = set()
    denies = False
    for at, token in enumerate(tokens(text)):
        low = token.lower()
        if _WIDE.match(token):
            soft.update(token[n : n + 2] for n in range(max(1, len(token) - 1)))
            denies = denies or _NO_WIDE.search(token) is not None
        elif low in DENIALS and token != "None":
            denies = True
        elif _INSIDE.search(token) and "'" not in token:
            hard.add(low)
            if token[0].isdigit():
                numbers.add(low)
        elif "-" in token or "'" in token:
            soft.update(stem(p) for p in _PART.findall(low) if len(p) > 1 and p not in SMALL)
        elif (token.isupper() and len(token) > 1) or (token[0].isupper() and at and not titled):
            hard.add(stem(low) if low not in SMALL else "")
        elif low not in SMALL and low not in _SINCE and len(low) > 1:
            soft.add(stem(low))
    hard.discard("")
    return Terms(frozenset(hard), frozenset(soft - hard), denies, frozenset(numbers))
