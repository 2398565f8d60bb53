"""Recall: how much of what matters is found, what a young project is told, and how long it takes.

Everything goes through the product's own index with its own numbers. They were chosen on this very
data (dialogues and sessions of `REVERIE_SHARED`), so the figures of single dialogues say how far
one moves. Beside the peers it is measured in `recall_peers`.

The young project: five memories, fourteen requests, and whether the bodies of the memories that a
good colleague would have in mind stand in what is sent. Each request is the first of an agent's
session; its bytes are read. The same five are then put among many memories of another code base,
where a folder is no longer small: there is no limit on what is found there, but what is sent of the
others is bounded, so that sending all is no answer.

How long it takes: a warm query, one told path, a full rescan, at many files. Beside each stands
what the system itself takes for the same files in the same run: ripgrep for the query's words, a
bare scandir and stat of every file. The ratios are what is promised. All is CPU time, of children
too: what a machine that does nothing else would need.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import resource
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import anyio

import reverie
from bench import recall_data as data
from bench.figures import HERE, QUICK, ROOT_SHARED, Figure, Row, against_peers, at_least, at_most
from bench.growth import grown
from bench.peers import environment
from bench.prepared import Home, Note, stands
from bench.recall_data import NOW
from reverie.providers import SIZE, minilm
from reverie.recall import LocalModel, Query
from reverie.session import meanings
from reverie.store import RecallIndex
from reverie.text import neutralize_markup


def measure(out: Path) -> Iterator[Figure | Row]:
    del out
    if not data.there():
        yield "dialogues and documents", f"not found under {ROOT_SHARED.name}", "", None
        return
    with tempfile.TemporaryDirectory() as name:
        yield from dialogues(Path(name))
        yield contexts(Path(name))
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


# What a prompt gets of recorded dialogues


def contexts(folder: Path) -> Figure:
    """Questions whose whole evidence stands in `context`, and in what FTS5 finds first of the same
    turns, as many of them as have its bytes."""
    ours: list[bool] = []
    theirs: list[bool] = []
    for dialogue in data.dialogues():
        memory = reverie.Memory(dialogue.id, home=folder / "home")
        for session, said in dialogue.sessions.items():
            memory.record([(turn.speaker, turn.text) for turn in said], session=session)
        turns = {turn.message: turn for said in dialogue.sessions.values() for turn in said}
        plain = Plain({name: [f"{one.speaker}: {one.text}"] for name, one in turns.items()})
        for question in dialogue.questions[:: 10 if QUICK else 1]:
            shown = " ".join(memory.context(question.text).split())
            wanted = [" ".join(turns[name].text.split()) for name in question.evidence]
            ours.append(all(neutralize_markup(text) in shown for text in wanted))
            found: set[str] = set()
            room = len(shown.encode())
            for name in plain.search(question.text, len(turns)):
                room -= len(f"{turns[name].speaker}: {turns[name].text}\n".encode())
                if room < 0:
                    break
                found.add(name)
            theirs.append(question.evidence <= found)
    what = (
        "LoCoMo: questions whose evidence is in `context` of recorded dialogues, of the same size"
    )
    return against_peers(
        "recall.context",
        what,
        statistics.mean(ours),
        {"FTS5": statistics.mean(theirs)},
        better="higher",
        unit="share",
        n=len(ours),
    )


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


# A young project


DATA = ROOT_SHARED / "data"
YOUNG = DATA / "young_project.json"
AMONG = (0, 40, 300)
BODY = 600
OTHERS = 5
"""Memories of another code base that one request may hold: as many as a turn may recall."""


def measure_young(out: Path) -> Iterator[Figure | Row]:
    del out
    if not YOUNG.is_file():
        yield "the young project", f"not found under {ROOT_SHARED.name}", "", None
        return
    given = json.loads(YOUNG.read_text("utf-8"))
    own = [Note(**one) for one in given["memories"]]
    for count in AMONG[:1] if QUICK else AMONG:
        yield from young_requests(own, given["requests"], fillers(count))


def young_requests(
    own: Sequence[Note], requests: Sequence[Any], others: Sequence[Note]
) -> Iterator[Figure]:
    bodies = {one.file: one.body for one in own}
    with tempfile.TemporaryDirectory() as name:
        home = Home(Path(name))
        home.save([*others, *own])
        texts = [anyio.run(home.agent_request, one["text"]) for one in requests]
    right = [
        all(stands(bodies[file], text) for file in one["want"])
        for one, text in zip(requests, texts, strict=True)
    ]
    what = "alone" if not others else f"among {len(others)} others"
    found, whole = sum(right), len(right)
    told = f"five memories, {what}: requests that hold the right ones"
    why = "among so many, a request that has none of the memory's words does not bring it up"
    yield Figure(f"young.{len(others)}", told, found, whole, "all", "higher", n=whole, why=why)
    if others:
        most = max(sum(stands(one.body, text) for one in others) for text in texts)
        told = f"the same, {what}: wrong ones sent whole, at most"
        yield at_most(f"young.{len(others)}.others", told, most, OTHERS)


def fillers(count: int) -> list[Note]:
    """Documents of another code base as memories, in the order of their paths' sha256."""
    rows = gzip.decompress((DATA / "memory_docs_dev.jsonl.gz").read_bytes()).splitlines()
    known = [one for one in map(json.loads, rows) if len(one["body"].strip()) > 80]
    known.sort(key=lambda one: hashlib.sha256(one["path"].encode()).hexdigest())
    return [_note(n, one) for n, one in enumerate(known[:count])]


