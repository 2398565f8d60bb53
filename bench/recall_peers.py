"""Recall beside other memories, on the same documents, queries and vectors.

Three sets: turns of long dialogues with questions (LoCoMo), memory documents with the situations
that their authors wrote for them, and the same documents with queries in other words. By words:
plain FTS5 and bm25s. By meaning: mem0 with `infer=False`, LangGraph's store and mempalace, each
with its own code in its own environment, all with the same local model behind one endpoint
(`bench/embedding`); and what anyone would put together of FTS5 and these vectors. What is compared
is the share of what should be found in the first 5 and 10. A peer that cannot be installed or does
not run is told as such.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import recall_data as data
from bench.embedding import Vectors, endpoint
from bench.figures import HERE, OUT, QUICK, ROOT_SHARED, Figure, Row, against_peers, once
from bench.peers import LOCKS, MISSING, environment
from bench.recall import Plain
from bench.recall_scripts import SCRIPTS
from reverie.memory import Meaning, Query
from reverie.providers import PACKAGE
from reverie.providers.minilm import minilm
from reverie.store import HitKind, RecallIndex

DEPTH = 10
DIALOGUES = 1 if QUICK else int(os.environ.get("REVERIE_BENCH_DIALOGUES", "5"))
MINUTES = 25
BY_WORDS = ("bm25s",)
BY_MEANING = ("mem0", "langgraph", "mempalace")
BOTH = "FTS5 and vectors, ranks fused"
FUSED, NEAR = 60, 50  # the constant of reciprocal rank fusion, and how many of each are fused
TITLES = {
    "dialogues": "LoCoMo, evidence in the first {k} turns",
    "situations": "memory documents, the right one for a described situation in the first {k}",
    "paraphrases": "memory documents, the right one for a query in other words in the first {k}",
}
Found = list[list[str]]


@dataclass(frozen=True, slots=True)
class Work:
    """Documents, and queries each with what should be found."""

    documents: Mapping[str, str]
    queries: Sequence[tuple[str, str, frozenset[str]]]  # the set it belongs to, text, wanted
    dialogue: data.Dialogue | None = None

    def value(self, url: str) -> dict[str, Any]:
        texts = [text for _, text, _ in self.queries]
        return {"url": url, "documents": dict(self.documents), "queries": texts, "k": DEPTH}


def measure(out: Path) -> Iterator[Figure | Row]:
    del out
    if not data.there():
        yield "dialogues and documents", f"not found under {ROOT_SHARED.name}", "", None
        return
    model = minilm()
    vectors = Vectors(model, OUT / "kept" / "vectors.sqlite3") if model is not None else None
    works = [*(dialogue(one) for one in data.dialogues()[:DIALOGUES]), documents()]
    found: dict[str, list[Found]] = {"Reverie": [ours(one, None) for one in works]}
    found["FTS5"] = [
        [plain.search(text, DEPTH) for _, text, _ in one.queries]
        for one in works
        for plain in [Plain({key: [text] for key, text in one.documents.items()})]
    ]
    yield from asked(found, BY_WORDS, works, "")
    if vectors is None:
        yield "by meaning", f"not measured: needs {PACKAGE}", "", None
    else:
        found["Reverie, by meaning"] = [ours(one, vectors) for one in works]
        found[BOTH] = [fused(one, vectors) for one in works]
        if environment("mem0"):
            told = (
                "as it installs: its search by words too needs fastembed and files of a model hub"
            )
            yield "peer mem0", told, "", None
        with endpoint(vectors) as url:
            yield from asked(found, BY_MEANING, works, url)
    yield from figures(found, works)


def asked(
    found: dict[str, list[Found]], names: Sequence[str], works: Sequence[Work], url: str
) -> Iterator[Row]:
    """What peers find; what went wrong is told."""
    for name in names:
        python = environment(name)
        if not python:
            yield f"peer {name}", MISSING[name], "", None
            continue
        try:
            answers = [answered(name, python, one, url) for one in works]
        except (subprocess.SubprocessError, ValueError, IndexError) as error:
            said = getattr(error, "stderr", "") or str(error)
            yield f"peer {name}", f"did not run: {said.strip().splitlines()[-1][:200]}", "", None
            continue
        if None in answers:
            yield f"peer {name}", "not run: the time was over", "", None
        else:
            found[name] = [one for one in answers if one is not None]


def answered(name: str, python: str, work: Work, url: str) -> Found | None:
    of = (work.value(""), SCRIPTS[name], (LOCKS / f"{name}.txt").read_text("utf-8"))
    return once(f"recall {name}", of, lambda: run(python, SCRIPTS[name], work.value(url)))


def run(python: str, script: str, given: dict[str, Any]) -> Found:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [python, "-c", script],
            input=json.dumps(given),
            capture_output=True,
            text=True,
            check=True,
            cwd=folder,
            env={"HOME": folder, "PATH": "/usr/bin:/bin", "MEM0_TELEMETRY": "False"},
            timeout=60 * MINUTES,
        )
    return json.loads(done.stdout.splitlines()[-1])


# The work


def dialogue(one: data.Dialogue) -> Work:
    turns = [turn for said in one.sessions.values() for turn in said]
    texts = {turn.message: f"{turn.speaker} ({day(turn.at)}): {turn.text}" for turn in turns}
    return Work(texts, [("dialogues", q.text, q.evidence) for q in one.questions], one)


def day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%-d %B %Y")


def documents() -> Work:
    texts = {data.key_of(one): f"{one['title'] or ''}\n{one['body']}" for one in data.documents()}
    known = [("situations", line, frozenset({key})) for line, key in data.read_when()]
    lines = (HERE / "paraphrases.jsonl").read_text(encoding="utf-8").splitlines()
    known += [
        ("paraphrases", str(row["query"]), frozenset({str(row["id"])}))
        for row in map(json.loads, lines)
    ]
    return Work(texts, known[:: 8 if QUICK else 1])


# Ours


def ours(work: Work, vectors: Vectors | None) -> Found:
    """The product's own index, as a session or `reverie recall` would ask it."""
    kind: HitKind = "memory" if work.dialogue is None else "transcript"
    with (
        tempfile.TemporaryDirectory() as name,
        RecallIndex.open(Path(name) / "i.sqlite3") as index,
    ):
        if work.dialogue is None:
            index.refresh(data.memory_folder(Path(name) / "memory"))
        else:
            for session, said in work.dialogue.sessions.items():
                index.put_session(session, said)
        if vectors is not None:
            missing = index.without_vector(vectors.name, 100_000, kind)
            made = vectors.encode([text for _, text in missing])
            rows = [(n, one) for (n, _), one in zip(missing, made, strict=True)]
            index.put_vectors(vectors.name, rows, kind)
        out: Found = []
        for _, text, _ in work.queries:
            meaning = None
            if vectors is not None:
                meaning = Meaning(vectors.name, vectors.encode([text])[0])
            query = Query.of(text, data.NOW)
            hits = index.search(query, k=DEPTH, kinds=(kind,), meaning=meaning)
            out.append([hit.message if kind == "transcript" else hit.file for hit in hits])
    return out


