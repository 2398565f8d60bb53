"""Proves what is promised: the manifest, the table of threats, and damages drawn by chance.

    python -m scripts.prove                     check the manifest, and that docs/threats.md fits it
    python -m scripts.prove threats             write the words of docs/threats.md, keep its results
    python -m scripts.prove threats --run [T.5] run every test of the table, or of a row
    python -m scripts.prove mutants --help      run mutants of each room (scripts/mutants.py)

`tests/manifest.toml` has one row for each section of the specification, or several for
its parts. A row is `planned`, or it is `built` and names tests. Checked without running anything:

- every section has a row, and a row's id is unique;
- a built row's tests exist and carry `@pytest.mark.spec` for it;
- a test that carries a mark is named by a row of that section;
- every threat has one row, `T.1` to `T.97`; a built one names tests that exist, and a test
  called `test_row_25_…` is named by `T.25`.

A result in docs/threats.md is what the last `--run` saw: `holds`, `FAILS`, or what was not proven
because a program is missing. A row whose tests are not those that ran has none.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

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


Entry = TypeVar("Entry", Row, Threat)


def _entry(kind: type[Entry], raw: Mapping[str, Any]) -> Entry:
    """Read a row or a threat of the manifest."""
    where = f"{kind.__name__.lower()} {raw.get('id', '?')}"
    if odd := sorted(set(raw) - set(kind.__dataclass_fields__)):
        raise Malformed(f"{where}: unknown keys {', '.join(odd)}")
    if missing := [key for key in ("id", "title", "state") if key not in raw]:
        raise Malformed(f"{where}: {missing[0]!r} is missing")
    return kind(**{**raw, "tests": tuple(raw.get("tests", ()))})


def load(root: Path) -> tuple[list[Row], list[Threat]]:
    """Read the rows and the threats, in the order of the file."""
    raw = tomllib.loads((root / MANIFEST).read_text(encoding="utf-8"))
    rows = [_entry(Row, one) for one in raw.get("row", ())]
    return rows, [_entry(Threat, one) for one in raw.get("threat", ())]


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
    rows, threats = load(root)
    found = read_tests(root)
    counts = Counter(row.id for row in rows)
    lines = [
        f"row {name}: it is there {count} times" for name, count in counts.items() if count > 1
    ]
    have = {row.section for row in rows}
    lines += [f"section {name}: no row" for name in SECTIONS if name not in have]
    for row in rows:
        lines += _row_problems(row, found)
    lines += _threat_problems(threats, found)
    return lines + list(_mark_problems(rows, found))


# -- docs/threats.md ------------------------------------------------------------------

THREATS_PAGE = ROOT / "docs" / "threats.md"
BEGIN, END = "<!-- made by scripts.prove: begin -->\n", "<!-- made by scripts.prove: end -->\n"
SURFACES = {
    1: "Paths and names",
    16: "Content",
    27: "Files, locks, time",
    41: "Team server",
    54: "Secrets",
    60: "Proxy and model",
    67: "Local ports, pages, terminals",
    71: "Trust, cancellation, power",
    83: "People, clients, rules",
}
HEAD = "| # | what is tried | safe outcome | tests | result |\n|---|---|---|---|---|\n"
SHOWN = 3
Outcomes = Mapping[str, Counter[str]]
"""By row: how many of its tests ended in which way."""


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def named(threat: Threat) -> str:
    """The tests of a row, the first few by name; all of them stand in the manifest."""
    names = [f"`{one.rpartition('::')[2]}`" for one in threat.tests]
    more = [f"and {len(names) - SHOWN} more"] if len(names) > SHOWN else []
    return "<br>".join(names[:SHOWN] + more)


def line(threat: Threat, result: str) -> str:
    outcome = f"{threat.outcome}. *{threat.note}.*" if threat.note else threat.outcome
    number = threat.id.removeprefix("T.")
    return f"| {number} | {cell(threat.title)} | {cell(outcome)} | {named(threat)} | {result} |\n"


def table(threats: Iterable[Threat], results: Mapping[str, str]) -> str:
    """The whole table, surface by surface."""
    parts: list[str] = []
    for threat in threats:
        if title := SURFACES.get(int(threat.id.removeprefix("T."))):
            parts.append(f"\n### {title}\n\n{HEAD}")
        unproven = "planned" if threat.state == "planned" else "not run"
        parts.append(line(threat, results.get(threat.id, unproven)))
    return "".join(parts).lstrip("\n")


def results_on(page: str, threats: Iterable[Threat]) -> dict[str, str]:
    """What the page says came of each row; nothing for one whose tests are others now."""
    tests = {one.id: named(one) for one in threats}
    rows = (row.strip("| ").split(" | ") for row in page.splitlines())
    return {
        f"T.{row[0]}": row[4]
        for row in rows
        if len(row) == 5 and row[0].isdigit() and tests.get(f"T.{row[0]}") == row[3]
    }


# Running


def outcomes(threats: Iterable[Threat]) -> dict[str, Counter[str]]:
    """Run every test of the rows; how each row's ended."""
    threats = list(threats)
    wanted = sorted({entry for one in threats for entry in one.tests})
    ended: dict[str, Counter[str]] = defaultdict(Counter)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-m", "integration or not integration"]
        command += ["-p", "no:cacheprovider", "-o", "junit_family=xunit1"]
        subprocess.run([*command, f"--junitxml={report}", *wanted], cwd=ROOT, check=False)
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            file, name = case.get("file") or "", (case.get("name") or "").partition("[")[0]
            for one in threats:
                if any(_is_of(entry, file, name) for entry in one.tests):
                    ended[one.id][_end(case)] += 1
    return dict(ended)


