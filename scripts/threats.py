"""The table of threats in docs/threats.md, made from `tests/manifest.toml` and a run of its tests.

    python -m scripts.threats            whether the page says what the manifest says
    python -m scripts.threats --write    write its words anew, and keep results
    python -m scripts.threats --run      run every test of the table, doors too, and write the page
    python -m scripts.threats --run T.5  the same for these rows alone

A result is what the last `--run` saw: `holds`, `FAILS`, or what was not proven because a program is
missing. A row whose tests are not those that ran has none, and the check says so.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from scripts.manifest import ROOT, Threat, load_threats

PAGE = ROOT / "docs" / "threats.md"
BEGIN, END = "<!-- made by scripts.threats: begin -->\n", "<!-- made by scripts.threats: end -->\n"
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
        command = [sys.executable, "-m", "pytest", "-q", "-m", "doors or not doors"]
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


def made(page: str, threats: list[Threat], results: Mapping[str, str]) -> str:
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(threats, results)}\n{END}{after}"


def problems(page: str, threats: list[Threat]) -> list[str]:
    """Why the page is not what it should be."""
    results = results_on(page, threats)
    bad = [
        f"{one.id}: {results.get(one.id, 'not run')}"
        for one in threats
        if one.state == "built"
        and not results.get(one.id, "").startswith(("holds", "not proven here"))
    ]
    if made(page, threats, results) != page:
        bad.append("docs/threats.md differs from tests/manifest.toml")
    return bad


def main() -> int:
    threats, page = load_threats(ROOT), PAGE.read_text(encoding="utf-8")
    if sys.argv[1:]:
        results = results_on(page, threats)
        if "--run" in sys.argv[1:]:
            wanted = [one for one in threats if one.id in sys.argv[2:] or not sys.argv[2:]]
            ended = outcomes(wanted)
            results |= {one.id: told(ended.get(one.id, Counter())) for one in wanted}
        PAGE.write_text(page := made(page, threats, results), encoding="utf-8")
    found = problems(page, threats)
    print("\n".join([*found, "run: python -m scripts.threats --run"]) if found else "threats: told")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
