"""How often the index has a term, and which terms of a query are looked for.

A count is looked up once for each query. Terms that most texts have find nothing by themselves:
the rarest go first, while what they bring up stays within bounds.
"""

from __future__ import annotations

import sqlite3

from reverie.memory.recall.ranking import QueryTerms

LEAST_PART, AKIN = 5, 3
"""Letters of a compound's part, and how many akin terms stand for one that no text has."""


class Counts:
    """In how many texts a term stands; each is looked up once."""

    def __init__(self, base: sqlite3.Connection, table: str) -> None:
        self._base = base
        self._asked = f"SELECT doc FROM {table} WHERE term = ?"
        self._longer = f"SELECT term FROM {table} WHERE term > ? AND term < ? LIMIT {AKIN}"
        self._known: dict[str, int] = {}

    def __call__(self, term: str) -> int:
        found = self._known.get(term)
        if found is None:
            row = self._base.execute(self._asked, (term,)).fetchone()
            found = self._known[term] = 0 if row is None else int(row[0])
        return found

    def akin(self, term: str) -> tuple[str, ...]:
        """Terms of the index that a term is a part of, or that are parts of it: compounds, as
        German makes them (`datenbankverbindung` and `datenbank`)."""
        if len(term) < LEAST_PART or not term.isalpha():
            return ()
        rows = self._base.execute(self._longer, (term, f"{term}\U0010ffff"))
        found = [str(row[0]) for row in rows]
        cuts = range(LEAST_PART, len(term) - LEAST_PART + 1)
        found += [part for n in cuts for part in (term[:n], term[n:]) if self(part)]
        return tuple(sorted(dict.fromkeys(found), key=len, reverse=True)[:AKIN])


def chosen(weighed: QueryTerms, counts: Counts, most: int) -> str:
    """The terms to look for as the database takes them, the rarest first, while what they bring
    up stays within bounds; at least one."""
    own = [(counts(term.text), term.text) for term in weighed.all]
    also = [(counts(other), other) for term in weighed.all for other in term.also]
    kept: dict[str, None] = {}
    total = 0
    for count, text in [*sorted(own), *sorted(also)]:
        if not count or text in kept:
            continue
        total += count
        if kept and total > most:
            continue
        kept[text] = None
    return " OR ".join(f'"{text}"' for text in kept)