def _note(number: int, one: Any) -> Note:
    title = " ".join(str(one["title"] or one["path"]).split())[:100]
    body = one["body"].strip().encode()[:BODY].decode("utf-8", "ignore")
    kind = ("project", "reference")[number % 2]
    return Note(f"filler_{number:03d}.md", kind, title, title, body)


# How long it takes


SIZES = ((1_000, 0.010), (10_000, 0.010), (100_000, 0.100))
PROMPTED = {10_000: 0.025, 100_000: 0.060}
"""Files, and the seconds of CPU that a message of sixty words may take among them."""
A_FOLDER = 1_000
QUERIES = 200
WORDS = 20_000


def measure_speed(out: Path) -> Iterator[Figure | Row]:
    del out
    medians: dict[int, float] = {}
    builds: dict[int, float] = {}
    for count, goal in SIZES:
        with tempfile.TemporaryDirectory() as name:
            yield from at_size(Path(name), count, goal, medians, builds)
    sizes = [float(count) for count, _ in SIZES]
    for key, what, found, bound in (
        ("recall", "a warm query, CPU", medians, 1.0),
        ("build", "the first build of an index, CPU", builds, 1.2),
    ):
        costs = [1_000 * found[count] for count, _ in SIZES]
        yield grown(key, what, sizes, costs, bound, "ms")


def at_size(
    base: Path, count: int, goal: float, medians: dict[int, float], builds: dict[int, float]
) -> Iterator[Figure | Row]:
    folder, rnd = base / "memory", random.Random(7)
    vocabulary = Vocabulary(rnd)
    make_files(folder, count, vocabulary)
    with RecallIndex.open(base / "recall.sqlite3") as index:
        builds[count] = timed(lambda: index.refresh(folder))
        yield from querying(index, folder, count, goal, vocabulary, medians)
        if count in PROMPTED:
            yield from prompting(index, count, vocabulary, None, PROMPTED[count])
            model = minilm() if count == min(PROMPTED) else None
            if model is not None:
                model = with_vectors(index, model)
                yield from prompting(index, count, vocabulary, model, 0.050)
        yield from refreshing(index, folder, count)


# The first prompt of a session


FIRST = 40
LOOK = 0.008
BUSY = "while True: pass"
CHILD = """
import sys, time
from pathlib import Path
import anyio
from bench.prepared import Home
from reverie.session import open_session
from reverie.wire import user
home = Home(Path(sys.argv[1]))
async def main():
    with home.memories() as memories:
        async with open_session(
            home.project, model="bench", home=home.home, environ={"HOME": str(home.base)},
            memories=memories,
        ) as session:
            await anyio.sleep(float(sys.argv[2]))
            began = time.process_time()
            await session.add(user("How do we deploy staging with argocd again?"))
            request = await session.prepare()
            print("argocd app sync" in request.body(), time.process_time() - began)
anyio.run(main)
"""


