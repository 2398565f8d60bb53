"""Applies the manifest's mutations one at a time and asks whether a test notices.

Each runs in a copy of the tree, so nothing here is touched. First the named tests run
on the unchanged copy: they must pass, or a failure would prove nothing.

- killed: a named test failed, as it must;
- survived: all of them passed;
- stale: the text to replace is not there exactly once;
- broken: the tests could not be run, or did not end in time.

Ends with 0 only if every mutation was killed.

    python -m scripts.mutations [--jobs 2] [--only TEXT] [--list]
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import TypeAlias

from scripts import manifest
from scripts.manifest import Mutation, Row

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 300  # for each test or file of tests that is named
UNUSED = ("cacheprovider", "xdist", "schemathesis", "langsmith_plugin")  # the last two start slowly
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", "out", "dist")


Plugin: TypeAlias = tuple[str, Mapping[str, str]]
"""One of pytest's, and what it reads from the environment."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one mutation."""

    row: str
    mutation: Mutation
    verdict: str
    detail: str = ""

    def __str__(self) -> str:
        text = f"{self.verdict:9} {self.row:24} {self.mutation.name}"
        return f"{text}\n{self.detail}" if self.detail else text


def run_tests(
    tree: Path,
    tests: Sequence[str],
    limit: float | None = None,
    plugin: Plugin | None = None,
) -> tuple[int | None, str]:
    """Runs some tests in a copy; the exit code, or None where time ran out."""
    environment = {
        **os.environ,
        **(plugin[1] if plugin else {}),
        "PYTHONPATH": os.pathsep.join([str(tree / "src"), str(tree)]),
        # A changed file of the same size and second would be taken from the cache.
        "PYTHONDONTWRITEBYTECODE": "1",
        "REVERIE_SCALE": "small",
        "REVERIE_DOORS": "1",  # a test that is named is run, whatever its tier
        "REVERIE_SHARED": os.environ.get("REVERIE_SHARED") or str(ROOT.parent / "shared"),
    }
    options = ("-x", "-q", "--tb=line", *(part for name in UNUSED for part in ("-p", f"no:{name}")))
    options += ("-p", plugin[0]) if plugin else ()
    limit = limit or LIMIT_S * len(tests)
    with tempfile.TemporaryFile() as out:  # not a pipe: what a test leaves running would hold it
        tests_run = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=tree,
            env=environment,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = tests_run.wait(limit)
        except subprocess.TimeoutExpired:
            return None, f"no end within {limit:.0f} s"
        finally:  # and all that a broken test did not close
            with suppress(ProcessLookupError):
                os.killpg(tests_run.pid, signal.SIGKILL)
            tests_run.wait()
        out.seek(0)
        return code, "\n".join(out.read().decode(errors="replace").splitlines()[-15:])


@contextmanager
def applied(tree: Path, mutation: Mutation) -> Iterator[bool]:
    """Puts one mutation into a copy and takes it out again; False if its text is not there."""
    path = tree / mutation.file
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    if not mutation.find or before.count(mutation.find) != 1:
        yield False
        return
    path.write_text(before.replace(mutation.find, mutation.replace), encoding="utf-8")
    try:
        yield True
    finally:
        path.write_text(before, encoding="utf-8")


def attempt(tree: Path, row: str, mutation: Mutation) -> Outcome:
    """One mutation, from applying it to the verdict."""
    with applied(tree, mutation) as fits:
        if not fits:
            return Outcome(row, mutation, "stale", f"    {mutation.file}: not there exactly once")
        code, tail = run_tests(tree, mutation.killed_by)
    if code == 1:
        return Outcome(row, mutation, "killed")
    return Outcome(row, mutation, "survived" if code == 0 else "broken", tail)


def unchanged(tree: Path, tests: Sequence[str]) -> str:
    """What is wrong with the tests before anything is changed; nothing if they pass."""
    where = subprocess.run(
        [sys.executable, "-c", "import reverie; print(reverie.__file__)"],
        env={**os.environ, "PYTHONPATH": str(tree / "src")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    if not Path(where).is_relative_to(tree):
        return f"the copy is not what is imported, but {where}"
    code, tail = run_tests(tree, tests)
    return "" if code == 0 else tail


def run(root: Path, rows: Sequence[Row], *, jobs: int = 2) -> Iterator[Outcome]:
    """All mutations of some rows, `jobs` at a time, each worker in a copy of its own."""
    work = [(row.id, one) for row in rows for one in row.mutations]
    with tempfile.TemporaryDirectory(prefix="reverie-mutations-") as folder:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(jobs):
            tree = Path(folder).resolve() / str(number)
            shutil.copytree(root, tree, ignore=LEFT_OUT, symlinks=True)
            trees.put(tree)

        @contextmanager
        def lent() -> Iterator[Path]:
            tree = trees.get()
            try:
                yield tree
            finally:
                trees.put(tree)

        def before(tests: Sequence[str]) -> str:
            with lent() as tree:
                return unchanged(tree, tests)

        def one(item: tuple[str, Mutation]) -> Outcome:
            with lent() as tree:
                return attempt(tree, *item)

        named = list(dict.fromkeys(test for _, one in work for test in one.killed_by))
        with ThreadPoolExecutor(jobs) as pool:
            shares = [share for n in range(jobs) if (share := named[n::jobs])]
            if trouble := "\n".join(filter(None, pool.map(before, shares))):
                raise SystemExit(f"the tests fail before any mutation:\n{trouble}")
            yield from pool.map(one, work)


def main() -> None:
    parser = argparse.ArgumentParser(description="Apply the manifest's mutations.")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="rows or mutations whose name holds this text")
    parser.add_argument("--list", action="store_true", help="name them and stop")
    given = parser.parse_args()
    rows = [
        Row(row.id, row.title, row.state, row.tests, chosen)
        for row in manifest.load(ROOT)
        if (chosen := tuple(m for m in row.mutations if given.only in f"{row.id} {m.name}"))
    ]
    if given.list or not rows:
        print("\n".join(f"{r.id:24} {m.name}" for r in rows for m in r.mutations) or "no mutation")
        return
    verdicts: Counter[str] = Counter()
    for outcome in run(ROOT, rows, jobs=max(1, given.jobs)):
        print(outcome, flush=True)
        verdicts[outcome.verdict] += 1
    print("mutations: " + ", ".join(f"{count} {name}" for name, count in verdicts.most_common()))
    sys.exit(set(verdicts) != {"killed"})


if __name__ == "__main__":
    main()
