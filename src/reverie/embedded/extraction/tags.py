"""An English sentence as a row of signs, one for each word: who, in which mode, about what.

A rule about what people say to an agent is short once words are classes: "you never ran the
tests", "u didnt even lint" and "you forgot to format" are nearly one row of signs. A frequent long
word counts also with a letter wrong; empty words have no sign; commas and "and" keep theirs, since
clauses begin behind them. Linear, and bounded by the words that are read. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TypeAlias

from reverie.embedded.extraction.lexicon import (
    DOUBLED,
    DROPPED,
    FAULTS,
    GLUED,
    IRREGULAR,
    JOINING,
    MAKES,
    MISTYPED,
    SIGNS,
    STEPS,
)

LONG = 6  # letters of a word that may have one of them wrong
MAX = 120  # words of a sentence that are read
NAME, MARK, JOINT, OTHER = "N", ",", "&", "."

_NAMES = (
    r"\u00b7+|@\S+|https?://\S+|(?<!\w)--?[a-z][\w-]*|(?:\.{0,2}/)?[\w.-]+/[\w./-]+|\w+\(\)"
    r"|\w+(?:_\w+)+|\w*\.(?:py|go|tsx?|jsx?|rs|java|cpp|md|json|toml|ya?ml|sh|sql|rb|vue|html|css)\b"
    r"|(?-i:[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*)"
)
_TOKEN = re.compile(
    rf"(?P<name>{_NAMES})|(?P<word>[^\W_]+(?:-[^\W_]+)*)(?P<tail>'[a-z]+)?"
    r"|(?P<mark>[,;:()–—]|[.!?](?=\s|$)|-(?=\s))",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"(do|did|does|have|has|had|is|are|was|were|should|could|would|ca|wo|must|need|can)n'?t"
)
NAMES = re.compile(_NAMES, re.IGNORECASE)
PROGRAM = re.compile(rf"{_NAMES}|\b(?:{SIGNS['T']})\b", re.IGNORECASE)
"""A name in the code, quoted words, or what a program is or shows."""
WORK = rf"(?:{'|'.join(sorted(SIGNS['p'].split('|') + SIGNS['G'].split('|'), key=len)[::-1])})"

Token: TypeAlias = tuple[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Tagged:
    """A sentence's signs, and where the words of each begin and end."""

    signs: str
    places: tuple[tuple[int, int], ...]


def forms(verb: str) -> list[str]:
    """Base, past, participle and -ing."""
    if verb in _irregular():
        return _irregular()[verb]
    if verb in DOUBLED.split():
        return [verb, *[f"{verb}{verb[-1]}ed"] * 2, f"{verb}{verb[-1]}ing"]
    if verb.endswith("e"):
        return [verb, *[f"{verb}d"] * 2, f"{verb[:-1]}ing"]
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return [verb, *[f"{verb[:-1]}ied"] * 2, f"{verb}ing"]
    return [verb, *[f"{verb}ed"] * 2, f"{verb}ing"]


@cache
def _irregular() -> dict[str, list[str]]:
    return {row.split()[0]: [*row.split()] for row in IRREGULAR.split(",")}


@cache
def bases() -> dict[str, str]:
    """The base of every past, participle and -ing of a step that is one word."""
    verbs = f"{MAKES} {STEPS} {FAULTS}".replace("_", "-").split()
    return {form: verb for verb in verbs for form in forms(verb.replace("-", "_"))[::-1]}


@cache
def _words() -> dict[tuple[str, ...], str]:
    """Every word and phrase, with its sign."""
    out: dict[tuple[str, ...], str] = {}
    for table, signs in ((MAKES, "JVVv"), (STEPS, "jCCc"), (FAULTS, "RRRR")):
        for verb in table.split():  # the base last: "run" is an order before it is a past
            for form, sign in zip(forms(verb)[::-1], signs, strict=True):
                for between in ("-", " ", "") if "_" in form else ("",):
                    out[tuple(form.replace("_", between).split(" "))] = sign
    for sign, row in SIGNS.items():
        for phrase in row.split("|"):
            key = tuple(phrase.split(" "))
            both = sign == "p" and out.get(key) in ("c", "v")
            out[key] = f"{out[key]}{sign}" if both else sign
    return out


