"""What is clearly about a message: the gate for what is injected unasked.

A message is looked at sentence by sentence, since what else it says changes nothing about the one
that matters; of a long one the first sentences and the last, where people say what they want. A
memory's evidence for a sentence is what the telling words it has are worth, and that they stand
close, times the share of the sentence that they are; more where they stand in what the memory is
called. Words of any order ("commit", "push", "fix the tests") tell less than their rarity in a
folder says.

By chance a large folder has more to find, so a word's worth is told against that of the rarest word
there can be in one of its size; and a message of many sentences finds more, so its evidence is
divided by a small power of their number. Through the gate comes what is above one threshold; for
one sentence the best, and beside it only what answers it about as well. The threshold was set on
what people typed in one project against the memories of another: of such messages it lets something
in for about one in twenty-five.

Meaning, where a model gives it, is evidence too: closeness above what any two texts of one trade
have, and only as far as the sentence tells something at all, so that a memory in other words can
pass, and one cannot because an order sounds like it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from reverie.light import dataclass, pattern
from reverie.recall.ranker import Query, QueryTerms, TermMatches
from reverie.text.stems import stem
from reverie.text.tokens import TRADE

CLEAR = 1.65  # bench gate, open half: false .040 at 1.52, .033 at 1.6; right bare .638, .601
"""Evidence from which on a memory is clearly about a message."""
MARGIN, MOST = 0.85, 3  # the same: others beside a right one .68 at .8, .51 at .85, .33 at .9
"""The share of the best score that others for the same sentence have, and how many join for it."""
MAX_SENTENCES = 8
_NEAR, _TITLED = 1.5, 0.6  # right beside 40 words .333 at 1 and 0, .442 so
_CHANCE = 0.35  # the power of their number by which many sentences find more
_MEANT, _UNLIKE, _TOLD = 4.0, 0.4, 2.0  # meaning: its weight, from where on, what must be told
_ORDERED, _ORDER = 0.4, 0.24  # what a word of the trade tells; in a sentence of nothing else
_END = pattern(r"(?<=[.!?;])\s+|\n+|(?<=[。！？；])")
_TRADE = frozenset(map(stem, TRADE))


def sentences(text: str, now: float) -> tuple[Query, ...]:
    """The queries that a message makes: of each sentence that has a term, the first and the last
    of many. A message without any, one that names a day alone, is one."""
    pieces = [piece for piece in _END.split(text) if piece.strip()]
    if len(pieces) > 2 * MAX_SENTENCES:  # of a pasted file no more is even read
        pieces = [*pieces[:MAX_SENTENCES], *pieces[-MAX_SENTENCES:]]
    found = [query for query in (Query.of(piece, now) for piece in pieces) if query.terms]
    if len(found) > MAX_SENTENCES:
        found = [*found[: MAX_SENTENCES // 2], *found[-MAX_SENTENCES // 2 :]]
    return tuple(found) or (Query.of(text, now),)


def telling(terms: QueryTerms) -> tuple[float, ...]:
    """What each term of a sentence tells of what it is about: 1 for the rarest there can be."""
    ordered = _ORDERED if any(term.text not in _TRADE for term in terms.all) else _ORDER
    return tuple(
        term.weight / terms.rarest * (ordered if term.text in _TRADE else 1.0) for term in terms.all
    )


def evidence(
    found: TermMatches, weights: tuple[float, ...], sentences: int = 1, likeness: float = 0.0
) -> float:
    """How much speaks for it that a memory is about one of so many sentences; `likeness` is how
    close the two are in meaning, -1 to 1."""
    whole = sum(weights)
    if not whole:
        return 0.0
    held = sum([weights[n] for n in found.own])
    words = (found.worth(weights) + _NEAR * found.near(weights)) * held / whole
    words *= 1 + _TITLED * found.titled
    meant = _MEANT * max(likeness - _UNLIKE, 0.0) * min(whole / _TOLD, 1.0)
    return (words + meant) / sentences**_CHANCE


class RankedHit(Protocol):
    """A memory that was found for one of a message's sentences."""

    @property
    def score(self) -> float: ...
    @property
    def evidence(self) -> float: ...
    @property
    def sentence(self) -> int: ...


H = TypeVar("H", bound=RankedHit)


def joining(hits: Iterable[H]) -> list[H]:
    """What clearly is about a message, best first: of each sentence the best, and what adds to it
    because it answers as well."""
    best: dict[int, list[H]] = {}
    out: list[H] = []
    for hit in sorted(hits, key=lambda one: -one.score):
        known = best.setdefault(hit.sentence, [])
        adds = not known or (len(known) < MOST and hit.score >= MARGIN * known[0].score)
        if hit.evidence >= CLEAR and adds:
            known.append(hit)
            out.append(hit)
    return out


# --- The port to a model that turns texts into vectors, and what recall asks of it.
#
# Meaning is a second signal beside the words, never the first: it finds what was put in other
# words, and its word alone weighs less than that of the terms. Without a model nothing is missing
# but that. A model in this process is asked in turns too, one behind an endpoint only where
# somebody waits for a search. Types alone; nothing here loads a model or opens a connection.


Vector = Sequence[float]


class Embeddings(Protocol):
    """A model that gives each text a vector; texts that mean the same have close ones."""

    @property
    def name(self) -> str:
        """Which model it is; vectors of different names are never compared."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors of texts, in their order."""
        ...


class LocalModel(Protocol):
    """A model in this process that is quick enough to be asked while a request waits."""

    @property
    def name(self) -> str: ...

    def encode(self, texts: Sequence[str], tokens: int = ...) -> Sequence[Vector]:
        """The vectors of texts, each looked at up to so many tokens."""
        ...


@dataclass(frozen=True, slots=True)
class QueryVector:
    """What a query means to one model."""

    model: str
    vector: Vector
