"""What is looked for, and how well a text answers it: all signals fused into one score.

A `Query` is the terms of a question and the time it speaks of. Any text gives one, of bounded
size; one without a word that tells something apart is empty and finds nothing. A relative date
is read against the `now` it is given.

A term weighs by how rare it is, in the index and, since an index may be small, in what people
write anyway. A memory scores by where its terms stand (path, name, description, headings, body),
how often for its length, and how often two of the query's neighbours stand close together. A
turn scores by its own terms and, fading, those of the turns around it. Of people who talk with one
another the turn behind a question scores by that question; what the named person says counts more,
and a question less than an answer. With an assistant nearly all that a user says is a request, and
an answer goes on for long: there a question is as good as any turn, and a turn scores, and lends
its neighbours, the few words in a row that answer best. Age and type only break ties.

The score is divided by the root of what the query's terms weigh, found or not, so that scores of
different queries can be compared. Whether a memory is clearly about a message is another question,
which `gate` answers from the same findings.

Pure arithmetic over numbers and words; nothing here knows where they are stored.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import field
from itertools import accumulate

from reverie.light import dataclass
from reverie.recall.passages import ROLES
from reverie.recall.synonyms import SYNONYMS
from reverie.text.periods import DaySpan, closeness, months, without_dates
from reverie.text.stems import is_german, stem
from reverie.text.tokens import ASKING, COMMON, fold_accents, query_text, word_forms

MAX_TEXT = 20_000
"""Characters of a query that are looked at: half from its beginning, half from its end."""
MAX_TERMS = 64

_ASKING = frozenset(map(stem, ASKING))


@dataclass(frozen=True, slots=True)
class Query:
    """A question as the index takes it; `terms` are told apart and in their order."""

    text: str
    now: float
    terms: tuple[str, ...] = ()
    dates: tuple[DaySpan, ...] = ()
    months: frozenset[int] = frozenset()
    forms: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    is_german: bool = False

    @classmethod
    def of(cls, text: str, now: float) -> Query:
        """The query that a text makes."""
        if len(text) > MAX_TEXT:
            text = text[: MAX_TEXT // 2] + " " + text[-MAX_TEXT // 2 :]
        plain = fold_accents(text)
        rest, dates = without_dates(plain, now)
        german = is_german(text)
        forms = word_forms(query_text(rest), is_german=german)
        kept = [term for term in forms if term not in _ASKING]
        chosen = _spread(kept or list(forms))
        return cls(text, now, tuple(chosen), dates, months(rest), forms, german)

    def __bool__(self) -> bool:
        return bool(self.terms or self.dates or self.months)


def _spread(found: list[str]) -> list[str]:
    """At most so many terms; of a long text its beginning and its end."""
    if len(found) <= MAX_TERMS:
        return found
    return found[: MAX_TERMS // 2] + found[-MAX_TERMS // 2 :]


FIELDS = ("path", "name", "about", "heads", "body")
_TITLE = 3  # fields that say what a memory is about
_WEIGHTS = (4.0, 5.0, 4.0, 2.0, 1.0)
_LENGTH = (0.3, 0.3, 0.3, 0.5, 0.75)  # how much a field's length counts
_RISE = 0.3  # how soon more of the same counts less
_RARE = 0.8  # the power of a term's rarity
_SYNONYM = 0.2
_NEAR, _NEAR_CHARACTERS = 0.6, 24  # some three words
_PRIOR, _PRIOR_SHARE = (
    300.0,
    0.1,
)  # texts that every index is taken to have, and common words in them
_DATED = 3.0
_MEANING, _UNLIKE = 8.0, 0.2
_FRESH, _FRESH_DAYS, _OWN = 0.1, 30.0, 0.05

_JOINT = " | "
_COMMON = frozenset(map(stem, COMMON))

RankReasons = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Term:
    """One term of a query: how rare it is, and what may stand for it."""

    text: str
    weight: float
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """A query's terms against one index."""

    query: Query
    all: tuple[Term, ...]
    weights: tuple[float, ...]
    rarest: float = 1.0  # what a term would weigh that stands in one text alone
    scale: float = 1.0
    at: Mapping[str, tuple[tuple[int, float], ...]] = field(
        default_factory=dict[str, tuple[tuple[int, float], ...]]
    )

    @classmethod
    def of(
        cls,
        query: Query,
        texts: int,
        count: Callable[[str], int],
        names: Container[str] = (),
        *,
        power: float = _RARE,
        prior: float = _PRIOR,
        akin: Callable[[str], tuple[str, ...]] = lambda _: (),
    ) -> QueryTerms:
        """Weigh a query's terms; `count` says how many of the index's texts have one. `names` are
        left out where there is more: those of speakers tell nothing among their own words. Other
        forms of a word count as itself, and so do German compounds that are `akin`; synonyms, and
        what is akin to a word that no text has, count less."""
        chosen = [text for text in query.terms if text not in names] or query.terms
        found: list[Term] = []
        at: dict[str, tuple[tuple[int, float], ...]] = {}
        for n, text in enumerate(chosen):
            same = query.forms.get(text, ())
            there = max(map(count, (text, *same)))
            kin = akin(text) if query.is_german or not there else ()
            others = SYNONYMS.get(text, ())
            if query.is_german:
                same, kin = (*same, *kin), ()
            weight = rarity(text, texts, there, prior) ** power
            found.append(Term(text, weight, (*same, *others, *kin)))
            amounts = dict.fromkeys((*others, *kin), _SYNONYM) | dict.fromkeys((text, *same), 1.0)
            for word, amount in amounts.items():
                if count(word):
                    at[word] = (*at.get(word, ()), (n, amount))
        weights = tuple(term.weight for term in found)
        rarest = rarity("", texts, 1, prior) ** power or 1.0
        return cls(query, tuple(found), weights, rarest, math.sqrt(sum(weights) or 1.0), at)


