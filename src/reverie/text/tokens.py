"""A text as the terms it is found by.

Words are folded (case, width, accents) and stemmed. An identifier gives its parts and itself:
`currentSessionID`, `current_session_id` and "current session id" meet. Scripts written without
spaces give pairs of neighbouring characters. Signs, emoji and query syntax give nothing, so a
term is letters and digits only and can stand in any query language as it is.

Total and bounded: any text has terms, at most as many as it has characters, and none is long.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from reverie.text.stems import stem
from reverie.text.stops import CHINESE, FUNCTION

LONGEST = 40
"""Characters of a term; what is longer is no word, and its beginning stands for it."""

# Han, kana, Hangul, Thai, Lao, Khmer, Burmese: written without spaces that part words.
_DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
)
_RUN = re.compile(f"[{_DENSE}]+|[^\\W{_DENSE}]+(?:['’][^\\W_{_DENSE}]+)*")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_IS_DENSE = re.compile(f"[{_DENSE}]")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_SHORT = re.compile("(?:['’](?:s|d|m|ll|re|ve)|n['’]t)$", re.IGNORECASE)
_APOSTROPHE = re.compile("['’]").search
_MARKS = re.compile("[\u0300-\u036f]")


def has_chinese(text: str) -> bool:
    """Whether a text has a Han character."""
    return _HAN.search(text) is not None


def terms(text: str) -> list[str]:
    """The terms of a text in their order, function words left out."""
    return list(_terms(folded(text)))


def folded(text: str) -> str:
    """The text with compatible forms and accents made one; its case stays, for identifiers."""
    if text.isascii():
        return text
    return _MARKS.sub("", unicodedata.normalize("NFC", _apart(unicodedata.normalize("NFKC", text))))


def _apart(text: str) -> str:
    """Accents of Latin letters off; Hangul and others keep what makes them up."""
    return "".join(
        unicodedata.normalize("NFD", one)[0] if "\u00c0" <= one <= "\u024f" else one for one in text
    )


def _terms(text: str) -> Iterator[str]:
    for run in _RUN.findall(text):
        if _IS_DENSE.match(run):
            yield from pairs(run)
        else:
            yield from _word(run)


def _word(run: str) -> Iterator[str]:
    """A word, or the parts of an identifier and the identifier without its joints."""
    plain = _SHORT.sub("", run).replace("'", "").replace("’", "") if _APOSTROPHE(run) else run
    lower = plain.casefold()
    if lower != plain or not plain.isalpha():
        parts = [part.casefold() for part in _PART.findall(plain)]
        if len(parts) > 1:
            yield from (stem(part[:LONGEST]) for part in parts if _tells(part))
            yield lower.replace("_", "")[:LONGEST]
            return
        lower = lower.strip("_")
    if _tells(lower):
        yield stem(lower[:LONGEST])


def _tells(word: str) -> bool:
    return word not in FUNCTION and (len(word) > 1 or word.isdigit())


def pairs(run: str) -> Iterator[str]:
    """A run of a script without spaces: each two neighbours, or the one there is."""
    if len(run) == 1:
        yield run
    for n in range(len(run) - 1):
        yield run[n : n + 2]


def asked(text: str) -> str:
    """A query's text with the Chinese words of asking made spaces, where more than one sign of
    what they stood between is left."""
    return _RUN.sub(lambda run: _asked(run[0]) if _IS_DENSE.match(run[0]) else run[0], text)


def _asked(run: str) -> str:
    pieces = [piece for piece in _STOPS.split(run) if piece]
    if any(len(piece) == 1 for piece in pieces):
        pieces = [piece for piece in _LONG_STOPS.split(run) if piece]
    return " ".join(pieces)


_STOPS = re.compile("|".join(CHINESE))
_LONG_STOPS = re.compile("|".join(one for one in CHINESE if len(one) > 1))
