"""Turns of transcripts and dialogues in the recall index: put, removed and looked up, inside a
transaction of the caller's.

A turn's number is its session's number and its place in one, so that the turns around it are the
numbers around it. What people say and what an assistant or a tool replies are two indexes: how
rare a word is and how long a turn usually is differ by far between them. A look-up is in two
steps, as for memories: the turns of each that have the query's rarer terms and those around them,
then every signal.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace

from reverie.light import dataclass
from reverie.recall.passages import REPLIES, ROLES, Utterance
from reverie.recall.ranker import (
    AROUND,
    TURN_PRIOR,
    TURN_RARE,
    Query,
    QueryTerms,
    RankedTurn,
    count_terms,
    reply_factor,
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
_SAID, _REPLY = ("transcript", "turn"), ("reply", "reply")
"""The two sides: the kind that counts its texts, and the name of its index."""


def _best_first(one: ScoredMemory) -> tuple[float, int]:
    return -one.score, one.id


def _side(speaker: str) -> tuple[str, str]:
    return _REPLY if speaker in REPLIES else _SAID


@dataclass(frozen=True, slots=True)
class _Side:
    """A query against one side: how its terms weigh there, and the mean length of a turn."""

    terms: QueryTerms
    counts: Counts
    length: float
    index: str


class Turns:
    """The turns of an index."""

    def __init__(self, base: sqlite3.Connection) -> None:
        self._base = base

    def put(
        self, session: str, passages: Iterable[Utterance], mark: FileStamp, name: str = ""
    ) -> int:
        """Take a session in, in place of what was known of it; gives how many turns it has.
        `name` is what its caller calls it, where that is not its key."""
        self.remove(session)
        made = self._base.execute(
            "INSERT INTO file (kind, key, modified, size, inode, changed, name, saved)"
            " VALUES ('transcript', ?, ?, ?, ?, ?, ?, ?)",
            (session, *mark, name, mark[0] / 1e9),
        )
        start = (made.lastrowid or 0) << PLACES
        count = 0
        for one in passages:
            if count >= 1 << PLACES:
                break
            self._add(start + count, one, " ".join(terms(one.text)))
            count += 1
        self._count_sessions(int(count > 0))
        return count

    def _add(self, ident: int, one: Utterance, words: str) -> None:
        marks = (one.asks, one.ends_asking, one.first_person)
        said = one.text.encode("utf-8", "replace").decode()
        self._base.execute(
            "INSERT INTO turn VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (ident, one.message, one.speaker, one.at, *marks, said, words),
        )
        self._put_words(ident, one.speaker, words, 1)
        if one.speaker and one.speaker not in ROLES:
            for term in terms(one.speaker)[:1]:
                self._base.execute(
                    "INSERT OR IGNORE INTO speaker VALUES (?, ?)", (term, one.speaker)
                )

    def _put_words(self, ident: int, speaker: str, words: str, sign: int) -> None:
        """Take the words of a turn into the index of its side, or with -1 out of it."""
        kind, name = _side(speaker)
        into = f"{name}_index ({name}_index, rowid, words) VALUES ('delete', ?, ?)"
        into = f"{name}_index (rowid, words) VALUES (?, ?)" if sign > 0 else into
        self._base.execute(f"INSERT INTO {into}", (ident, words))
        size = words.count(" ") + 1 if words else 0
        self._base.execute(
            "UPDATE total SET texts = texts + ?, body = body + ? WHERE kind = ?",
            (sign, sign * size, kind),
        )

    def _count_sessions(self, more: int) -> None:
        asked = "UPDATE total SET heads = heads + ? WHERE kind = 'transcript'"
        self._base.execute(asked, (more,))

    def remove(self, session: str) -> bool:
        """Take a session out; says whether it was there."""
        row = self._base.execute(
            "SELECT id FROM file WHERE kind = 'transcript' AND key = ?", (session,)
        ).fetchone()
        if row is None:
            return False
        span = (row[0] << PLACES, (row[0] + 1) << PLACES)
        rows = self._base.execute(
            "SELECT id, words, speaker FROM turn WHERE id >= ? AND id < ?", span
        ).fetchall()
        for ident, words, speaker in rows:
            self._put_words(ident, speaker, words, -1)
        self._base.execute("DELETE FROM turn WHERE id >= ? AND id < ?", span)
        self._base.execute("DELETE FROM vector WHERE file >= ? AND file < ?", span)
        self._base.execute("DELETE FROM file WHERE id = ?", row)
        self._count_sessions(-int(bool(rows)))
        return True

    def known(self) -> dict[str, FileStamp]:
        rows = self._base.execute(
            "SELECT key, modified, size, inode, changed FROM file WHERE kind = 'transcript'"
        )
        return {row[0]: row[1:] for row in rows}

    # Looking up

    def around(self, session: str, place: int) -> list[tuple[int, str, str]]:
        """Place, speaker and words of the turn at a place and of those right before and after."""
        rows = self._base.execute(
            f"SELECT turn.id & {(1 << PLACES) - 1}, speaker, said FROM file JOIN turn"
            f" ON turn.id BETWEEN (file.id << {PLACES}) + max(?, 0) AND (file.id << {PLACES}) + ?"
            " WHERE kind = 'transcript' AND key = ? ORDER BY turn.id",
            (place - 2, place, session),
        )
        return [(at + 1, speaker, said) for at, speaker, said in rows]

    def ranked(
        self,
        query: Query,
        *,
        exclude: Container[str],
        alone: bool = True,
        likeness: VectorScores = NOTHING,
    ) -> list[ScoredMemory]:
        """The turns that answer a query, best first; each for itself, or for its session.
        `likeness` is how close each is in meaning."""
        named = self._named_speakers(query)
        sides = {side: self._weigh(query, named, *side) for side in (_SAID, _REPLY)}
        found = [ident for one in sides.values() for ident in self._candidates(one)]
        near = self._near([*found, *self._dated(query), *likeness.likest])
        out = self._excluded_sessions(near, exclude)
        turns = {n: turn for n, turn in self._read(near, likeness) if n >> PLACES not in out}
        of = {n: sides[_side(turn.speaker)] for n, turn in turns.items()}
        amounts = {
            n: count_terms(turn, of[n].terms, whole=not alone or turn.speaker not in ROLES)
            for n, turn in turns.items()
        }
        whole = self._sessions(sides.values(), turns)
        who = frozenset(named.values())
        scored: list[ScoredMemory] = []
        for n, side in of.items():
            around = side.terms, side.length, whole.get(n >> PLACES, 0.0), who
            scored.append(ScoredMemory(n, *score_turn(n, turns, amounts, *around, alone=alone)))
        scored = sorted([one for one in scored if one.score > 0], key=_best_first)
        if not alone:
            return scored
        replies = {n for n, turn in turns.items() if turn.speaker in REPLIES}
        said = [one.score for one in scored if one.id not in replies]
        factor = reply_factor(said, [one.score for one in scored if one.id in replies])
        fused = [
            replace(one, score=one.score * factor) if one.id in replies else one for one in scored
        ]
        return sorted(fused, key=_best_first)

    def _weigh(self, query: Query, named: Mapping[str, str], kind: str, index: str) -> _Side:
        texts, size = self._base.execute(
            "SELECT texts, body FROM total WHERE kind = ?", (kind,)
        ).fetchone()
        counts = Counts(self._base, f"{index}_terms")
        weighed = QueryTerms.of(
            query, texts, counts, named, power=TURN_RARE, prior=TURN_PRIOR, akin=counts.akin
        )
        return _Side(weighed, counts, size / texts if texts else 1.0, f"{index}_index")

    def sessions(self, query: Query, k: int, *, exclude: Container[str]) -> list[ScoredMemory]:
        """The best turn of each session. Where these are few and the query names somebody, the
        sessions with that person follow, from the first on: that is where people introduce
        themselves."""
        best: dict[int, ScoredMemory] = {}
        for one in self.ranked(query, exclude=exclude, alone=False):
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

    def _candidates(self, side: _Side) -> list[int]:
        asked = choose_terms(side.terms, side.counts, MAX_MATCHES)
        if not asked:
            return []
        rows = self._base.execute(
            f"SELECT rowid FROM {side.index} WHERE {side.index} MATCH ? ORDER BY rank LIMIT ?",
            (asked, CANDIDATES),
        )
        return [row[0] for row in rows]

    def _dated(self, query: Query) -> list[int]:
        asked = "SELECT id FROM turn WHERE at >= ? AND at < ? ORDER BY at DESC LIMIT 50"
        spans = ((span.start, span.end) for span in query.dates)
        return [row[0] for span in spans for row in self._base.execute(asked, span)]

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

    def _sessions(self, sides: Iterable[_Side], turns: Iterable[int]) -> dict[int, float]:
        """What each session scores as a whole, of those that have a turn among the candidates."""
        texts, sessions = self._base.execute(
            "SELECT sum(texts), max(heads) FROM total WHERE kind IN ('transcript', 'reply')"
        ).fetchone()
        mean = texts / max(sessions, 1)
        sizes = {session: self._size(session) for session in {n >> PLACES for n in turns}}
        found = dict.fromkeys(sizes, 0.0)
        for side in sides:
            for session, amounts in self._session_counts(side, sizes).items():
                found[session] += score_session(amounts, side.terms, sizes[session], mean)
        return found

    def _session_counts(self, side: _Side, wanted: Container[int]) -> dict[int, dict[int, int]]:
        """By session and term, the turns of one side that have it."""
        found: dict[int, dict[int, int]] = {}
        for n, term in enumerate(side.terms.all):
            if not 0 < side.counts(term.text) <= MAX_MATCHES:
                continue
            rows = self._base.execute(
                f"SELECT rowid >> {PLACES}, count(*) FROM {side.index} WHERE {side.index} MATCH ?"
                " GROUP BY 1",
                (f'"{term.text}"',),
            )
            for session, count in rows:
                if session in wanted:
                    found.setdefault(session, {})[n] = count
        return found

    def _size(self, session: int) -> int:
        row = self._base.execute(
            "SELECT max(id) FROM turn WHERE id >= ? AND id < ?",
            (session << PLACES, (session + 1) << PLACES),
        ).fetchone()
        return 0 if row[0] is None else (row[0] & ((1 << PLACES) - 1)) + 1