# What anyone would put together


def fused(work: Work, vectors: Vectors) -> Found:
    """Plain FTS5 and the nearest vectors, by reciprocal rank."""
    import numpy as np

    plain = Plain({key: [text] for key, text in work.documents.items()})
    keys = list(work.documents)
    known = np.array(vectors.encode(list(work.documents.values())), dtype=np.float32)
    known /= np.linalg.norm(known, axis=1, keepdims=True)
    out: Found = []
    for _, text, _ in work.queries:
        close = known @ np.array(vectors.encode([text])[0], dtype=np.float32)
        near = [keys[n] for n in np.argsort(-close)[:NEAR]]
        score = dict.fromkeys(keys, 0.0)
        for ranked in (near, plain.search(text, NEAR)):
            for place, key in enumerate(ranked, 1):
                score[key] += 1 / (FUSED + place)
        out.append(sorted(score, key=lambda key: -score[key])[:DEPTH])
    return out


# Figures


def figures(found: Mapping[str, list[Found]], works: Sequence[Work]) -> Iterator[Figure]:
    for name, title in TITLES.items():
        count = sum(part == name for one in works for part, _, _ in one.queries)
        for k in (5, 10):
            shares = {who: share(found[who], works, name, k) for who in found}
            words = {who: shares[who] for who in ("FTS5", *BY_WORDS) if who in shares}
            meant = {who: shares[who] for who in (BOTH, *BY_MEANING) if who in shares}
            told = title.format(k=k)
            yield against_peers(
                f"recall.{name}.{k}.words",
                f"{told}, by words",
                shares["Reverie"],
                words,
                better="higher",
                unit="share",
                n=count,
            )
            if "Reverie, by meaning" in shares:
                yield against_peers(
                    f"recall.{name}.{k}.meaning",
                    f"{told}, by meaning",
                    shares["Reverie, by meaning"],
                    meant,
                    better="higher",
                    unit="share",
                    n=count,
                )


def share(found: Sequence[Found], works: Sequence[Work], name: str, k: int) -> float:
    return statistics.mean(
        len(set(hits[:k]) & wanted) / len(wanted)
        for one, answers in zip(works, found, strict=True)
        for (part, _, wanted), hits in zip(one.queries, answers, strict=True)
        if part == name
    )