def measure_first(out: Path) -> Iterator[Figure | Row]:
    """Whether a clear memory is in a session's first request, each time in a process of its own,
    with one busy process more than there are cores; and what that took where it is quiet."""
    del out
    vocabulary = Vocabulary(random.Random(7))
    body = "Deploy staging with argocd app sync; never with kubectl apply."
    notes = [Note("deploy.md", "project", "Deployment to staging", body, body)]
    for n in range(60):
        name = vocabulary.text(4, 20)
        notes.append(Note(f"other_{n}.md", "project", name, name, vocabulary.text(60, 20)))
    with tempfile.TemporaryDirectory() as name:
        Home(Path(name)).save(notes)
        warm = [float(asked_first(name, 0.5)[1]) for _ in range(5)]
        busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(os.cpu_count() or 1)]
        busy.append(subprocess.Popen([sys.executable, "-c", BUSY]))
        try:
            found = sum(asked_first(name, 0.0)[0] == "True" for _ in range(FIRST))
        finally:
            for one in busy:
                one.kill()
                one.wait()
    what = "a clear memory in the first prompt, one busy process more than cores"
    yield Figure("first.prompt", what, found, FIRST, "all", "higher", n=FIRST)
    what = "the first prompt of a session that is warm, from message to request: CPU, median"
    yield at_most("first.cpu", what, 1000 * statistics.median(warm), 1000 * LOOK, "ms", len(warm))


def asked_first(folder: str, pause: float) -> list[str]:
    line = [sys.executable, "-c", CHILD, folder, str(pause)]
    done = subprocess.run(line, capture_output=True, text=True, check=True, cwd=HERE.parent)
    return done.stdout.split()


class Vocabulary:
    """Words as often as they are in a language: the n-th has 1/n of the first one's share."""

    def __init__(self, rnd: random.Random) -> None:
        letters = "abcdefghijklmnopqrstuvwxyz"
        self.words = ["".join(rnd.choices(letters, k=rnd.randint(3, 9))) for _ in range(WORDS)]
        self.shares = [1 / (n + 1) for n in range(WORDS)]
        self.rnd = rnd
        self.from_ = cache(self._from)

    def text(self, count: int, first: int = 0) -> str:
        words, sums = self.from_(first)
        return " ".join(self.rnd.choices(words, cum_weights=sums, k=count))

    def _from(self, first: int) -> tuple[list[str], list[float]]:
        return self.words[first:], list(accumulate(self.shares[first:]))


def make_files(folder: Path, count: int, vocabulary: Vocabulary) -> None:
    for n in range(count):
        below = folder / f"part_{n // A_FOLDER}"
        below.mkdir(parents=True, exist_ok=True)
        about = vocabulary.text(8, 20)
        head = f"---\nname: {about[:40]}\ndescription: {about}\ntype: project\n---\n\n"
        (below / f"note_{n}.md").write_text(head + vocabulary.text(60) + "\n", encoding="utf-8")


def querying(
    index: RecallIndex,
    folder: Path,
    count: int,
    goal: float,
    vocabulary: Vocabulary,
    medians: dict[int, float],
) -> Iterator[Figure]:
    texts = [f"how do we {vocabulary.text(6, 50)}?" for _ in range(QUERIES)]
    for text in texts[:20]:
        index.search(Query.of(text, NOW), k=5)
    took = sorted(timed(lambda t=text: index.search(Query.of(t, NOW), k=5)) for text in texts)
    high, middle = took[int(len(took) * 0.99)], statistics.median(took)
    medians[count] = middle
    what = f"{count:,} files: a warm query, 99th percentile of CPU"
    bound = 1000 * goal
    yield at_most(f"speed.query.{count}.high", what, 1000 * high, bound, "ms", QUERIES)
    peers = others(folder, texts)
    grep = shutil.which("rg") or ""
    if grep:
        found = min(of_children(lambda t=t: ripgrep(grep, folder, t)) for t in texts[:5])
        peers["ripgrep"] = 1000 * found
    why = "it weighs names, descriptions, dates and kin words, and says why; all fits into a turn"
    yield against_peers(
        f"speed.query.{count}",
        f"{count:,} files: a warm query, median of CPU",
        1000 * middle,
        peers,
        better="lower",
        unit="ms",
        n=QUERIES,
        why=why,
    )


BM25S = """
import json, statistics, sys, time
import bm25s, Stemmer
given = json.load(sys.stdin)
stemmer = Stemmer.Stemmer("english")
def cut(texts):
    return bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)
index = bm25s.BM25()
index.index(cut(given["texts"]), show_progress=False)
took = []
for query in given["queries"]:
    began = time.process_time()
    index.retrieve(cut([query]), k=5, show_progress=False)
    took.append(time.process_time() - began)
print(1000 * statistics.median(took))
"""


