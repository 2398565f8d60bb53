"""What the core costs: import, install, resume, one more record. Ratios within one run."""

from __future__ import annotations

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

from bench.__main__ import Row
from reverie.session.library import Library
from reverie.store.files import Folder
from reverie.store.journal import Journal
from reverie.testing import call
from reverie.transcript.blocks import block_of, text_block
from reverie.transcript.codec import encode
from reverie.transcript.fold import apply
from reverie.transcript.records import AssistantMessage, Entry, Record, Sent, Usage, UserMessage
from reverie.transcript.request import render
from reverie.transcript.view import EMPTY, View

ROOT = Path(__file__).resolve().parent.parent
RECORDS = 4_500
SESSION = "00000000-0000-4000-8000-000000000000"


def measure(out: Path) -> Iterator[Row]:
    del out
    ratio = importing("import reverie") / importing("pass")
    yield "CPU of `import reverie` against bare Python", f"{ratio:.2f} x", "8 x", ratio <= 8
    used = importing("from reverie import Session") / importing("pass")
    yield "the same with `Session` in use", f"{used:.2f} x", "", None
    size = install_size() / 1e6
    yield "core install: the package and what it needs", f"{size:.1f} MB", "12 MB", size <= 12
    with tempfile.TemporaryDirectory() as folder:
        yield from resuming(Path(folder))
    yield from one_more()


def importing(code: str, times: int = 15) -> float:
    """CPU seconds of a fresh interpreter, the least of several."""
    best = float("inf")
    for _ in range(times):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True)
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


def resuming(folder: Path) -> Iterator[Row]:
    lines = [encode(e) for e in entries(RECORDS)]
    log = Journal.open(Folder(folder), f"{SESSION}.jsonl")
    log.append(lines)
    log.close()
    library = Library(folder, folder)
    whole = timed(lambda: library.read(SESSION))
    bare = timed(lambda: [json.loads(line) for line in lines])
    size = sum(len(line) for line in lines) / 1e6
    what = f"resume of a {RECORDS:,}-record transcript ({size:.0f} MB) against json.loads of it"
    yield what, f"{whole / bare:.1f} x ({whole * 1000:.0f} ms)", "", None


def timed(work: Callable[[], object], times: int = 5) -> float:
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def one_more() -> Iterator[Row]:
    """A round more on a short and on a ten times longer transcript."""
    short, long = Growing(RECORDS), Growing(RECORDS * 10)
    ratio = ratio_of(long.grow, short.grow)
    what = f"applying one more record at {RECORDS * 10:,} records against {RECORDS:,}"
    yield what, f"{ratio:.2f} x", "1.2 x", ratio <= 1.2
    ratio = ratio_of(long.render, short.render)
    yield "rendering and marking the request, the same", f"{ratio:.2f} x", "1.2 x", ratio <= 1.2


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
