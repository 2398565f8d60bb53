"""Recall beside other memories, on the same documents, queries and vectors.

Three sets: turns of long dialogues with questions (LoCoMo), memory documents with the situations
that their authors wrote for them, and the same documents with queries in other words. By words:
plain FTS5 and bm25s. By meaning: mem0 with `infer=False`, LangGraph's store and mempalace, each
with its own code in its own environment, all with the same local model behind one endpoint; and
what anyone would put together of FTS5 and these vectors. What is compared is the share of what
should be found in the first 5 and 10. A peer that cannot be installed or does not run is told as
such.

What runs in a peer's environment reads {"url", "documents": {id: text}, "queries": [text], "k"}
from standard input and prints one line: for each query the ids found, best first. The peer's
documented calls are used, with its defaults but for the endpoint of the vectors, which has the
usual form of a provider's.
"""

from __future__ import annotations

import base64
import json
import os
import sqlite3
import statistics
import subprocess
import tempfile
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from bench import recall_data as data
from bench.figures import HERE, OUT, QUICK, ROOT_SHARED, Figure, Row, against_peers, once
from bench.peers import LOCKS, MISSING, environment
from bench.recall import Plain
from reverie.providers import PACKAGE, MiniLM, minilm
from reverie.recall import Query, QueryVector
from reverie.store import HitKind, RecallIndex

BM25S = """
import json, sys
import bm25s, Stemmer
given, stemmer = json.load(sys.stdin), Stemmer.Stemmer("english")
def cut(texts):
    return bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)
ids, index = list(given["documents"]), bm25s.BM25()
index.index(cut(list(given["documents"].values())), show_progress=False)
found, _ = index.retrieve(cut(given["queries"]), k=min(given["k"], len(ids)), show_progress=False)
print(json.dumps([[ids[n] for n in row] for row in found]))
"""
LANGGRAPH = """
import json, sys, urllib.request
from langgraph.store.memory import InMemoryStore
given = json.load(sys.stdin)
def embed(texts):
    body = json.dumps({"input": list(texts), "model": "m"}).encode()
    head = {"content-type": "application/json"}
    asked = urllib.request.Request(given["url"] + "/embeddings", body, head)
    with urllib.request.urlopen(asked) as answer:
        return [row["embedding"] for row in json.load(answer)["data"]]
store = InMemoryStore(index={"dims": 384, "embed": embed, "fields": ["text"]})
for key, text in given["documents"].items():
    store.put(("memories",), key, {"text": text})
print(json.dumps([
    [hit.key for hit in store.search(("memories",), query=text, limit=given["k"])]
    for text in given["queries"]]))
"""
MEM0 = """
import json, logging, sys, tempfile
logging.disable(logging.CRITICAL)
given = json.load(sys.stdin)
from mem0 import Memory
folder = tempfile.mkdtemp()
memory = Memory.from_config({
    "embedder": {"provider": "openai", "config": {
        "model": "m", "embedding_dims": 384, "openai_base_url": given["url"], "api_key": "k"}},
    "vector_store": {"provider": "qdrant", "config": {
        "path": folder + "/qdrant", "collection_name": "c", "embedding_model_dims": 384}},
    "llm": {"provider": "openai", "config": {"openai_base_url": given["url"], "api_key": "k"}},
    "history_db_path": folder + "/history.db"})
for key, text in given["documents"].items():
    memory.add(text, user_id="u", metadata={"key": key}, infer=False)
rows = []
for text in given["queries"]:
    hits = memory.search(text, filters={"user_id": "u"}, top_k=given["k"], threshold=0.0)
    rows.append([hit["metadata"]["key"] for hit in hits["results"]])
print(json.dumps(rows))
"""
MEMPALACE = """
import contextlib, json, logging, os, sys, tempfile
given = json.load(sys.stdin)
told = os.fdopen(os.dup(1), "w")  # its server takes standard output for itself
folder = tempfile.mkdtemp()
os.environ |= {
    "MEMPALACE_CONFIG_DIR": folder, "MEMPALACE_PALACE_PATH": folder + "/palace",
    "MEMPALACE_EMBEDDING_MODEL": "openai-compat", "MEMPALACE_EMBEDDING_API_URL": given["url"],
    "MEMPALACE_EMBEDDING_API_MODEL": "m", "MEMPALACE_EMBEDDING_API_KEY": "k"}
with contextlib.redirect_stdout(sys.stderr):
    logging.disable(logging.CRITICAL)
    from mempalace.mcp_server import tool_add_drawer
    from mempalace.searcher import search_memories
    for key, text in given["documents"].items():
        done = tool_add_drawer("work", "notes", text, source_file=key)
        assert done.get("success"), done
    rows = []
    for text in given["queries"]:
        found = search_memories(text, os.environ["MEMPALACE_PALACE_PATH"], n_results=given["k"])
        rows.append(list(dict.fromkeys(hit["source_path"] for hit in found["results"])))
print(json.dumps(rows), file=told, flush=True)
"""
SCRIPTS = {"bm25s": BM25S, "langgraph": LANGGRAPH, "mem0": MEM0, "mempalace": MEMPALACE}


# One model of meaning for everybody


AT_ONCE = 64


class Vectors:
    """The vectors of texts, kept in a file: each text is worked on once."""

    def __init__(self, model: MiniLM, path: Path) -> None:
        self.name = model.name
        self._model, self._turn = model, Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._base = sqlite3.connect(path, check_same_thread=False)
        self._base.execute("CREATE TABLE IF NOT EXISTS vector (text TEXT PRIMARY KEY, value BLOB)")

    def encode(self, texts: Sequence[str]) -> list[list[float]]:
        with self._turn:
            new = [text for text in dict.fromkeys(texts) if self._known(text) is None]
            for start in range(0, len(new), AT_ONCE):
                part = new[start : start + AT_ONCE]
                made = (array("f", one).tobytes() for one in self._model.encode(part))
                rows = zip(part, made, strict=True)
                self._base.executemany("INSERT OR REPLACE INTO vector VALUES (?, ?)", rows)
                self._base.commit()
            return [array("f", self._known(text) or b"").tolist() for text in texts]

    def _known(self, text: str) -> bytes | None:
        found = self._base.execute("SELECT value FROM vector WHERE text = ?", (text,)).fetchone()
        return found[0] if found else None


@contextmanager
def endpoint(vectors: Vectors) -> Iterator[str]:
    """The address at which texts become vectors, while it stands."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            given = asked["input"]
            made = vectors.encode([given] if isinstance(given, str) else given)
            rows = [
                {"object": "embedding", "index": n, "embedding": packed(one, asked)}
                for n, one in enumerate(made)
            ]
            usage = {"prompt_tokens": 1, "total_tokens": 1}
            body = json.dumps(
                {"object": "list", "model": asked.get("model"), "data": rows, "usage": usage}
            ).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Nothing is told."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


def packed(vector: Sequence[float], asked: dict[str, Any]) -> Any:
    if asked.get("encoding_format") == "base64":
        return base64.b64encode(array("f", vector).tobytes()).decode()
    return list(vector)


# Ours and theirs


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
                meaning = QueryVector(vectors.name, vectors.encode([text])[0])
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
