"""Recall: how much of what matters is found, how seldom something is injected that does not, and
how fast. Needs the dialogues, documents and sessions (`REVERIE_SHARED`).

Everything goes through the product's own index with its own numbers: one set for memory files
(documents, paraphrases, gate), one for turns (dialogues, recorded sessions). They were chosen on
this very data, so the rows of single dialogues and halves say how far a figure moves.
`bench/paraphrases.jsonl` holds queries of our own, by the document that should be found. With the
extra `semantic` and its weights they are also asked with that model's meaning.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bench import recall_data as data
from bench.figures import HERE, ROOT_SHARED, Row
from bench.recall_speed import speed
from reverie.memory.recall.gate import least as least_evidence
from reverie.memory.recall.meaning import Meaning
from reverie.memory.recall.ranking import Query
from reverie.providers.minilm import PACKAGE, minilm
from reverie.store.recall.index import RecallIndex

INJECTED = 5


def measure(out: Path) -> Iterator[Row]:
    del out
    if not data.there():
        yield "dialogues and documents", f"not found under {ROOT_SHARED.name}", "", None
        return
    with tempfile.TemporaryDirectory() as name:
        yield from dialogues(Path(name))
        yield from commits(Path(name))
        with RecallIndex.open(Path(name) / "memory.sqlite3") as index:
            index.refresh(data.memory_folder(Path(name) / "memory"))
            yield from documents(index)
            yield from gate(index)
            yield from paraphrases(index)
    yield from speed()


def asked(text: str) -> Query:
    return Query.of(text, data.NOW)


def share(found: Iterable[str], wanted: frozenset[str]) -> float:
    return len(set(found) & wanted) / len(wanted)


def against(what: str, got: float, least: float) -> Row:
    return what, f"{got:.3f}", f"{least:.2f}", got >= least


# Dialogues


def dialogues(folder: Path) -> Iterator[Row]:
    rows: dict[str, list[tuple[int, float, float, float]]] = {}
    for dialogue in data.dialogues():
        with dialogue.index(folder / f"{dialogue.id}.sqlite3") as index:
            rows[dialogue.id] = [answered(index, question) for question in dialogue.questions]
    every = [row for found in rows.values() for row in found]
    names = ("turn top 5", "turn top 10", "session top 5")
    for n, (name, least) in enumerate(zip(names, (0.69, 0.78, 0.90), strict=True), 1):
        what = f"dialogues, {len(every)} questions: share of evidence, {name}"
        yield against(what, statistics.mean(row[n] for row in every), least)
        each = [statistics.mean(row[n] for row in found) for found in rows.values()]
        yield f"the same, single dialogues: {name}", f"{min(each):.3f}-{max(each):.3f}", "", None
    hops = [row[2] for row in every if row[0] == 1]
    yield against("dialogues, several hops: turn top 10", statistics.mean(hops), 0.46)


def answered(index: RecallIndex, question: data.Question) -> tuple[int, float, float, float]:
    query = asked(question.text)
    turns = [hit.message for hit in index.search(query, k=10, kinds=("transcript",))]
    sessions = [hit.session for hit in index.sessions(query, k=5)]
    wanted = frozenset(turn.partition(":")[0] for turn in question.evidence)
    found = (share(turns[:5], question.evidence), share(turns, question.evidence))
    return question.category, *found, share(sessions, wanted)


# Sessions that a commit came from


def commits(folder: Path) -> Iterator[Row]:
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
    what = f"commits, {len(data.commits())}: their sessions in the top 5; plain BM25 {theirs:.3f}"
    yield what, f"{ours:.3f}", f"{theirs + 0.08:.3f}", ours >= theirs + 0.08


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


# Memory documents


def documents(index: RecallIndex) -> Iterator[Row]:
    places = [place(index, line, key) for line, key in data.read_when()]
    halves = (places[::2], places[1::2])
    for k, least in ((5, 0.80), (10, 0.89)):
        what = f"documents, {len(places)} situations: the right one in the top {k}"
        yield against(what, within(places, k), least)
        each = " and ".join(f"{within(half, k):.3f}" for half in halves)
        yield f"the same, each half: top {k}", each, "", None


def place(index: RecallIndex, text: str, key: str, meaning: Meaning | None = None) -> int:
    found = [hit.file for hit in index.search(asked(text), k=10, meaning=meaning)]
    return found.index(key) if key in found else 99


def within(places: Sequence[int], k: int) -> float:
    return statistics.mean(one < k for one in places)


def gate(index: RecallIndex) -> Iterator[Row]:
    """What the gate lets through of folders that have nothing to do with it, and of its own."""
    foreign = {
        "commit subjects": [query for query, _ in data.commits()],
        "dialogue questions": [q.text for one in data.dialogues() for q in one.questions],
    }
    for name, texts in foreign.items():
        none = statistics.mean(not passed(index, text) for text in texts)
        what = f"gate, {len(texts)} {name} against the documents: nothing injected"
        yield what, f"{none:.3f}", "0.95", none >= 0.95
    right = [key in passed(index, line) for line, key in data.read_when()]
    what = "gate, the same: situations that inject the right document"
    yield against(what, statistics.mean(right), 0.55)
    each = " and ".join(f"{statistics.mean(half):.3f}" for half in (right[::2], right[1::2]))
    yield "the same, each half", each, "", None


def passed(index: RecallIndex, text: str) -> list[str]:
    """The files that a message lets in."""
    hits = index.about(text, data.NOW, k=INJECTED)
    bar = least_evidence(hit.evidence for hit in hits)
    return [hit.file for hit in hits if hit.evidence >= bar]


# Other words for the same


def paraphrases(index: RecallIndex) -> Iterator[Row]:
    lines = (HERE / "paraphrases.jsonl").read_text(encoding="utf-8").splitlines()
    pairs = [(str(row["query"]), str(row["id"])) for row in map(json.loads, lines)]
    lexical = [place(index, text, key) for text, key in pairs]
    what = f"paraphrases, {len(pairs)}: the right document in the top 5 / 10"
    yield f"{what}, words alone", f"{within(lexical, 5):.3f} / {within(lexical, 10):.3f}", "", None
    model = minilm()
    if model is None:
        yield f"{what}, with meaning", f"not measured: needs {PACKAGE}", "", None
        return
    situations = data.read_when()[::4]
    queries = [*pairs, *situations]
    missing = index.without_vector(model.name, 100_000)
    vectors = model.encode([text for _, text in missing] + [text for text, _ in queries])
    index.put_vectors(model.name, [(n, v) for (n, _), v in zip(missing, vectors, strict=False)])
    meanings = [Meaning(model.name, vector) for vector in vectors[len(missing) :]]
    found = [place(index, *query, meant) for query, meant in zip(queries, meanings, strict=True)]
    same, other = found[: len(pairs)], found[len(pairs) :]
    met = within(same, 5) > within(lexical, 5)
    told = f"{within(same, 5):.3f} / {within(same, 10):.3f}"
    yield f"{what}, with meaning", told, "more than words alone", met
    told = f"{within(other, 5):.3f} / {within(other, 10):.3f}"
    yield "documents, every fourth situation, with meaning: top 5 / 10", told, "", None
