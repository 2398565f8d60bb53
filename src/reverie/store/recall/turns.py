"""Turns of transcripts and dialogues in the recall index: put, removed and looked up, inside a
transaction of the caller's.

A turn's number is its session's number and its place in one, so that the turns around it are the
numbers around it. A look-up is in two steps, as for memories: the turns that have the query's
rarer terms and those around them, then every signal.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Iterable, Sequence

from reverie.recall.passages import ROLES, Utterance
from reverie.recall.ranker import (
    AROUND,
    TURN_PRIOR,
    TURN_RARE,
    Query,
    QueryTerms,
    RankedTurn,
    count_terms,
    score_session,
    score_turn,
)
from reverie.store.recall.database import NOTHING, Counts, VectorScores, choose_terms
from reverie.store.recall.memories import FileStamp, ScoredMemory
from reverie.text.tokens import terms

PLACES = 20
"""Bits of a turn's number that are its place in the session."""
CANDIDATES = 100
MAX_MATCHES = 20_000

_AROUND = tuple(step for step, _ in AROUND)


class Turns:
    """The turns of an index."""

    def __init__(self, base: sqlite3.Connection) -> None:
        self._base = base

    def put(self, session: str, passages: Iterable[Utterance], mark: FileStamp) -> int:
        """Take a session in, in place of what was known of it; gives how many turns it has."""
        self.remove(session)
        made = self._base.execute(
            "INSERT INTO file (kind, key, modified, size, inode, changed, saved)"
            " VALUES ('transcript', ?, ?, ?, ?, ?, ?)",
            (session, *mark, mark[0] / 1e9),
        )
        start = (made.lastrowid or 0) << PLACES
        count = size = 0
        for one in passages:
            if count >= 1 << PLACES:
                break
            found = terms(one.text)
            self._add(start + count, one, " ".join(found))
            count += 1
            size += len(found)
        self._count(count, size)
        return count

    def _add(self, ident: int, one: Utterance, words: str) -> None:
        marks = (one.asks, one.ends_asking, one.first_person)
        said = one.text.encode("utf-8", "replace").decode()
        self._base.execute(
            "INSERT INTO turn VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (ident, one.message, one.speaker, one.at, *marks, said, words),
        )
        self._base.execute("INSERT INTO turn_index (rowid, words) VALUES (?, ?)", (ident, words))
        if one.speaker and one.speaker not in ROLES:
            for term in terms(one.speaker)[:1]:
                self._base.execute(
                    "INSERT OR IGNORE INTO speaker VALUES (?, ?)", (term, one.speaker)
                )

    def remove(self, session: str) -> bool:
        """Take a session out; says whether it was there."""
        row = self._base.execute(
            "SELECT id FROM file WHERE kind = 'transcript' AND key = ?", (session,)
        ).fetchone()
        if row is None:
            return False
        span = (row[0] << PLACES, (row[0] + 1) << PLACES)
        rows = self._base.execute(
            "SELECT id, words FROM turn WHERE id >= ? AND id < ?", span
        ).fetchall()
        self._base.executemany(
            "INSERT INTO turn_index (turn_index, rowid, words) VALUES ('delete', ?, ?)", rows
        )
        self._base.execute("DELETE FROM turn WHERE id >= ? AND id < ?", span)
        self._base.execute("DELETE FROM vector WHERE file >= ? AND file < ?", span)
        self._base.execute("DELETE FROM file WHERE id = ?", row)
        self._count(-len(rows), -sum(words.count(" ") + 1 for _, words in rows if words))
        return True

    def _count(self, turns: int, size: int) -> None:
        sessions = (turns > 0) - (turns < 0)
        self._base.execute(
            "UPDATE total SET texts = texts + ?, body = body + ?, heads = heads + ?"
            " WHERE kind = 'transcript'",
            (turns, size, sessions),
        )

    def known(self) -> dict[str, FileStamp]:
        rows = self._base.execute(
            "SELECT key, modified, size, inode, changed FROM file WHERE kind = 'transcript'"
        )
        return {row[0]: row[1:] for row in rows}

    # Looking up

    def ranked(
        self,
        query: Query,
        *,
        exclude: Container[str],
        alone: bool = True,
        likeness: VectorScores = NOTHING,
    ) -> tuple[QueryTerms, list[ScoredMemory]]:
        """The turns that answer a query, best first, with how its terms were weighed; each for
        itself, or for its session. `likeness` is how close each is in meaning."""
        texts, size, sessions = self._base.execute(
            "SELECT texts, body, heads FROM total WHERE kind = 'transcript'"
        ).fetchone()
        counts = Counts(self._base, "turn_terms")
        named = self._named_speakers(query)
        weighed = QueryTerms.of(
            query, texts, counts, named, power=TURN_RARE, prior=TURN_PRIOR, akin=counts.akin
        )
        near = self._near([*self._candidates(query, weighed, counts), *likeness.likest])
        out = self._excluded_sessions(near, exclude)
        turns = {n: turn for n, turn in self._read(near, likeness) if n >> PLACES not in out}
        amounts = {ident: count_terms(turn, weighed) for ident, turn in turns.items()}
        whole = self._sessions(weighed, counts, turns, texts / max(sessions, 1))
        length = size / texts if texts else 1.0
        who = frozenset(named.values())
        found = [
            ScoredMemory(
                n, *score_turn(n, turns, amounts, weighed, length, session, who, alone=alone)
            )
            for n in turns
            for session in (whole.get(n >> PLACES, 0.0),)
        ]
        found.sort(key=lambda one: (-one.score, one.id))
        return weighed, [one for one in found if one.score > 0]

    def sessions(self, query: Query, k: int, *, exclude: Container[str]) -> list[ScoredMemory]:
        """The best turn of each session. Where these are few and the query names somebody, the
        sessions with that person follow, from the first on: that is where people introduce
        themselves."""
        best: dict[int, ScoredMemory] = {}
        for one in self.ranked(query, exclude=exclude, alone=False)[1]:
            best.setdefault(one.id >> PLACES, one)
        named = self._named_speakers(query) if len(best) < k else {}
        for name in named.values():
            rows = self._base.execute(
                f"SELECT min(id) FROM turn WHERE speaker = ? GROUP BY id >> {PLACES} LIMIT ?",
                (name, k + len(best)),
            ).fetchall()
            out = self._excluded_sessions([row[0] for row in rows], exclude)
            for (ident,) in rows:
                if ident >> PLACES not in out:
                    best.setdefault(ident >> PLACES, ScoredMemory(ident, 0.0, (("speaker", 0.0),)))
        return list(best.values())[:k]

    def _named_speakers(self, query: Query) -> dict[str, str]:
        """The speakers that a query names, by the term it names them with."""
        asked = "SELECT name FROM speaker WHERE term = ?"
        found = ((term, self._base.execute(asked, (term,)).fetchone()) for term in query.terms)
        return {term: row[0] for term, row in found if row is not None}

    def _candidates(self, query: Query, weighed: QueryTerms, counts: Counts) -> list[int]:
        asked = choose_terms(weighed, counts, MAX_MATCHES)
        found: dict[int, None] = {}
        if asked:
            rows = self._base.execute(
                "SELECT rowid FROM turn_index WHERE turn_index MATCH ? ORDER BY rank LIMIT ?",
                (asked, CANDIDATES),
            )
            found.update((row[0], None) for row in rows)
        for span in query.dates:
            rows = self._base.execute(
                "SELECT id FROM turn WHERE at >= ? AND at < ? ORDER BY at DESC LIMIT 50",
                (span.start, span.end),
            )
            found.update((row[0], None) for row in rows)
        return list(found)

    def _near(self, found: Sequence[int]) -> list[int]:
        """The turns found, and those around them."""
        return sorted({ident + step for ident in found for step in (0, *_AROUND)})

    def _excluded_sessions(self, near: Sequence[int], exclude: Container[str]) -> set[int]:
        sessions = {ident >> PLACES for ident in near}
        asked = "SELECT key FROM file WHERE id = ?"
        keys = ((n, self._base.execute(asked, (n,)).fetchone()) for n in sessions)
        return {n for n, row in keys if row is None or row[0] in exclude}

    def _read(
        self, idents: Iterable[int], likeness: VectorScores
    ) -> Iterable[tuple[int, RankedTurn]]:
        asked = (
            "SELECT speaker, at, asks, ends_asking, first_person, length(said), words"
            " FROM turn WHERE id = ?"
        )
        for ident in idents:
            row = self._base.execute(asked, (ident,)).fetchone()
            if row is not None:
                speaker, at, asks, ends, first, size, words = row
                like = likeness.of(ident)
                marks = (asks, bool(ends), bool(first))
                yield ident, RankedTurn(words, speaker, at, *marks, size, like)

    def _sessions(
        self, weighed: QueryTerms, counts: Counts, turns: Iterable[int], mean: float
    ) -> dict[int, float]:
        """What each session scores as a whole, of those that have a turn among the candidates."""
        wanted = {ident >> PLACES for ident in turns}
        found: dict[int, dict[int, int]] = {session: {} for session in wanted}
        for n, term in enumerate(weighed.all):
            if not 0 < counts(term.text) <= MAX_MATCHES:
                continue
            rows = self._base.execute(
                f"SELECT rowid >> {PLACES}, count(*) FROM turn_index WHERE turn_index MATCH ?"
                " GROUP BY 1",
                (f'"{term.text}"',),
            )
            for session, count in rows:
                if session in found:
                    found[session][n] = count
        return {
            session: score_session(amounts, weighed, self._size(session), mean)
            for session, amounts in found.items()
            if amounts
        }

    def _size(self, session: int) -> int:
        row = self._base.execute(
            "SELECT max(id) FROM turn WHERE id >= ? AND id < ?",
            (session << PLACES, (session + 1) << PLACES),
        ).fetchone()
        return 0 if row[0] is None else (row[0] & ((1 << PLACES) - 1)) + 1
