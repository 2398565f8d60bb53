"""Recall: how much of what matters is found where there is more than one way to find it. Needs the
dialogues and sessions (`REVERIE_SHARED`); beside the peers it is measured in `recall_peers`.

Everything goes through the product's own index with its own numbers. They were chosen on this very
data, so the figures of single dialogues say how far one moves.
"""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from bench import recall_data as data
from bench.figures import ROOT_SHARED, Figure, Row, against_peers, at_least
from reverie.memory import Query
from reverie.store import RecallIndex


def measure(out: Path) -> Iterator[Figure | Row]:
    del out
    if not data.there():
        yield "dialogues and documents", f"not found under {ROOT_SHARED.name}", "", None
        return
    with tempfile.TemporaryDirectory() as name:
        yield from dialogues(Path(name))
        yield from commits(Path(name))


def asked(text: str) -> Query:
    return Query.of(text, data.NOW)


def share(found: Iterable[str], wanted: frozenset[str]) -> float:
    return len(set(found) & wanted) / len(wanted)


# Dialogues


def dialogues(folder: Path) -> Iterator[Figure | Row]:
    rows: dict[str, list[tuple[int, float, float, float]]] = {}
    for dialogue in data.dialogues():
        with dialogue.index(folder / f"{dialogue.id}.sqlite3") as index:
            rows[dialogue.id] = [answered(index, question) for question in dialogue.questions]
    every = [row for found in rows.values() for row in found]
    for n, name in enumerate(("turn top 5", "turn top 10", "session top 5"), 1):
        each = [statistics.mean(row[n] for row in found) for found in rows.values()]
        yield f"single dialogues: {name}", f"{min(each):.3f}-{max(each):.3f}", "", None
    sessions = statistics.mean(row[3] for row in every)
    what = "LoCoMo: sessions with the evidence in the first 5"
    yield at_least("recall.sessions", what, sessions, 0.90, "share", len(every))
    hops = [row[2] for row in every if row[0] == 1]
    what = "LoCoMo: questions of several hops, evidence in the first 10 turns"
    yield at_least("recall.hops", what, statistics.mean(hops), 0.46, "share", len(hops))


def answered(index: RecallIndex, question: data.Question) -> tuple[int, float, float, float]:
    query = asked(question.text)
    turns = [hit.message for hit in index.search(query, k=10, kinds=("transcript",))]
    sessions = [hit.session for hit in index.sessions(query, k=5)]
    wanted = frozenset(turn.partition(":")[0] for turn in question.evidence)
    found = (share(turns[:5], question.evidence), share(turns, question.evidence))
    return question.category, *found, share(sessions, wanted)


# Sessions that a commit came from


def commits(folder: Path) -> Iterator[Figure]:
    plain = Plain({name: [turn.text for turn in said] for name, said in data.sessions().items()})
    with RecallIndex.open(folder / "sessions.sqlite3") as index:
        for name, said in data.sessions().items():
            index.put_session(name, said)
        ours, theirs = (
            statistics.mean(share(find(query), wanted) for query, wanted in data.commits())
            for find in (
                lambda text: [hit.session for hit in index.sessions(asked(text), k=5)],
                lambda text: plain.search(text, 5),
            )
        )
    what = "commits: the sessions they came from in the first 5"
    yield against_peers(
        "recall.commits",
        what,
        ours,
        {"FTS5": theirs},
        better="higher",
        unit="share",
        n=len(data.commits()),
    )


class Plain:
    """Plain BM25 with stemming, as anyone would set it up: the yardstick."""

    def __init__(self, texts: dict[str, list[str]]) -> None:
        self.names = list(texts)
        self.base = sqlite3.connect(":memory:")
        self.base.execute("CREATE VIRTUAL TABLE t USING fts5(body, tokenize='porter unicode61')")
        rows = enumerate(" ".join(parts) for parts in texts.values())
        self.base.executemany("INSERT INTO t (rowid, body) VALUES (?, ?)", rows)

    def search(self, text: str, k: int) -> list[str]:
        letters = "".join(letter if letter.isalnum() else " " for letter in text.lower())
        match = " OR ".join(f'"{word}"' for word in letters.split())
        rows = self.base.execute(
            "SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT ?", (match, k)
        )
        return [self.names[row[0]] for row in rows]
