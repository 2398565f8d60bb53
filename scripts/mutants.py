"""Draw mutants from the packages that must not lose data, and run their tests on each.

A mutant is one edit of the syntax tree: a condition negated, a call left out, two statements
swapped, a number one off, a comparison moved by one, a result that is None. Each is made in a copy
of the tree, where those tests of its room run that come by its line; one must fail. One that makes
them run without end counts as killed. The same seed draws the same mutants.

`mutants.toml` beside this file names the rooms and their tests. Some mutants change nothing that
anybody could see: the file names each with its reason, and they count neither way. A name that fits
no mutant any more is a fault of the list. Results are kept by room and seed, newest in place of
older. A seed that nobody has looked at yet tells more than one that tests were added for.

    python -m scripts.prove mutants [--each 40] [--seed 1] [--only store] [--list]
                                    [--write bench/results/mutants.json [--again]]

With --again only those are tried that survived by the results so far: tests are added, not taken
away, so what was killed once is.

Ends with 0 where at least 88 % were killed in every room; it prints the survivors.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from scripts import trials
from scripts.endurance import ROOT, commit

TABLES = "scripts/mutants.toml"
ROOMS: dict[str, list[str]] = tomllib.loads((ROOT / TABLES).read_text(encoding="utf-8"))["rooms"]
SOURCE = "src/reverie"
NOTES = "bench/out/mutants"
SHARE = 0.88
LIMIT_S = 7_200.0  # for all mutants of a room
TEST_LIMIT_S = 300  # for each test or file of tests that is named
UNUSED = ("cacheprovider", "xdist", "schemathesis", "langsmith_plugin")  # the last two start slowly
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", "out", "dist")
_OTHER = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign)


Name = tuple[str, str, str, str, str]
"""A module, a function, a kind of damage, the line that it stands in, and what becomes of it."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One damage: the text between two places of a module, and what stands there instead."""

    module: str
    kind: str
    line: int
    start: int
    end: int
    text: str
    inside: str = ""  # the function, or the class and its method

    def of(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.end :]

    def lines(self, source: str) -> tuple[int, int]:
        return self.line, source.count("\n", 0, self.end) + 1

    def told(self, source: str) -> str:
        return f"{self.module}:{self.line} {self.kind}: {self.change(source)}"

    def change(self, source: str) -> str:
        before = " ".join(source[self.start : self.end].split())
        return f"{before[:70]} -> {' '.join(self.text.split())[:70]}"

    def name(self, source: str) -> Name:
        """What it is called whatever stands above it: the text of its line, and the change."""
        row = source.splitlines()[self.line - 1].strip()
        return self.module, self.inside, self.kind, row, self.change(source)


