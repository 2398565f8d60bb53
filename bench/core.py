"""What the core costs: import, install, resume, one more record. Ratios within one run.

What each public name costs to import: CPU against bare Python, compiled files, the least of
seven.

One session from end to end, as `reverie demo --json` tells it: scripted, billed by the simulated
prompt cache, without a key or a network.
"""

from __future__ import annotations

import compileall
import json
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.figures import QUICK, ROOT, Figure, Row, against_peers, at_least, at_most
from bench.peers import ENVIRONMENTS, MISSING, environment, size_of
from reverie.session import SessionLibrary
from reverie.store import Folder, Journal
from reverie.testing import call
from reverie.transcript import (
    EMPTY,
    AssistantMessage,
    Entry,
    Record,
    Sent,
    Usage,
    UserMessage,
    View,
    apply,
    block_of,
    encode,
    text_block,
)
from reverie.wire import render

RECORDS = 1_000 if QUICK else 4_500
MEMORY = "from reverie import Memory"
SESSION = "00000000-0000-4000-8000-000000000000"


def measure(out: Path) -> Iterator[Figure | Row]:
    del out
    yield from beside_peers()
    with tempfile.TemporaryDirectory() as folder:
        yield from resuming(Path(folder))
    yield from one_more()


def beside_peers() -> Iterator[Figure | Row]:
    """Import and size against other context managers and memories, each in its own environment."""
    wanted = {} if QUICK else ENVIRONMENTS
    loads: dict[str, float] = {}
    sizes: dict[str, float] = {}
    for name, (_, code) in wanted.items():
        python = environment(name)
        if not python or not code:
            if name in MISSING:
                yield f"peer {name}", MISSING[name], "", None
            continue
        loads[name] = importing(code, 5, python) / importing("pass", 5, python)
        sizes[name] = size_of(python) / 1e6
    for name, code in (("session", "from reverie import Session"), ("memory", MEMORY)):
        ratio = importing(code) / importing("pass")
        what = f"CPU of `{code.partition(';')[0]}`, in bare Pythons"
        yield against_peers(f"import.{name}", what, ratio, loads, better="lower", unit="x", n=15)
    what = "installed size: the package and all it needs"
    size = install_size() / 1e6
    yield against_peers("install.size", what, size, sizes, better="lower", unit="MB")
    yield at_most(
        "install.limit",
        "the same, against our own limit",
        size,
        12.0,
        "MB",
        why="our own package has grown; Pygments alone, which rich needs, is 4.6 MB",
    )