@cache
def _longest() -> dict[str, int]:
    """How many words the longest phrase has that begins with a word."""
    out: dict[str, int] = {}
    for key in _words():
        out[key[0]] = max(out.get(key[0], 1), len(key))
    return out


@cache
def _near() -> dict[str, str]:
    """The words that count with a letter wrong, by what is left of them without one letter."""
    words = MISTYPED.split()
    cut = {word[:at] + word[at + 1 :]: word for word in words for at in range(len(word))}
    return cut | {word: word for word in words}


def _mended(word: str) -> str:
    """The word of the table for one that has a letter wrong, else the word."""
    if len(word) < LONG - 1 or word in _longest():
        return word
    near = _near()
    cut = (word, *(word[:at] + word[at + 1 :] for at in range(len(word))))
    return next((near[one] for one in cut if one in near), word)


@lru_cache(maxsize=512)
def tagged(masked: str) -> Tagged:
    """The signs of a sentence whose quoted words are masked."""
    tokens = _tokens(masked)
    signs, at = "", 0
    places: list[tuple[int, int]] = []
    while at < len(tokens):
        count, sign = _looked_up(tokens, at)
        if tokens[at][0] == "do" and count == 1 and _orders(signs, tokens, at):
            sign = "v"
        elif sign == "a" and _lacks_subject(signs, tokens, at):
            sign = "K"
        elif len(sign) > 1:
            sign = sign[0] if not signs or signs[-1] in ",&!yiwLnxagBKdh1EtlMobfFqk" else sign[1]
        if sign:
            signs += sign
            places.append((tokens[at][1][0], tokens[at + count - 1][1][1]))
        at += count
    return Tagged(signs, tuple(places))


def _tokens(masked: str) -> list[Token]:
    out: list[Token] = []
    for found in _TOKEN.finditer(masked):
        place = found.span()
        if len(out) >= MAX:
            break
        if found["name"]:
            out.append((NAME, place))
        elif found["mark"]:
            out.append((MARK, place))
        else:
            word, tail = found["word"].lower(), (found["tail"] or "").lower()
            negated = _NEGATED.fullmatch(word + tail)
            parts = [negated[1], "not"] if negated else GLUED.get(word + tail, word).split()
            if tail and not negated and word + tail not in GLUED:
                parts.append(tail)
            out += [(part, place) for part in parts]
    return out


def _looked_up(tokens: list[Token], at: int) -> tuple[int, str]:
    """How many words are read at a place, and their sign; no sign for what is dropped."""
    word = tokens[at][0]
    if word in (NAME, MARK):
        return 1, word
    behind = tokens[at + 1][0] if at + 1 < len(tokens) else MARK
    if word == "no" and behind == MARK:  # an answer, not "no tests"
        return 1, ""
    known = _mended(word)
    for count in range(min(_longest().get(known, 1), len(tokens) - at), 0, -1):
        key = (known, *(token[0] for token in tokens[at + 1 : at + count]))
        if key in _words():
            return count, _words()[key]
    if word in JOINING.split():
        return 1, JOINT
    return 1, "" if word in DROPPED.split() else OTHER


def _orders(signs: str, tokens: list[Token], at: int) -> bool:
    """Whether "do" is a step of its own and no helper: "do small commits"."""
    behind = tokens[at + 1][0] if at + 1 < len(tokens) else ""
    helps = behind in ("not", "you", "u", "we", "i", "they", "it", "the")
    return (not signs or signs[-1] in ",&!") and not helps


def _lacks_subject(signs: str, tokens: list[Token], at: int) -> bool:
    """Whether a clause begins with "isn't" or "haven't" and no "do not": nobody is told."""
    behind = [token[0] for token in tokens[at + 1 : at + 3]]
    told = tokens[at][0] == "do" or behind[:1] != ["not"] or behind[1:] in (["you"], ["u"], ["we"])
    return (not signs or signs[-1] in ",&") and not told
