"""What is looked for: the terms of a question, and the time it speaks of.

Total: any text gives a query, of bounded size; one without a word that tells something apart
gives an empty one, which finds nothing. A relative date is read against the `now` it is given.
"""

from __future__ import annotations

from dataclasses import dataclass

from reverie.text.spans import DaySpan, months, without_dates
from reverie.text.stems import stem
from reverie.text.stops import ASKING
from reverie.text.tokens import asked, folded, terms

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

    @classmethod
    def of(cls, text: str, now: float) -> Query:
        """The query that a text makes."""
        if len(text) > MAX_TEXT:
            text = text[: MAX_TEXT // 2] + " " + text[-MAX_TEXT // 2 :]
        plain = folded(text)
        rest, dates = without_dates(plain, now)
        found = list(dict.fromkeys(terms(asked(rest))))
        kept = [term for term in found if term not in _ASKING]
        chosen = _spread(kept or found)
        return cls(text, now, tuple(chosen), dates, months(rest))

    def __bool__(self) -> bool:
        return bool(self.terms or self.dates or self.months)


def _spread(found: list[str]) -> list[str]:
    """At most so many terms; of a long text its beginning and its end."""
    if len(found) <= MAX_TERMS:
        return found
    return found[: MAX_TERMS // 2] + found[-MAX_TERMS // 2 :]
