"""Statements at odds: two memories say of the same subject what cannot both be.

Two statements have one subject where, without their values, nearly all their words agree. They are
at odds where the values differ: a number, an amount, a date, a name or weekday in the same place, a
word against its opposite, or where one denies what the other says. One noun with two ids makes two
subjects ("Crane one", "Crane two"), "not" before something that the other does not speak of denies
nothing, and a plain word that differs in its place makes two subjects. Both are shown and stay:
which one holds is for a person or a model to say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Literal, TypeAlias

from reverie.consolidation.folder import ParsedTopic, Statement, statements
from reverie.consolidation.text_checks import candidates, overlap, weights
from reverie.consolidation.words import have_two_subjects
from reverie.light import dataclass
from reverie.text.dates import NUMBER_WORDS, WEEKDAYS, absolute
from reverie.text.stems import stem
from reverie.text.tokens import DENIALS, SMALL, Terms, plain, tokens

How: TypeAlias = Literal["value", "denial", "date", "name", "weekday"]

# Set on seeds 1 to 10 of `bench/planted.py`. Of seeds 1 and 103 they find 143 of 152 planted
# contradictions, and in 642 documents that nothing was done to they see none.
SUBJECT = 0.62  # weight of the words, beside values, that two statements on one subject share
LEAST = 3  # words beside values that a statement needs to have a subject, else all must be the same
SAME_WORDS = 0.8  # how alike a statement and its denial are, in their order
SAME_LINE = 0.7  # how alike two statements on one topic are, in their order: without it 142
RELATED = 0.6  # share of the words of one memory's name that another's has on the same topic

_LEFT_UNSAID = re.compile(
    r"\b(?:it|its|this|that|these|those|they|them|their|here|above|below|he|she|his|her)\b|它|其|这",
    re.IGNORECASE,
)
_OPPOSITES = (
    *("true false", "enabled disabled", "allowed forbidden", "required optional"),
    *("public private", "sync async", "synchronous asynchronous", "manual automatic"),
    *("manually automatically", "open closed", "active inactive"),
)
_OPPOSITE = {a: b for pair in _OPPOSITES for a, b in (pair.split(), pair.split()[::-1])}
_VALUES = {stem(word) for word in _OPPOSITE} | WEEKDAYS.keys() | NUMBER_WORDS.keys()
_ARTICLES = re.compile(
    r"(?:a|an|the|this|that|de[rsmn]|die|das|ein(?:e[nmrs]?)?|im|am|zu[mr]|beim|vom|jede[rs]?)\Z"
)
_NAME = re.compile(r"[A-ZÄÖÜÀ-Þ][a-zß-ÿ]+")
_DOES = re.compile(r" [a-zäöüß]+(?:s|t)\b")  # what a name at the beginning does: approves, gibt
_VALUE = re.compile(r"[$€£~<>≤≥]?\d")
_WIDE = re.compile("(?:周|星期|礼拜)[一二三四五六日天]|.")


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two statements at odds."""

    older: Statement
    newer: Statement
    how: How


def contradictions(memories: Sequence[ParsedTopic]) -> list[Contradiction]:
    """Return every two statements at odds."""
    every = [one for memory in memories for one in statements(memory)]
    sets = {n: _subject(one.terms) for n, one in enumerate(every)}
    sets = {n: own for n, own in sets.items() if len(own) > 1}
    weight = weights(sets.values())
    best: dict[tuple[str, int], Contradiction] = {}
    for a, b in candidates(sets, weight, probes=7, together=2):
        one, other = sorted((every[a], every[b]), key=lambda s: (s.written, s.memory.key))
        pair = (one.memory.key, other.memory.key)
        close = overlap(sets[a], sets[b], weight) >= SUBJECT
        if pair[0] == pair[1] or not (close or _differ_by_one(one, other)):
            continue
        if min(len(sets[a]), len(sets[b])) < LEAST and not _are_one_word_apart(one, other):
            continue
        how = _at_odds(one, other)
        if how is None or not _have_one_subject(one, other, how):
            continue
        if _says_both(one, other) or _says_both(other, one):
            continue
        key = (pair[0], one.passage.start)  # each is shown with the newest that it is at odds with
        if key not in best or best[key].newer.written < other.written:
            best[key] = Contradiction(one, other, how)
    return sorted(best.values(), key=lambda o: (o.older.memory.key, o.older.passage.start))


