"""Statements at odds: two memories say of the same subject what cannot both be.

Two statements have one subject where, without their values, nearly all their words agree. They
are at odds where the values differ: a number, an amount, a date, a name in the same place, a word
against its opposite, another name or weekday where every other word is the same, or where one
denies what the other says. A number that only counts steps, phases or tickets is no value, "not"
before something that the other does not speak of denies nothing, and a plain word that differs in
its place makes two subjects. Both are shown and stay: which one holds is for a person or a model
to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Literal, TypeAlias

from reverie.consolidation.folder import ParsedTopic, Statement, statements
from reverie.consolidation.text_checks import near, overlap, weights
from reverie.light import dataclass
from reverie.text.dates import NUMBER_WORDS, WEEKDAYS, absolute
from reverie.text.stems import stem
from reverie.text.tokens import DENIALS, SMALL, Terms, plain, tokens

How: TypeAlias = Literal["value", "denial", "date", "name", "weekday"]
_IN_ALL_ELSE_EQUAL: frozenset[How] = frozenset({"name", "weekday"})

SUBJECT = 0.62
"""Weight of the words, beside values, that two statements must share to have one subject."""
IN_TWINS = 0.5
"""The same within two files that are near-duplicates."""
LEAST = 3
"""Words beside values that a statement needs to have a subject."""
SAME_WORDS = 0.8
"""How alike the words of a statement and of its denial must be, in their order."""
SAME_NAMES = 0.6
"""Weight of the names that two statements must share where each has one of its own."""
SAME_LINE = 0.7
"""How alike the words of two statements on one topic must be, in their order, to be one line."""
RELATED = 0.6
"""Share of the words of one memory's name that another's must have to be on the same topic."""
MAX_APART = 0.34
"""Share of the words, beside the value, that may stand differently in its place."""
_LEFT_UNSAID = re.compile(
    r"\b(?:it|its|this|that|these|those|they|them|their|here|above|below|he|she|his|her)\b|它|其|这",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"(?:step|phase|layer|pr|prs|section|part|chapter|tier|level|round|node|option|issue|issues|"
    r"line|lines|case|example|version|rule|task|item|row|column|figure|table|type|stage|plan|"
    r"objective|method|pattern|strategy|approach|scenario|test)s?\Z"
)
_OPPOSITES = (
    *("true false", "enabled disabled", "allowed forbidden", "required optional"),
    *("public private", "sync async", "synchronous asynchronous", "manual automatic"),
    *("manually automatically", "open closed", "active inactive"),
)
_OPPOSITE = {a: b for pair in _OPPOSITES for a, b in (pair.split(), pair.split()[::-1])}
_OPPOSITES_BY_STEM = {stem(a): stem(b) for a, b in _OPPOSITE.items()}
_ARTICLES = frozenset(
    re.findall(
        r"\S+",
        """
        a an the this that der die das des dem den ein eine einen einem einer eines im am
        zum zur beim vom jede jeder jedes
        """,
    )
)
_NAME = re.compile(r"[A-ZÄÖÜÀ-Þ][a-zß-ÿ]+")
_DOES = re.compile(r" [a-zäöüß]+(?:s|t)\b")  # what a name at the beginning does: approves, gibt
_VALUE = re.compile(r"[#$€£~<>≤≥]?\d")


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two statements at odds."""

    older: Statement
    newer: Statement
    how: How


def contradictions(
    memories: Sequence[ParsedTopic], twins: frozenset[tuple[str, str]] = frozenset()
) -> list[Contradiction]:
    """Every two statements of the folder that are at odds."""
    every = [one for memory in memories for one in statements(memory)]
    sets = {n: _subject(one.terms) for n, one in enumerate(every)}
    sets = {n: own for n, own in sets.items() if len(own) >= LEAST}
    weight = weights(sets.values())
    found: list[Contradiction] = []
    for a, b in near(sets, weight):
        one, other = every[a], every[b]
        pair = (one.memory.key, other.memory.key)
        twin = pair in twins or pair[::-1] in twins
        alike = overlap(sets[a], sets[b], weight) >= (IN_TWINS if twin else SUBJECT)
        if not alike and not _differ_by_one(one, other):
            continue
        how = _at_odds(one, other)
        if how is None or not _is_one_subject(one, other, weight, how, known=twin):
            continue
        if not (_says_both(one, other) or _says_both(other, one)):
            found.append(_order_pair(one, other, how))
    return sorted(_once(found), key=lambda o: (o.older.memory.key, o.older.passage.start))


def _says_both(one: Statement, other: Statement) -> bool:
    """Whether the first one's memory says the other's words too, and so means two things."""
    words = plain(other.passage.text)
    return any(plain(own.passage.text) == words for own in statements(one.memory))


def _once(found: Sequence[Contradiction]) -> Iterator[Contradiction]:
    """For each statement that gives way, the newest that it gives way to."""
    best: dict[tuple[str, int], Contradiction] = {}
    for one in found:
        key = (one.older.memory.key, one.older.passage.start)
        known = best.get(key)
        if known is None or known.newer.written < one.newer.written:
            best[key] = one
    yield from best.values()


def _is_one_subject(
    one: Statement, other: Statement, weight: Mapping[str, float], how: How, *, known: bool
) -> bool:
    wide = max(one.passage.text) >= "\u2e80"  # its terms are pairs of signs, which a value breaks
    if how in _IN_ALL_ELSE_EQUAL or (wide and _differ_by_one(one, other)):
        return _on_one_topic(one.memory, other.memory) or not _unsaid(one, other)
    return _one_subject(one, other, weight, known=known)


