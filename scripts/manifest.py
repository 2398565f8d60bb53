"""The manifest: which tests prove which part of the specification, checked both ways.

`tests/manifest.toml` has one row for each section of the specification, or several for
its parts. A row is `planned`, or it is `built` and names tests. Checked here, without running
anything:

- every section has a row, and a row's id is unique;
- a built row's tests exist and carry `@pytest.mark.spec` for it;
- a test that carries a mark is named by a row of that section;
- every threat has one row, `T.1` to `T.97`; a built one names tests that exist, and a test
  called `test_row_25_…` is named by `T.25`.

    python -m scripts.manifest
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MANIFEST = "tests/manifest.toml"
THREATS = range(1, 98)
SECTIONS = (
    *(str(number) for number in range(1, 20)),
    *(f"B{number}" for number in range(1, 25)),
    "project",
)


@dataclass(frozen=True, slots=True)
class Row:
    """A section of the specification or a part of it: `3` or `3.per-result`."""

    id: str
    title: str
    state: str
    tests: tuple[str, ...] = ()

    @property
    def section(self) -> str:
        return self.id.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Found:
    """What is in the test files: each test with the sections it is marked for."""

    tests: Mapping[str, frozenset[str]]
    files: frozenset[str] = field(default_factory=frozenset[str])

    def named(self, entry: str) -> dict[str, frozenset[str]]:
        """The tests an entry stands for: a file, a class or one test."""
        return {
            test: marks
            for test, marks in self.tests.items()
            if test == entry or test.startswith(entry + "::")
        }


@dataclass(frozen=True, slots=True)
class Threat:
    """A bad input or an attack, by its number: `T.25`, and the tests that prove its outcome."""

    id: str
    title: str
    state: str
    tests: tuple[str, ...] = ()
    outcome: str = ""  # what must happen
    note: str = ""  # a figure, or a limit


class Malformed(Exception):
    """The manifest cannot be read as one."""


def _row(raw: Mapping[str, Any]) -> Row:
    known = {"id", "title", "state", "tests"}
    where = f"row {raw.get('id', '?')}"
    if odd := sorted(set(raw) - known):
        raise Malformed(f"{where}: unknown keys {', '.join(odd)}")
    try:
        return Row(raw["id"], raw["title"], raw["state"], tuple(raw.get("tests", ())))
    except KeyError as missing:
        raise Malformed(f"{where}: {missing} is missing") from None


def load(root: Path) -> list[Row]:
    """Reads the rows, in the order of the file."""
    raw = tomllib.loads((root / MANIFEST).read_text(encoding="utf-8"))
    return [_row(one) for one in raw.get("row", ())]


def load_threats(root: Path) -> list[Threat]:
    """Reads the threats, in the order of the file."""
    raw = tomllib.loads((root / MANIFEST).read_text(encoding="utf-8"))
    found: list[Threat] = []
    for one in raw.get("threat", ()):
        where = f"threat {one.get('id', '?')}"
        if odd := sorted(set(one) - {"id", "title", "state", "tests", "outcome", "note"}):
            raise Malformed(f"{where}: unknown keys {', '.join(odd)}")
        try:
            found.append(Threat(**{**one, "tests": tuple(one.get("tests", ()))}))
        except TypeError as missing:
            raise Malformed(f"{where}: {missing}") from None
    return found


# -- what the test files say ---------------------------------------------------------


def _marks(nodes: list[ast.expr]) -> set[str]:
    """The sections named by `pytest.mark.spec(...)` among some expressions."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.List | ast.Tuple):
            found |= _marks(node.elts)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.spec":
            found |= {str(one.value) for one in node.args if isinstance(one, ast.Constant)}
    return found


def _module_marks(tree: ast.Module) -> set[str]:
    values = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and any(isinstance(one, ast.Name) and one.id == "pytestmark" for one in node.targets)
    ]
    return _marks(values)


def _tests(body: list[ast.stmt], prefix: str, marks: set[str]) -> Iterator[tuple[str, set[str]]]:
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            own = marks | _marks(node.decorator_list)
            yield from _tests(node.body, f"{prefix}::{node.name}", own)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name.startswith("test"):
                yield f"{prefix}::{node.name}", marks | _marks(node.decorator_list)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute):
            # A state machine's `TestX = Machine.TestCase`.
            for name in node.targets:
                if isinstance(name, ast.Name) and name.id.startswith("Test"):
                    yield f"{prefix}::{name.id}", set(marks)