def _says_both(one: Statement, other: Statement) -> bool:
    """Whether the first one's memory says the other's words too, and so means two things."""
    words = plain(other.passage.text)
    return any(plain(own.passage.text) == words for own in statements(one.memory))


# One subject


def _subject(found: Terms) -> frozenset[str]:
    return found.all - found.numbers - _VALUES


def _have_one_subject(one: Statement, other: Statement, how: How) -> bool:
    """Whether two statements speak of the same thing, and not alike of two.

    In memories on one topic they may differ in words beside the value, but not each in what its own
    memory is called after. Elsewhere they must agree in all of them, name the same, and leave
    nothing unsaid: "its" means each memory's own topic.
    """
    texts = one.passage.text, other.passage.text
    topic = _on_one_topic(one.memory, other.memory)
    unsaid = any(map(_LEFT_UNSAID.search, texts))
    wide = max(texts[0]) >= "\u2e80"  # its terms are pairs of signs, which a value breaks
    if how in ("name", "weekday") or (wide and _differ_by_one(one, other)):
        return topic or not unsaid
    if _by_title(one, other) and _by_title(other, one):
        return False
    apart = _subject(one.terms) ^ _subject(other.terms)
    if not topic and apart & (one.memory.subject ^ other.memory.subject):
        return False  # each speaks of what its own memory is called after
    a, b = one.terms.hard - one.terms.numbers, other.terms.hard - other.terms.numbers
    same = a <= other.terms.all or b <= one.terms.all
    if not topic:
        return same and not unsaid and not apart
    return same or _matcher(*map(_words, texts)).ratio() >= SAME_LINE


def _by_title(one: Statement, other: Statement) -> frozenset[str]:
    """Words of the first one's own title that it says, and of which the other knows nothing."""
    own = _subject(one.terms) - _subject(other.terms)
    return own & (one.memory.subject - other.memory.subject)


def _on_one_topic(one: ParsedTopic, other: ParsedTopic) -> bool:
    a, b = one.subject, other.subject
    return len(a & b) >= RELATED * min(len(a), len(b)) > 0


# At odds


def _at_odds(one: Statement, other: Statement) -> How | None:
    texts = one.passage.text, other.passage.text
    a, b = map(_words, texts)
    if have_two_subjects(*texts):
        return None
    slots = _slots(a, b)
    values = sum(_values(a, b, slot) for slot in slots)
    if one.terms.denies != other.terms.denies:
        no, yes = texts if one.terms.denies else texts[::-1]
        return "denial" if not values and _is_denial(no, yes) else None
    if _differ_by_one(one, other):
        x, y = next((x, y) for x, y in zip(a, b, strict=True) if x != y)
        how = _kind(x, y, *texts)
        if how and (how != "name" or _are_one_word_apart(one, other)):
            return how
    if not 1 <= values <= 2:
        return None
    days = [{day for _, _, day in absolute(text)} for text in texts]
    return "date" if days[0] != days[1] else "value"


def _differ_by_one(one: Statement, other: Statement) -> bool:
    """Whether all words but one are the same, in the same places."""
    a, b = _words(one.passage.text), _words(other.passage.text)
    return len(a) == len(b) > LEAST and sum(x != y for x, y in zip(a, b, strict=True)) == 1


def _are_one_word_apart(one: Statement, other: Statement) -> bool:
    """The same of all words as they are written, also of those that only join."""
    a, b = (re.findall(r"\S+", text.passage.text.lower()) for text in (one, other))
    return len(a) == len(b) > LEAST and sum(x != y for x, y in zip(a, b, strict=True)) == 1


