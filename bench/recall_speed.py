"""How long recall takes: a warm query, one told path, a full rescan, at many files.

Beside each stands what the system itself takes for the same files in the same run: ripgrep for
the query's words, a bare scandir and stat of every file. The ratios are what is promised. All is
CPU time, of children too: what a machine that does nothing else would need.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from itertools import accumulate
from pathlib import Path

from bench.figures import Figure, Row, against_peers, at_most
from bench.growth import grown
from bench.peers import environment
from bench.recall import Plain
from bench.recall_data import NOW
from reverie.memory import LocalModel, Query
from reverie.providers import SIZE
from reverie.providers.minilm import minilm
from reverie.session import meanings
from reverie.store import RecallIndex

SIZES = ((1_000, 0.010), (10_000, 0.010), (100_000, 0.100))
PROMPTED = 10_000
A_FOLDER = 1_000
QUERIES = 200
WORDS = 20_000


def measure(out: Path) -> Iterator[Figure | Row]:
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
        if count == PROMPTED:
            yield from prompting(index, count, vocabulary, None, 0.030)
            model = minilm()
            if model is not None:
                model = with_vectors(index, model)
                yield from prompting(index, count, vocabulary, model, 0.050)
        yield from refreshing(index, folder, count)


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
    bound = 0.1 if count >= PROMPTED else 1.0
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