def read_tests(root: Path) -> Found:
    """Reads every test file without importing it."""
    tests: dict[str, frozenset[str]] = {}
    files: set[str] = set()
    for path in sorted((root / "tests").rglob("test_*.py")):
        name = path.relative_to(root).as_posix()
        files.add(name)
        tree = ast.parse(path.read_text(encoding="utf-8"), name)
        for test, marks in _tests(tree.body, name, _module_marks(tree)):
            tests[test] = frozenset(marks)
    return Found(tests, frozenset(files))


# -- the check -----------------------------------------------------------------------


def _meet(one: str, other: str) -> bool:
    """A mark and a row belong together: the same id, or one is the other's section."""
    return one == other or one == other.partition(".")[0] or other == one.partition(".")[0]


def _row_problems(row: Row, found: Found) -> Iterator[str]:
    if row.section not in SECTIONS:
        yield f"row {row.id}: there is no section {row.section}"
    if row.state == "planned":
        if row.tests:
            yield f"row {row.id}: it has tests, so its state is `built`"
        return
    if row.state != "built":
        yield f"row {row.id}: state is `planned` or `built`, not `{row.state}`"
    if not row.tests:
        yield f"row {row.id}: no tests"
    for entry in row.tests:
        named = found.named(entry)
        if not named:
            yield f"row {row.id}: no such test: {entry}"
        for test, marks in named.items():
            if not any(_meet(mark, row.id) for mark in marks):
                yield f'row {row.id}: {test} is not marked with pytest.mark.spec("{row.id}")'


def _mark_problems(rows: list[Row], found: Found) -> Iterator[str]:
    covered: dict[str, list[str]] = {}
    for row in rows:
        for entry in row.tests:
            for test in found.named(entry):
                covered.setdefault(test, []).append(row.id)
    for test, marks in found.tests.items():
        for mark in sorted(marks):
            if not any(_meet(mark, one) for one in covered.get(test, ())):
                yield f"{test}: marked for {mark}, but no row of {mark} names it"


def _threat_problems(threats: list[Threat], found: Found) -> Iterator[str]:
    counts = Counter(one.id for one in threats)
    for number in THREATS:
        if counts[f"T.{number}"] != 1:
            yield f"threat T.{number}: it is there {counts[f'T.{number}']} times, not once"
    for one in threats:
        if one.id not in {f"T.{number}" for number in THREATS}:
            yield f"threat {one.id}: there is no such number"
        if one.state not in ("planned", "built"):
            yield f"threat {one.id}: state is `planned` or `built`, not `{one.state}`"
        if not one.outcome:
            yield f"threat {one.id}: it does not say what must happen"
        if (one.state == "built") != bool(one.tests):
            yield f"threat {one.id}: a built one has tests, a planned one none"
        for entry in one.tests:
            if not found.named(entry):
                yield f"threat {one.id}: no such test: {entry}"
    covered = {(one.id, test) for one in threats for e in one.tests for test in found.named(e)}
    for test in found.tests:
        name = test.rpartition("::")[2]
        number = re.match(r"test_row_0*(\d+)_", name)
        if number and (f"T.{number[1]}", test) not in covered:
            yield f"{test}: threat T.{number[1]} does not name it"


def problems(root: Path) -> list[str]:
    """Everything that does not hold, one line each."""
    rows = load(root)
    found = read_tests(root)
    counts = Counter(row.id for row in rows)
    lines = [
        f"row {name}: it is there {count} times" for name, count in counts.items() if count > 1
    ]
    have = {row.section for row in rows}
    lines += [f"section {name}: no row" for name in SECTIONS if name not in have]
    for row in rows:
        lines += _row_problems(row, found)
    lines += _threat_problems(load_threats(root), found)
    return lines + list(_mark_problems(rows, found))


def main() -> None:
    try:
        found = problems(ROOT)
    except Malformed as error:
        found = [str(error)]
    if found:
        print("\n".join(found))
        sys.exit(1)
    rows = load(ROOT)
    built = [row for row in rows if row.state == "built"]
    print(f"manifest: {len(built)} rows built, {len(rows) - len(built)} rows planned")
    threats = load_threats(ROOT)
    open_ones = [one.id for one in threats if one.state == "planned"]
    told = f", planned: {', '.join(open_ones)}" if open_ones else ""
    print(f"threats: {len(threats) - len(open_ones)} of {len(threats)} proven{told}")


if __name__ == "__main__":
    main()