class _Places:
    """Where nodes stand in a text, by character."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._rows = [0]
        for row in source.splitlines(keepends=True):
            self._rows.append(self._rows[-1] + len(row))

    def at(self, row: int, column: int) -> int:
        start, end = self._rows[row - 1], self._rows[row]
        return start + len(self._source[start:end].encode()[:column].decode())

    def of(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        last, column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self.at(node.lineno, node.col_offset), self.at(last, column)


def mutants_of(module: str, source: str) -> Iterator[Mutant]:
    """Every damage that can be done to a module."""
    places = _Places(source)
    for inside, function in _functions(ast.parse(source)):
        for one in _of_function(module, source, places, function):
            yield replace(one, inside=inside)


def _of_function(
    module: str, source: str, places: _Places, function: ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[Mutant]:
    def text(node: ast.expr | ast.stmt) -> str:
        return source[slice(*places.of(node))]

    def made(kind: str, node: ast.expr | ast.stmt, new: str) -> Mutant:
        return Mutant(module, kind, node.lineno, *places.of(node), new)

    for node in ast.walk(function):
        match node:
            case ast.If() | ast.While() | ast.IfExp():
                yield made("turned round", node.test, f"(not ({text(node.test)}))")
            case ast.Compare(ops=[op]) if type(op) in _OTHER:
                other = ast.Compare(node.left, [_OTHER[type(op)]()], node.comparators)
                yield made("compared otherwise", node, f"({ast.unparse(other)})")
            case ast.Constant(value=int(value)) if not isinstance(node.value, bool):
                yield made("one off", node, f"({value + 1})")
            case ast.Return(value=ast.expr() as value) if text(value) != "None":
                yield made("no result", node, "return None")
            case _:
                pass
        for body in (getattr(node, name, []) for name in ("body", "orelse", "finalbody")):
            if isinstance(body, list):
                yield from _of_body(module, source, places, body)


def _of_body(module: str, source: str, places: _Places, body: list[ast.stmt]) -> Iterator[Mutant]:
    for node in body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await):
            yield Mutant(module, "left out", node.lineno, *places.of(node), "pass")
    for first, second in itertools.pairwise(body):
        if all(isinstance(one, _SIMPLE) and _acts(one) for one in (first, second)):
            (low, end), (start, high) = places.of(first), places.of(second)
            text = source[start:high] + source[end:start] + source[low:end]
            yield Mutant(module, "in each other's place", first.lineno, low, high, text)


def _acts(node: ast.stmt) -> bool:
    """Whether a statement does something whose order may count."""
    return any(isinstance(one, ast.Call | ast.Await) for one in ast.walk(node))


def _functions(
    tree: ast.Module,
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """The outermost functions and methods, and what they are called."""
    for node in tree.body:
        inner, within = ([node], "")
        if isinstance(node, ast.ClassDef):
            inner, within = node.body, f"{node.name}."
        for one in inner:
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{within}{one.name}", one


def modules_of(root: Path, room: str) -> dict[str, str]:
    """The source of each module of a room, by its path below the package."""
    top = root / SOURCE
    files = sorted((top / room).rglob("*.py"))
    return {
        file.relative_to(top).with_suffix("").as_posix(): file.read_text(encoding="utf-8")
        for file in files
    }


def drawn(room: str, sources: Mapping[str, str], each: int, seed: int) -> list[Mutant]:
    """Some mutants of a room, no two at one place of one kind, all of which can be read."""
    found = (one for module, text in sources.items() for one in mutants_of(module, text))
    every = list(dict.fromkeys(found))
    random.Random(f"{room}:{seed}").shuffle(every)
    legible = (one for one in every if _is_read(one.of(sources[one.module])))
    return list(itertools.islice(legible, each))


def _is_read(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def explained(root: Path) -> dict[Name, str]:
    """Why nobody could see some damages, by name."""
    rows = tomllib.loads((root / TABLES).read_text(encoding="utf-8")).get("mutant", [])
    parts = ("module", "inside", "kind", "line", "change")
    return {tuple(row[part] for part in parts): row["why"] for row in rows}


def run(
    root: Path, room: str, each: int, seed: int, known_killed: Container[str] = ()
) -> list[tuple[str, str]]:
    """Each mutant's description and what became of it: killed, survived, or explained."""
    known = explained(root)
    with tempfile.TemporaryDirectory(prefix="reverie-mutants-") as folder:
        tree = Path(folder).resolve() / "tree"
        shutil.copytree(root, tree, ignore=LEFT_OUT, symlinks=True)
        sources = modules_of(tree, room)
        every = drawn(room, sources, each, seed)
        open_ = [one for one in every if one.name(sources[one.module]) not in known]
        open_ = [one for one in open_ if one.told(sources[one.module]) not in known_killed]
        tried = dict(zip(open_, _tried(root, tree, room, open_, sources), strict=True))
    named = [(one, sources[one.module]) for one in every]
    return [
        (one.told(text), tried.get(one, "explained" if one.name(text) in known else "killed"))
        for one, text in named
    ]


def _tried(
    root: Path, tree: Path, room: str, every: Sequence[Mutant], sources: Mapping[str, str]
) -> list[str]:
    """Whether tests kill the mutants of a room, all in one run of pytest."""
    if not every:
        return []
    notes = noted(root, tree, room, sources)
    given, found = tree.parent / "given", tree.parent / "found"
    rows = [
        {
            "name": f"{SOURCE}/{one.module}.py",
            "file": str(tree / SOURCE / f"{one.module}.py"),
            "inside": one.inside,
            "lines": one.lines(sources[one.module]),
            "text": one.of(sources[one.module]),
        }
        for one in every
    ]
    given.write_text(json.dumps({"notes": notes, "trials": rows}), "utf-8")
    plugin = {trials.TRIALS: str(given), trials.FOUND: str(found)}
    _, tail = run_tests(tree, ROOMS[room], LIMIT_S, plugin)
    if not found.is_file():
        raise SystemExit(f"the tests of {room} could not be run:\n{tail}")
    came = json.loads(found.read_text(encoding="utf-8"))
    if came["control"]:
        raise SystemExit(f"tests fail where nothing is changed: {came['control']}")
    if "not loaded" in came["outcomes"]:
        raise SystemExit(f"a function of {room} could not be found to be changed")
    print(f"{room}: killed by", ", ".join(dict.fromkeys(filter(None, came["outcomes"]))))
    return ["killed" if one else "survived" for one in came["outcomes"]]