def rarity(term: str, texts: int, count: int, prior: float = _PRIOR) -> float:
    """The weight of a term by how many texts have it, those that every index is taken to have
    counted in."""
    found = count + (prior * _PRIOR_SHARE if term in _COMMON else 0.0)
    return math.log(1 + max(texts + prior - found + 0.5, 0.5) / (found + 0.5))


# Memories


@dataclass(frozen=True, slots=True)
class RankedNote:
    """A memory as the ranking sees it: the terms of each field, as one text with spaces."""

    fields: tuple[str, ...]
    type: str = ""
    saved: float = 0.0
    likeness: float = 0.0  # of its meaning to the query's, -1 to 1; 0 where nobody knows


@dataclass(frozen=True, slots=True)
class TermMatches:
    """What of a query's terms a memory has: how much of each, which of them word for word, how
    much two neighbours stand close together, and how much each field gives."""

    parts: Sequence[float]
    own: frozenset[int]
    pairs: Mapping[int, float]
    where: Sequence[float]

    def worth(self, weights: Sequence[float]) -> float:
        """What so much of each term is worth."""
        found = [(n, part) for n, part in enumerate(self.parts) if part]
        return sum([weights[n] * math.log1p(_RISE * part) for n, part in found])

    @property
    def titled(self) -> float:
        """Which share of it stands in what the memory is called: path, name and description."""
        whole = sum(self.where)
        return sum(self.where[:_TITLE]) / whole if whole else 0.0

    def near(self, weights: Sequence[float]) -> float:
        """What it is worth that neighbours stand close, by their rarity."""
        rare = [math.sqrt(weights[n] * weights[n + 1]) * count for n, count in self.pairs.items()]
        return _NEAR * sum(rare)


def score_note(note: RankedNote, terms: QueryTerms, found: TermMatches) -> float:
    """The score of a memory."""
    words = found.worth(terms.weights) + found.near(terms.weights)
    rest = sum([part for _, part in _priors(note, terms.query)])
    return (words + rest) / terms.scale + _meaning_score(note)


def explain_note(note: RankedNote, terms: QueryTerms, found: TermMatches) -> RankReasons:
    """What each signal gave to a memory's score."""
    words = found.worth(terms.weights)
    whole = sum(found.where) or 1.0
    why = [(name, words * part / whole) for name, part in zip(FIELDS, found.where, strict=True)]
    near = ("near", found.near(terms.weights))
    why += [near, *_priors(note, terms.query), ("meaning", _meaning_score(note) * terms.scale)]
    return _scale_reasons(why, terms)


def _meaning_score(note: RankedNote) -> float:
    """What closeness of meaning adds: nothing for what any two texts have in common."""
    return _MEANING * max(note.likeness - _UNLIKE, 0.0)


def _scale_reasons(why: Iterable[tuple[str, float]], terms: QueryTerms) -> RankReasons:
    return tuple((name, round(part / terms.scale, 4)) for name, part in why if abs(part) > 1e-9)