def importing(code: str, times: int = 15, python: str = sys.executable) -> float:
    """CPU seconds of a fresh interpreter, the least of several."""
    best = float("inf")
    for _ in range(times):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([python, "-c", code], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        best = min(best, cpu)
    return best


def install_size() -> int:
    """Bytes that the run-time lock and the package itself put into site-packages."""
    target = Path(tempfile.mkdtemp())
    try:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
        wanted = runtime_names()
        lock = target / "lock.txt"
        lock.write_text(only(ROOT / "locks" / "run.txt", wanted), encoding="utf-8")
        site = str(target / "site")
        command = [*pip, "--target", site, "--require-hashes", "-r", str(lock)]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        shutil.copytree(ROOT / "src" / "reverie", target / "site" / "reverie")
        files = [f for f in (target / "site").rglob("*") if f.is_file()]
        return sum(f.stat().st_size for f in files if "__pycache__" not in f.parts)
    finally:
        shutil.rmtree(target)


def runtime_names() -> set[str]:
    """What the core really needs, found from the installed packages' own metadata."""
    from importlib.metadata import requires

    found: set[str] = set()
    todo = ["anyio", "click", "google-re2", "markdown-it-py", "rich"]
    while todo:
        name = todo.pop().lower().replace("_", "-")
        if name in found:
            continue
        try:
            needs = requires(name) or []
        except ModuleNotFoundError:
            continue
        found.add(name)
        todo += [re.split(r"[^A-Za-z0-9._-]", n)[0] for n in needs if "extra" not in n]
    return found


def only(lock: Path, names: set[str]) -> str:
    """A lock's entries for some packages."""
    entries: list[str] = []
    for line in lock.read_text(encoding="utf-8").splitlines():
        if line and not line[0].isspace() and not line.startswith("#"):
            entries.append("")
        if entries:
            entries[-1] += line + "\n"
    return "".join(e for e in entries if e.split("==")[0].strip().lower() in names)


def history(rounds: int) -> Iterator[Record]:
    for n in range(rounds):
        ident = f"toolu_{n:05d}"
        yield AssistantMessage(
            (text_block(f"Step {n}. " * 20), call("Bash", ident, command=f"run {n}")),
            usage=Usage(n, n, n, n),
        )
        result = {"type": "tool_result", "tool_use_id": ident, "content": f"line {n}\n" * 300}
        yield UserMessage((block_of(result),), "tool")


def entries(records: int) -> list[Entry]:
    out = [Entry("u", "", 0.0, UserMessage((text_block("go"),)))]
    for record in history(records // 2):
        out.append(Entry(f"e{len(out)}", out[-1].id, float(len(out)), record))
    return out


def resuming(folder: Path) -> Iterator[Figure]:
    lines = [encode(e) for e in entries(RECORDS)]
    log = Journal.open(Folder(folder), f"{SESSION}.jsonl")
    log.append(lines)
    log.close()
    library = SessionLibrary(folder, folder)
    whole = timed(lambda: library.read(SESSION))
    bare = timed(lambda: [json.loads(line) for line in lines])
    size = sum(len(line) for line in lines) / 1e6
    yield at_most(
        "resume.time",
        f"resume of a transcript of {RECORDS:,} records, {size:.0f} MB: CPU, in `json.loads` of it",
        whole / bare,
        6.0,
        "x",
        n=RECORDS,
    )


def timed(work: Callable[[], object], times: int = 5) -> float:
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def one_more() -> Iterator[Figure]:
    """A round more on a short and on a ten times longer transcript."""
    short, long = Growing(RECORDS), Growing(RECORDS * 10)
    for key, what, ratio in (
        ("record", "applying one more record", ratio_of(long.grow, short.grow)),
        ("render", "rendering and marking a request", ratio_of(long.render, short.render)),
    ):
        told = f"{what} at {RECORDS * 10:,} records, against {RECORDS:,}"
        yield at_most(f"one_more.{key}", told, ratio, 1.2, "x", n=15)


def ratio_of(one: Callable[[], object], other: Callable[[], object], times: int = 15) -> float:
    """The two taken in turns, so that a busy machine is busy for both."""
    best = [float("inf"), float("inf")]
    for _ in range(times):
        for n, work in enumerate((one, other)):
            best[n] = min(best[n], timed(work, 1))
    return best[0] / best[1]


class Growing:
    """A transcript that goes on: every round is appended to the newest view."""

    def __init__(self, records: int) -> None:
        self.view: View = EMPTY
        self.count = 0
        for entry in entries(records):
            self.view = apply(self.view, entry)

    def grow(self) -> None:
        for _ in range(100):
            self.count += 1
            ident = f"more_{self.count}"
            block = call("Bash", ident, command="x" * 100)
            self._append(AssistantMessage((block,), usage=Usage(1, 2, 3, 4)))
            result = {"type": "tool_result", "tool_use_id": ident, "content": "x" * 500}
            self._append(UserMessage((block_of(result),), "tool"))

    def _append(self, record: Record) -> None:
        entry = Entry(f"m{len(self.view.entries)}", self.view.leaf, 1.0, record)
        self.view = apply(self.view, entry)

    def render(self) -> None:
        for _ in range(100):
            request = render(self.view)
            self._append(Sent("main", self.view.leaf, request.parts(), request.marks))


# Public names


NAMES = {"fit": 8.0}
"""What a name may cost, in bare Pythons."""
VERSION = (
    "import os, sys; sys.stdout = open(os.devnull, 'w'); sys.argv[1:] = ['--version'];"
    "from reverie.apps.cli import main; main()"
)
VERSION_MOST = 8.0
ADDED = "m = Memory('shop', home={home!r}); m.add('The shop sells zebras'); m.search('zebra')"
FITTED = "fit([{'role': 'user', 'content': 'x'}], model='gpt-5')"


def measure_imports(out: Path) -> Iterator[Figure]:
    del out
    compileall.compile_dir(str(ROOT / "src"), quiet=2)
    bare = importing("pass", 7)
    for name, most in NAMES.items():
        code = f"from reverie import {name}"
        yield import_cost(f"import.{name}", f"`{code}`", code, bare, most)
    yield import_cost("start.version", "`reverie --version`", VERSION, bare, VERSION_MOST)
    code = f"from reverie import fit; {FITTED}"
    yield import_cost("start.fit", "a list fitted, in a fresh process", code, bare, 8.0)
    with tempfile.TemporaryDirectory() as home:
        code = f"from reverie import Memory; {ADDED.format(home=home)}"
        yield import_cost(
            "start.memory", "a text added and found, in a fresh process", code, bare, 15.0
        )


def import_cost(key: str, what: str, code: str, bare: float, most: float) -> Figure:
    told = f"CPU of {what}, in bare Pythons"
    return at_most(key, told, importing(code, 7) / bare, most, "x", n=7)


# One session from end to end


def measure_demo(out: Path) -> Iterator[Figure]:
    del out
    line = [sys.executable, "-m", "reverie.apps.cli", "demo", "--json"]
    found = json.loads(subprocess.run(line, capture_output=True, check=True).stdout)
    layers, checks = found["layers"], found["checks"]
    yield Figure(
        "demo.checks",
        "demo: checks that hold",
        sum(checks.values()),
        len(checks),
        "all",
        "higher",
        n=len(checks),
    )
    yield Figure(
        "demo.cost",
        "demo: cost with stored results and microcompaction, as a share of sending all",
        found["cost"] / found["naive_cost"],
        1.0,
        "sending everything",
        "lower",
        "share",
        n=found["rounds"],
    )
    notes = layers["compaction"]["by_notes"]
    yield Figure(
        "demo.notes.tokens",
        "demo: tokens left when the notes take the place of old messages, no call made",
        notes["tokens_after"],
        notes["tokens_before"],
        "before it",
        "lower",
    )
    hits = {
        "notes": ("notes on the session", layers["session_memory"]["hit_rate"], 0.9),
        "extraction": ("memory extraction", layers["extraction"]["hit_rate"], 0.9),
        "fork": ("a forked agent", found["fork"]["hit_rate"], 0.99),
    }
    for key, (what, rate, bound) in hits.items():
        told = f"demo: prompt of {what} that is read from the session's cache"
        yield at_least(f"demo.{key}.cached", told, rate, bound, "share")