def _kind(x: str, y: str, one: str, other: str) -> How | None:
    """What one word in the place of another is, where both are of one kind."""
    if x in WEEKDAYS and y in WEEKDAYS:
        return "weekday" if WEEKDAYS[x] != WEEKDAYS[y] else None
    if x in NUMBER_WORDS and y in NUMBER_WORDS:
        return "value" if NUMBER_WORDS[x] != NUMBER_WORDS[y] else None
    return "name" if _is_name(x, one) and _is_name(y, other) else None


def _is_name(word: str, text: str) -> bool:
    """Whether a word is written like a person's name: a capital letter, and nothing before it
    that only a thing has."""
    found = [one for one in re.finditer(r"[^\W\d_]+", text) if stem(one[0].lower()) == word]
    for one in found:
        before = text[: one.start()].rstrip()
        if one.start() and not before[-1:].isalnum() and before[-1:] not in ",;":
            return False  # in marks, or the first word of what is in them
        if not before and not _DOES.match(text[one.end() :]):
            return False
        if not _NAME.fullmatch(one[0]) or _ARTICLES.match(before.rpartition(" ")[2].lower()):
            return False
    return bool(found)


@lru_cache(maxsize=50_000)
def _words(text: str) -> tuple[str, ...]:
    """The words in their order, by stem, without those that only join."""
    out: list[str] = []
    for token in tokens(text):
        low = token.lower()
        if low in DENIALS or (low in SMALL and low not in _OPPOSITE and low not in NUMBER_WORDS):
            continue
        if token[0] >= "\u2e80":
            out += _WIDE.findall(token)
        else:
            out.append(low if _VALUE.match(low) or low in _OPPOSITE else stem(low))
    return tuple(out)


def _matcher(a: Sequence[str], b: Sequence[str]) -> SequenceMatcher[str]:
    return SequenceMatcher(None, a, b, autojunk=False)


TermSlot: TypeAlias = tuple[int, int, int, int]


def _slots(a: Sequence[str], b: Sequence[str]) -> list[TermSlot]:
    """Where one has other words in the place of the other's."""
    steps = _matcher(a, b).get_opcodes()
    return [(low, high, start, end) for op, low, high, start, end in steps if op == "replace"]


def _values(a: Sequence[str], b: Sequence[str], slot: TermSlot) -> int:
    """How many values of the same thing stand in one place of both; 0 where that is not clear."""
    low, high, start, end = slot
    mine = [n for n in range(low, high) if a[n] in _OPPOSITE or _VALUE.match(a[n])]
    theirs = [n for n in range(start, end) if b[n] in _OPPOSITE or _VALUE.match(b[n])]
    if len(mine) != len(theirs):
        return 0
    return sum(_same_place(a, n, b, m) and a[n] != b[m] for n, m in zip(mine, theirs, strict=True))


def _same_place(a: Sequence[str], at: int, b: Sequence[str], to: int) -> bool:
    x, y = a[at], b[to]
    if x in _OPPOSITE or y in _OPPOSITE:
        return _OPPOSITE.get(x) == y
    before = a[at - 1 : at] == b[to - 1 : to] and bool(a[at - 1 : at])
    after = a[at + 1 : at + 2] == b[to + 1 : to + 2] and bool(a[at + 1 : at + 2])
    return before or after


def _is_denial(no: str, yes: str) -> bool:
    """Whether one denies what the other says in nearly the same words, in the same order."""
    a, b = _words(no), _words(yes)
    if len(a) <= LEAST or _matcher(a, b).ratio() < SAME_WORDS:
        return False
    found = list(tokens(no))
    behind = [n + 1 for n, token in enumerate(found) if token.lower() in DENIALS]
    return all(next(iter(_words(" ".join(found[n:]))), "") in b for n in behind)