def _one_subject(
    one: Statement, other: Statement, weight: Mapping[str, float], *, known: bool
) -> bool:
    """Whether two statements speak of the same thing, and not alike of two.

    In memories on one topic they may differ in words beside the value, but not each in what its own
    memory is called after. Elsewhere they must agree in all of them, name the same, and leave
    nothing unsaid: "its" means each memory's own topic.
    """
    if not known and _by_title(one, other) and _by_title(other, one):
        return False
    apart = _subject(one.terms) ^ _subject(other.terms)
    topic = known or _on_one_topic(one.memory, other.memory)
    if not topic and apart & (one.memory.subject ^ other.memory.subject):
        return False  # each speaks of what its own memory is called after
    a, b = one.terms.hard - one.terms.numbers, other.terms.hard - other.terms.numbers
    same = a <= other.terms.all or b <= one.terms.all
    if (
        topic
        and _matcher(_words(one.passage.text), _words(other.passage.text)).ratio() >= SAME_LINE
    ):
        return True
    if topic:
        return same or overlap(a, b, weight) >= SAME_NAMES
    return same and not _unsaid(one, other) and not apart


def _by_title(one: Statement, other: Statement) -> frozenset[str]:
    """Words of the first one's own title that it says, and of which the other knows nothing."""
    own = _subject(one.terms) - _subject(other.terms)
    return own & (one.memory.subject - other.memory.subject)


def _unsaid(one: Statement, other: Statement) -> bool:
    """Whether a statement leaves to its memory what it speaks of."""
    return any(_LEFT_UNSAID.search(text) for text in (one.passage.text, other.passage.text))


def _on_one_topic(one: ParsedTopic, other: ParsedTopic) -> bool:
    a, b = one.subject, other.subject
    return len(a & b) >= RELATED * min(len(a), len(b)) > 0


def _subject(found: Terms) -> frozenset[str]:
    values = found.numbers | _OPPOSITES_BY_STEM.keys() | WEEKDAYS.keys() | NUMBER_WORDS.keys()
    return found.all - values


def _order_pair(one: Statement, other: Statement, how: How) -> Contradiction:
    first, second = sorted((one, other), key=lambda s: (s.written, s.memory.key))
    return Contradiction(first, second, how)


def _at_odds(one: Statement, other: Statement) -> How | None:
    a, b = _words(one.passage.text), _words(other.passage.text)
    denial = one.terms.denies != other.terms.denies
    if one.memory.key == other.memory.key or (a == b and not denial):
        return None
    slots = _slots(a, b)
    values = sum(_values(a, b, slot) for slot in slots)
    if denial:
        no, yes = (one, other) if one.terms.denies else (other, one)
        return "denial" if not values and _is_denial(no.passage.text, yes.passage.text) else None
    apart = sum(max(high - low, end - start) for low, high, start, end in slots)
    same = sum(block.size for block in _matcher(a, b).get_matching_blocks())
    if apart == 1 and len(slots) == 1 and same + 1 == len(a) == len(b) and same >= LEAST:
        low, _, start, _ = slots[0]
        how = _kind(a[low], b[start], one.passage.text, other.passage.text)
        if how is not None:
            return how
    if not 1 <= values <= 2 or apart - values > MAX_APART * min(len(a), len(b)):
        return None
    return "date" if _days(one) != _days(other) else "value"


def _differ_by_one(one: Statement, other: Statement) -> bool:
    """Whether all words but one are the same, in the same places."""
    a, b = _words(one.passage.text), _words(other.passage.text)
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
    if not found or not all(_NAME.fullmatch(one[0]) for one in found):
        return False
    for one in found:
        before, after = text[: one.start()].rstrip(), text[one.end() :]
        if one.start() and not before[-1:].isalnum() and before[-1:] not in ",;":
            return False  # in marks, or the first word of what is in them
        if not before and not _DOES.match(after):
            return False
        if before.rpartition(" ")[2].lower() in _ARTICLES:
            return False
    return True


def _days(one: Statement) -> frozenset[object]:
    return frozenset(day for _, _, day in absolute(one.passage.text))


TermSlot: TypeAlias = tuple[int, int, int, int]


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
            continue
        out.append(low if _VALUE.match(low) or low in _OPPOSITE else stem(low))
    return tuple(out)


_WIDE = re.compile("(?:周|星期|礼拜)[一二三四五六日天]|.")


def _matcher(a: Sequence[str], b: Sequence[str]) -> SequenceMatcher[str]:
    return SequenceMatcher(None, a, b, autojunk=False)


def _slots(a: Sequence[str], b: Sequence[str]) -> list[TermSlot]:
    """Where one has other words in the place of the other's."""
    return [
        (low, high, start, end)
        for op, low, high, start, end in _matcher(a, b).get_opcodes()
        if op == "replace"
    ]


def _values(a: Sequence[str], b: Sequence[str], slot: TermSlot) -> int:
    """How many values of the same thing stand in one place of both; 0 where that is not clear."""
    low, high, start, end = slot
    mine = [n for n in range(low, high) if _is_value(a, n)]
    theirs = [n for n in range(start, end) if _is_value(b, n)]
    if len(mine) != len(theirs):
        return 0
    return sum(_same_place(a, n, b, m) and a[n] != b[m] for n, m in zip(mine, theirs, strict=True))


def _is_value(words: Sequence[str], at: int) -> bool:
    word = words[at]
    if word in _OPPOSITE:
        return True
    labelled = at > 0 and _LABEL.match(words[at - 1]) is not None
    return _VALUE.match(word) is not None and not word.startswith("#") and not labelled


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
    if len(a) <= LEAST or SequenceMatcher(None, a, b, autojunk=False).ratio() < SAME_WORDS:
        return False
    found = list(tokens(no))
    behind = [n + 1 for n, token in enumerate(found) if token.lower() in DENIALS]
    return all(next(iter(_words(" ".join(found[n:]))), "") in b for n in behind)