def find_terms(note: RankedNote, terms: QueryTerms, lengths: Sequence[float]) -> TermMatches:
    """What a memory has of a query; `lengths` are the mean lengths of the fields, in terms."""
    fields = note.fields
    parts = [0.0] * len(terms.all)
    where = [0.0] * len(FIELDS)
    shares = [0.0] * len(FIELDS)  # only those of fields that have a term are worked out
    ends = list(accumulate([len(part) + len(_JOINT) for part in fields]))
    places = _places(_JOINT.join(fields), terms)
    for at, term, amount in places:
        n = bisect_right(ends, at)
        share = shares[n]
        if not share:
            share = shares[n] = _share(n, fields[n], lengths[n])
        parts[term] += share * amount
        where[n] += share * amount
    own = frozenset([term for _, term, amount in places if amount == 1.0])
    if len(places) < 2:
        return TermMatches(parts, own, {}, where)
    shares[-1] = shares[-1] or _share(-1, fields[-1], lengths[-1])
    return TermMatches(parts, own, _pairs(places, shares[-1]), where)


def _share(place: int, text: str, mean: float) -> float:
    """What one term in the field at a place counts, by the field and how long it is here."""
    length = _LENGTH[place]
    return _WEIGHTS[place] / (1 - length + length * (text.count(" ") + 1) / (mean or 1.0))


def _places(text: str, terms: QueryTerms) -> list[tuple[int, int, float]]:
    """At which character which term of the query stands, and how much it counts for it."""
    padded = f" {text} "
    found: list[tuple[int, int, float]] = []
    for word, meant in terms.at.items():
        at = padded.find(word)  # a look without the spaces is faster, and most find nothing
        sought = f" {word} "
        at = padded.find(sought, at - 1) if at > 0 else -1
        while at >= 0:
            for term, amount in meant:
                found.append((at, term, amount))
            at = padded.find(sought, at + 1)
    return found


def _pairs(places: list[tuple[int, int, float]], share: float) -> dict[int, float]:
    """How much two neighbours of the query stand close together, by the first of them."""
    last: dict[int, int] = {}
    found: dict[int, int] = {}
    for at, term, amount in sorted(places):
        if amount < 1.0:
            continue
        for other in (term - 1, term + 1):
            seen = last.get(other)
            if seen is not None and 0 < at - seen <= _NEAR_CHARACTERS:
                pair = min(term, other)
                found[pair] = found.get(pair, 0) + 1
        last[term] = at
    return {n: math.log1p(count * share) for n, count in found.items()}


def _priors(note: RankedNote, query: Query) -> list[tuple[str, float]]:
    """What is known of a memory whatever is asked, and whether it is of the time asked for."""
    age = max(query.now - note.saved, 0.0) / 86_400
    return [
        ("date", _DATED * closeness(note.saved, query.dates, query.months)),
        ("recency", _FRESH * 2 ** (-min(age, 3_000.0) / _FRESH_DAYS)),
        ("type", _OWN if note.type in ("user", "feedback") else 0.0),
    ]


# Turns

AROUND = ((-1, 0.5), (1, 0.5), (-2, 0.3), (2, 0.3), (-3, 0.15), (3, 0.15))
_TURN_RISE, _TURN_LENGTH = 1.2, 0.8
TURN_RARE = 0.9
TURN_PRIOR = 0.0
_COVER = 0.6  # of a turn's score, what depends on how much of the query it has
_SESSION_RISE, _SESSION_LENGTH = 0.3, 0.9
_TURN_DATED = 6.3
_SPEAKER, _FIRST, _LONG = 0.5, 0.1, 0.05
_TURN_MEANING = 4.0
PASSAGE = 12  # terms of a turn with an assistant that count: a sentence or two
_REPLY, _BEST = 0.8, 10  # four in five things that are asked for were said by people


@dataclass(frozen=True, slots=True)
class _Talk:
    """How turns are weighed, by who talks with whom."""

    question: float  # what a turn loses where it only asks
    asked: float  # the turn before counts so much more where it is a question
    session: float  # what the whole session adds
    lends: float = 0.0  # mean lengths up to which a turn lends its terms whole; 0 = any length


_PEOPLE = _Talk(question=0.4, asked=2.0, session=0.13)
_CHAT = _Talk(question=0.0, asked=1.0, session=0.25, lends=0.5)


@dataclass(frozen=True, slots=True)
class RankedTurn:
    """A turn as the ranking sees it. `asks` is the share of it that is questions."""

    words: str
    speaker: str = ""
    at: float = 0.0
    asks: float = 0.0
    ends_asking: bool = False
    first_person: bool = False
    size: int = 0
    likeness: float = 0.0


def score_session(counts: Mapping[int, int], terms: QueryTerms, turns: int, mean: float) -> float:
    """What a whole session says: `counts` are, by term, the turns that have it."""
    over = 1 - _SESSION_LENGTH + _SESSION_LENGTH * turns / (mean or 1.0)
    return sum(
        terms.all[n].weight * math.log1p(_SESSION_RISE * count / over)
        for n, count in counts.items()
    )