def _is_of(entry: str, file: str, name: str) -> bool:
    path, _, test = entry.partition("::")
    return path == file and test in ("", name)


def _end(case: ElementTree.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    skipped = case.find("skipped")
    return "passed" if skipped is None else f"skipped: {skipped.get('message') or ''}"


def told(ended: Counter[str]) -> str:
    """A row's result in words."""
    if ended["failed"] or not ended:
        return f"FAILS ({ended['failed']} of {ended.total()})"
    missing = sorted({one.removeprefix("skipped: ") for one in ended if one.startswith("skipped")})
    said = f"holds ({ended['passed']})" if ended["passed"] else ""
    return "; ".join(filter(None, [said, *(f"not proven here: {cell(one)}" for one in missing)]))


# The page


def threats_page(page: str, threats: list[Threat], results: Mapping[str, str]) -> str:
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(threats, results)}\n{END}{after}"


def page_problems(page: str, threats: list[Threat]) -> list[str]:
    """Why the page is not what it should be."""
    results = results_on(page, threats)
    bad = [
        f"{one.id}: {results.get(one.id, 'not run')}"
        for one in threats
        if one.state == "built"
        and not results.get(one.id, "").startswith(("holds", "not proven here"))
    ]
    if threats_page(page, threats, results) != page:
        bad.append("docs/threats.md differs from tests/manifest.toml")
    return bad


# What is asked for


def check() -> int:
    """Check the manifest and the page of threats; the exit status."""
    try:
        found = problems(ROOT)
    except Malformed as error:
        found = [str(error)]
    if found:
        print("\n".join(found))
        return 1
    rows, threats = load(ROOT)
    built = [row for row in rows if row.state == "built"]
    print(f"manifest: {len(built)} rows built, {len(rows) - len(built)} rows planned")
    open_ones = [one.id for one in threats if one.state == "planned"]
    more = f", planned: {', '.join(open_ones)}" if open_ones else ""
    print(f"threats: {len(threats) - len(open_ones)} of {len(threats)} proven{more}")
    if found := page_problems(THREATS_PAGE.read_text(encoding="utf-8"), threats):
        print("\n".join([*found, "run: python -m scripts.prove threats --run"]))
    return bool(found)


def write_threats(asked: list[str]) -> None:
    """Write docs/threats.md, with `--run` after a run of the rows that are named, or of all."""
    _, threats = load(ROOT)
    page = THREATS_PAGE.read_text(encoding="utf-8")
    results = results_on(page, threats)
    if asked[:1] == ["--run"]:
        wanted = [one for one in threats if one.id in asked[1:] or not asked[1:]]
        ended = outcomes(wanted)
        results |= {one.id: told(ended.get(one.id, Counter())) for one in wanted}
    THREATS_PAGE.write_text(threats_page(page, threats, results), encoding="utf-8")


def main(asked: list[str]) -> int:
    if asked[:1] == ["mutants"]:
        from scripts import mutants

        return mutants.main(asked[1:])
    if asked[:1] == ["threats"]:
        write_threats(asked[1:])
    elif asked:
        print(__doc__)
        return 2
    return check()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
