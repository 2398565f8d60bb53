"""How likely each name of a conversation is to be needed again.

A name scores for every part it stands in: more where the user said it or a call used it
than where a tool printed it, and half as much for each fifth of the conversation that has
passed since. A part counts once however often it repeats the name, so that a long listing
does not drown what was worked on. Signs of our own, ids that a provider gave, places in memory
and drawn rules are no names. Linear in the text, the same for the same words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from types import MappingProxyType

from reverie.light import dataclass
from reverie.settings import DEFAULTS
from reverie.transcript.audit.parts import Part, Who
from reverie.transcript.names import LOOKED_AT, names

WEIGHTS: Mapping[Who, float] = MappingProxyType(
    {"user": 4.0, "call": 4.0, "stand": 4.0, "assistant": 1.0, "result": 0.3, "error": 0.3}
)
HALVED = 0.2  # of the conversation: a name last seen so long ago counts half
SUFFIX = 4  # letters of a file's suffix, at most
LONGEST = 300  # characters of a name; what is longer is data
# Characters that one reference surely reads back: the rest is for the lines' numbers.
READABLE = int(DEFAULTS.collapse_reference * DEFAULTS.text_bytes_per_token * 0.8)
_INSIDE = re.compile(r"[A-Za-z0-9_./-]")
_OURS = frozenset(  # tags that frame what we attach, and what stands in a result's place
    {"persisted-output", "system-reminder", "restored-file", "conversation-summary"}
)
_STORED = "/tool-results/"
_MADE_UP = re.compile(  # ids that providers and clients give, and places in memory
    r"(?:srv)?toolu_(?=\w*\d)\w+|(?:call|msg|req|resp|chatcmpl)[_-](?=\w*\d)[A-Za-z0-9]{12,}"
    r"|0x[0-9a-fA-F]{6,16}"
)
_LINE = re.compile(r"(\.[A-Za-z]\w{0,4})-\d+(?:-.*)?$")  # a file's name with a line of a listing


@dataclass(slots=True)
class Name:
    """A name and where it stands."""

    text: str
    score: float = 0.0
    source: str = ""  # the last entry it stands in
    readers: list[str] = field(default_factory=list[str])  # ids whose reference reads it back

    @property
    def is_path(self) -> bool:
        return "/" in self.text


def ranked(found: Sequence[Part]) -> list[Name]:
    """The names of a conversation, the likeliest to be needed first."""
    known: dict[str, Name] = {}
    last = found[-1].at if found else 0
    first = found[0].at if found else 0
    half = max(1.0, HALVED * (last - first + 1))
    for part in found:
        weight = WEIGHTS.get(part.who, 0.0)
        if not weight:
            continue
        gain = weight * 0.5 ** ((last - part.at) / half)
        every = names_in(part.text)
        reached = set(_reached(part, every))
        for text in every:
            name = known.get(text)
            if name is None:
                name = known[text] = Name(text)
            name.score += gain
            name.source = part.source
            if text in reached and part.reader not in name.readers[-1:]:
                name.readers.append(part.reader)
    return sorted(known.values(), key=lambda name: (-name.score, name.text))


def _reached(part: Part, every: list[str]) -> list[str]:
    """The names of a part that a reference to it reads back."""
    if not part.reader:
        return []
    return every if len(part.text) <= READABLE else names_in(readable(part.text))


def readable(text: str) -> str:
    """What of a text its reference surely reads back at once."""
    return text[:READABLE]


def names_in(text: str) -> list[str]:
    """The telling words of a text, each once, in the order they stand. Of words joined by
    dots the parts count, but for a file's name."""
    out: dict[str, None] = {}
    for at in range(0, len(text), LOOKED_AT):
        here = text[at : at + LOOKED_AT]
        for found in names(here):
            if len(found) > LONGEST or is_junk(found):
                continue
            word = _LINE.sub(r"\1", found)
            if "/" in word:
                out[_rooted(word, here)] = None
            elif "." not in word or _is_file(word):
                out[word] = None
            else:
                out.update((part, None) for one in word.split(".") for part in names(one))
    return list(out)


def is_junk(word: str) -> bool:
    """Whether a word is nobody's: a sign of ours, an id, a place in memory, a drawn rule."""
    if word in _OURS or _STORED in word or _MADE_UP.fullmatch(word):
        return True
    return not any(sign.isalnum() for sign in word)


def _rooted(word: str, text: str) -> str:
    """A path with the slash it begins with, if it does."""
    at = text.find(word)
    begins = at >= 1 and text[at - 1] == "/" and (at == 1 or not _INSIDE.match(text[at - 2]))
    return f"/{word}" if begins else word


def _is_file(word: str) -> bool:
    stem, _, suffix = word.rpartition(".")
    return "." not in stem and len(suffix) <= SUFFIX and suffix.islower()