def others(folder: Path, texts: list[str]) -> dict[str, float]:
    """Milliseconds of CPU that a query takes over the same files, median: FTS5 and bm25s, as they
    come."""
    files = {str(path): [path.read_text("utf-8")] for path in folder.rglob("*.md")}
    plain = Plain(files)
    took = [timed(lambda t=text: plain.search(t, 5)) for text in texts]
    found = {"FTS5": 1000 * statistics.median(took)}
    python = environment("bm25s")
    if python:
        given = {"texts": [text for one in files.values() for text in one], "queries": texts}
        line = [python, "-c", BM25S]
        done = subprocess.run(
            line, input=json.dumps(given), capture_output=True, text=True, check=True
        )
        found["bm25s"] = float(done.stdout)
    return found


def prompting(
    index: RecallIndex, count: int, vocabulary: Vocabulary, model: LocalModel | None, goal: float
) -> Iterator[Figure | Row]:
    """A message of sixty words, as a turn looks at it."""
    texts = [f"{'. '.join(vocabulary.text(20, 50) for _ in range(3))}." for _ in range(QUERIES)]

    def look(text: str) -> None:
        meant = meanings(model, text, NOW) if model is not None else ()
        index.about(text, NOW, k=20, meanings=meant)

    for text in texts[:20]:
        look(text)
    took = sorted(timed(lambda t=text: look(t)) for text in texts)
    high, middle = took[int(len(took) * 0.99)], statistics.median(took)
    how = " with meaning" if model is not None else ""
    what = f"{count:,} files: a message of 60 words{how}, 99th percentile of CPU"
    key = f"speed.message.{count}{'.meaning' if model is not None else ''}"
    bound = 1000 * goal
    why = "half of it is the model of meaning, on one thread; the median keeps to it"
    yield at_most(key, what, 1000 * high, bound, "ms", QUERIES, why)
    yield f"the same{how}, median", f"{1000 * middle:.1f} ms", "", None
    if model is not None:
        spent = [timed(lambda t=t, m=model: meanings(m, t, NOW)) for t in texts[:50]]
        told = f"{1000 * statistics.median(spent):.1f} ms"
        yield "of this, the model of meaning", told, "", None


def with_vectors(index: RecallIndex, model: LocalModel) -> LocalModel:
    """Every memory gets a vector; what it says is of no matter for the time."""
    rnd = random.Random(3)
    missing = [ident for ident, _ in index.without_vector(model.name, 1_000_000)]
    rows = [(ident, [rnd.gauss(0, 1) for _ in range(SIZE)]) for ident in missing]
    index.put_vectors(model.name, rows)
    return model


def ripgrep(program: str, folder: Path, text: str) -> None:
    words = "|".join(text.split()[3:]).rstrip("?")
    subprocess.run(
        [program, "--count", "--ignore-case", words, str(folder)],
        stdout=subprocess.DEVNULL,
        check=False,
    )


def refreshing(index: RecallIndex, folder: Path, count: int) -> Iterator[Figure]:
    walk, rescan = in_turns(lambda: bare_walk(folder), lambda: index.refresh(folder))
    ratio = rescan / walk
    what = f"{count:,} files: a full rescan, in a bare scandir and stat of them"
    yield at_most(f"speed.rescan.{count}", what, ratio, 1.5, "x", 7)
    key = "part_0/note_5.md"
    told: list[float] = []
    for n in range(20):
        (folder / key).write_text(f"---\nname: changed {n}\n---\nchanged {n}\n", encoding="utf-8")
        told.append(timed(lambda: index.refresh(folder, paths=[key])))
    middle = statistics.median(told)
    what = f"{count:,} files: a refresh when the path is told, in that walk"
    bound = 0.1 if count in PROMPTED else 1.0
    yield at_most(f"speed.told.{count}", what, middle / walk, bound, "x", 20)


def bare_walk(folder: Path) -> int:
    """Every entry, with its stat: what anything that looks at the files must do."""
    found, pending = 0, [str(folder)]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                else:
                    entry.stat(follow_symlinks=False)
                    found += 1
    return found


def in_turns(
    one: Callable[[], object], other: Callable[[], object], times: int = 7
) -> tuple[float, float]:
    """The least time of each, taken in turns, so that a busy machine is busy for both."""
    best = [float("inf"), float("inf")]
    for _ in range(times):
        for n, work in enumerate((one, other)):
            best[n] = min(best[n], timed(work))
    return best[0], best[1]


def timed(work: Callable[[], object]) -> float:
    """CPU seconds of some work."""
    start = time.process_time()
    work()
    return time.process_time() - start


def of_children(work: Callable[[], object]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