def run_tests(
    tree: Path,
    tests: Sequence[str],
    limit: float | None = None,
    plugin: Mapping[str, str] | None = None,
) -> tuple[int | None, str]:
    """Run some tests in a copy, with what `scripts.trials` reads from the environment; the exit
    code, or None where time ran out."""
    environment = {
        **os.environ,
        **(plugin or {}),
        "PYTHONPATH": os.pathsep.join([str(tree / "src"), str(tree)]),
        # A changed file of the same size and second would be taken from the cache.
        "PYTHONDONTWRITEBYTECODE": "1",
        "REVERIE_SCALE": "small",
        "REVERIE_INTEGRATION": "1",  # a test that is named is run, whatever its tier
        "REVERIE_SHARED": os.environ.get("REVERIE_SHARED") or str(ROOT.parent / "shared"),
    }
    options = ("-x", "-q", "--tb=line", *(part for name in UNUSED for part in ("-p", f"no:{name}")))
    options += ("-p", trials.__name__) if plugin else ()
    limit = limit or TEST_LIMIT_S * len(tests)
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


def noted(root: Path, tree: Path, room: str, sources: Mapping[str, str]) -> trials.Notes:
    """By which lines of a room each test comes; looked at once for a file of tests and a room."""
    notes: dict[str, tuple[float, dict[str, list[int]]]] = {}
    modules = os.pathsep.join(f"{SOURCE}/{module}.py" for module in sources)
    room_mark = "".join(sources.values()).encode()
    for name in ROOMS[room]:
        at = tree / name
        for file in sorted(at.rglob("test_*.py")) if at.is_dir() else [at]:
            key = file.relative_to(tree).as_posix()
            mark = hashlib.sha256(key.encode() + file.read_bytes() + room_mark).hexdigest()[:16]
            kept = root / NOTES / f"{mark}.json"
            if not kept.is_file():
                kept.parent.mkdir(parents=True, exist_ok=True)
                given = {trials.FILES: modules, trials.NOTES: str(kept)}
                run_tests(tree, [key], plugin=given)
            notes |= json.loads(kept.read_text(encoding="utf-8"))
    return notes


def write_down(path: Path, row: dict[str, Any]) -> None:
    """Put a room's row into the results, in place of an older one of the same seed."""
    known = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.is_file() else []
    rows = {(one["seed"], one["room"]): one for one in (*known, row)}
    path.parent.mkdir(parents=True, exist_ok=True)
    found = {"rows": [rows[name] for name in sorted(rows)]}
    text = json.dumps(found, indent=1, ensure_ascii=False)
    path.write_text(f"{text}\n", encoding="utf-8")


def main(asked: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.prove mutants", description="Change rooms by chance."
    )
    parser.add_argument("--each", type=int, default=40, help="mutants per room")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="rooms whose name holds this text")
    parser.add_argument("--list", action="store_true", help="name them and stop")
    parser.add_argument("--write", type=Path, help="the file that keeps the results by room")
    parser.add_argument("--again", action="store_true", help="those that survived so far")
    given = parser.parse_args(asked)
    few: list[str] = []
    for room in (name for name in ROOMS if given.only in name):
        if given.list:
            sources = modules_of(ROOT, room)
            for one in drawn(room, sources, given.each, given.seed):
                print(one.told(sources[one.module]))
        elif not is_killed(room, given.each, given.seed, given.write, again=given.again):
            few.append(room)
    return bool(few)


def killed_before(written: Path | None, room: str, seed: int) -> list[str]:
    """The mutants of a room that were killed by the results so far."""
    if written is None or not written.is_file():
        return []
    rows = json.loads(written.read_text(encoding="utf-8"))["rows"]
    found = [row for row in rows if (row["room"], row["seed"]) == (room, seed)]
    return found[0]["noticed"] if found else []


def is_killed(room: str, each: int, seed: int, written: Path | None, *, again: bool) -> bool:
    """Run the mutants of a room and print what became of each; whether enough were killed."""
    began, outcomes = time.monotonic(), list[str]()
    survived: list[str] = []
    names: list[str] = []
    before = killed_before(written, room, seed) if again else []
    for told, outcome in run(ROOT, room, each, seed, before):
        names += [told] if outcome == "killed" else []
        outcomes.append(outcome)
        survived += [told] if outcome == "survived" else []
        print(f"{outcome:9} {told}", flush=True)
    killed, counted = outcomes.count("killed"), len(outcomes) - outcomes.count("explained")
    print(f"{room}: {killed} of {counted} killed", flush=True)
    if written is not None:
        row = {"room": room, "seed": seed, "drawn": len(outcomes), "killed": killed}
        row |= {"key": f"mutants.{seed}.{room}", "count": counted, "bad": len(survived)}
        row |= {"explained": len(outcomes) - counted, "survived": survived, "noticed": names}
        seconds = round(time.monotonic() - began)
        write_down(written, {**row, "seconds": seconds, "commit": commit(ROOT)})
    return killed >= SHARE * counted