def score_turn(
    place: int,
    turns: Mapping[int, RankedTurn],
    counts: Mapping[int, Mapping[int, float]],
    terms: QueryTerms,
    length: float,
    session: float,
    speakers: frozenset[str],
    *,
    alone: bool = True,
) -> tuple[float, RankReasons]:
    """The score of the turn at a place among those around it.

    `counts` are, by place and term, how often a turn has a term; `length` the mean length of a
    turn; `session` what the whole session scores; `speakers` whom the query names. Where a turn
    does not stand alone but for its session, all around it counts, whoever talks.
    """
    turn = turns[place]
    talk = _CHAT if alone and turn.speaker in ROLES else _PEOPLE
    amounts, size = _window(place, turns, counts, length, talk)
    over = _TURN_RISE * (1 - _TURN_LENGTH + _TURN_LENGTH * size)
    covered = sum([terms.weights[n] * min(amount, 1.0) for n, amount in amounts.items()])
    words = _worth(amounts, terms, over) * (1 - _COVER + _COVER * covered / terms.scale**2)
    around = talk.session * session
    dated = _TURN_DATED * closeness(turn.at, terms.query.dates, terms.query.months)
    factor = (1 + _SPEAKER * (turn.speaker in speakers)) * (1 - talk.question * turn.asks)
    factor *= (1 + _FIRST * turn.first_person) * max(turn.size, 1) ** _LONG
    base = words + around + dated
    meant = _TURN_MEANING * max(turn.likeness - _UNLIKE, 0.0)
    why = (
        *(("words", words), ("session", around), ("date", dated), ("speaker", base * (factor - 1))),
        ("meaning", meant * terms.scale),
    )
    return base * factor / terms.scale + meant, _scale_reasons(why, terms)


def _window(
    place: int,
    turns: Mapping[int, RankedTurn],
    counts: Mapping[int, Mapping[int, float]],
    length: float,
    talk: _Talk,
) -> tuple[dict[int, float], float]:
    """How often each term stands in a turn and, fading, around it; and how long that all is,
    against what is usual."""
    amounts = dict(counts.get(place, {}))
    most = PASSAGE if talk.lends else math.inf
    own = size = min(turns[place].words.count(" ") + 1.0, most)
    mean = min(length or 1.0, most)
    for step, weight in AROUND:
        other = turns.get(place + step)
        if other is None:
            continue
        long = min(other.words.count(" ") + 1, most)
        size += weight * long
        share = weight * talk.asked if step == -1 and other.ends_asking else weight
        if talk.lends:
            share *= min(1.0, talk.lends * mean / long)
        for n, amount in counts.get(place + step, {}).items():
            amounts[n] = amounts.get(n, 0.0) + share * amount
    if talk.lends:
        return amounts, own / mean
    return amounts, size / (mean * (1 + sum(weight for _, weight in AROUND)))


def reply_factor(said: Sequence[float], replies: Sequence[float]) -> float:
    """What brings the scores of replies in line with those of what people said, both best first:
    each kind is weighed in an index of its own, so their best ones are taken to be alike."""
    both = said[:_BEST], replies[:_BEST]
    if not all(both):
        return 1.0
    mean, other = (sum(scores) / len(scores) for scores in both)
    return _REPLY * mean / other


def count_terms(turn: RankedTurn, terms: QueryTerms, *, whole: bool = True) -> dict[int, float]:
    """How often a turn has each term of a query: all of it, or the passage that has most."""
    places = sorted(_places(turn.words, terms))
    if whole or turn.words.count(" ") < PASSAGE:
        return _sum_terms(places)
    at = [turn.words.count(" ", 0, place) for place, _, _ in places]
    passages = [_sum_terms(places[n : bisect_left(at, at[n] + PASSAGE)]) for n in range(len(at))]
    return max(passages, key=lambda one: _worth(one, terms, _TURN_RISE)) if at else {}


def _sum_terms(places: Iterable[tuple[int, int, float]]) -> dict[int, float]:
    found: dict[int, float] = {}
    for _, term, amount in places:
        found[term] = found.get(term, 0.0) + amount
    return found


def _worth(amounts: Mapping[int, float], terms: QueryTerms, over: float) -> float:
    """What so much of each term is worth in a turn; `over` is where more of one counts half."""
    found = amounts.items()
    return sum([terms.weights[n] * part * (_TURN_RISE + 1) / (part + over) for n, part in found])
