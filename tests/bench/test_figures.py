"""The report is written from the results, and the README cites nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bench import report
from bench.figures import PARTS, Figure, against_peers, kept, known
from bench.report import faults

pytestmark = pytest.mark.spec("project.report")

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
KNOWN = {"a.share": 0.873, "a.tokens": 21_253.0, "a.times": 1.368, "a.n": 346.0}


def test_every_figure_of_the_readme_and_the_docs_is_a_measured_one() -> None:
    measured = known()
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    texts = {page.relative_to(ROOT): page.read_text(encoding="utf-8") for page in pages}
    wrong = {page: faults(text, measured) for page, text in texts.items()}
    assert {page: found for page, found in wrong.items() if found} == {}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("<!-- figure: a.share -->87 % of <!-- figure: a.n -->346 names", ""),
        ("<!-- figure: a.share -->.87 and <!-- figure: a.times -->1.4 ×", ""),
        ("<!-- figure: a.tokens -->21,300 tokens", ""),
        ("<!-- figure: a.share -->88 %", "a.share: the text says 88, measured is 87.3"),
        ("<!-- figure: a.times -->1.38 ×", "a.times: the text says 1.38, measured is 1.368"),
        ("<!-- figure: a.tokens -->21,400", "a.tokens: the text says 21,400, measured is 21253"),
        ("<!-- figure: b -->1", "b: no such figure; `python -m bench keys` lists them"),
        ("<!-- figure: a.n --> many", "a.n: no number stands behind the mark"),
        ("<!-- claims -->it is 12 times faster<!-- /claims -->", "12 is not cited"),
        ("<!-- claims -->`make 12`, [see](docs/12.md)<!-- /claims -->", ""),
        ("| layer | measured |\n|---|---|\n| 2 | 58 % less |", "58 is not cited"),
        ("| layer | measured |\n|---|---|\n| 2 | <!-- figure: a.share -->87 % |", ""),
        ("| layer | costs |\n|---|---|\n| 2 | 3 calls |", ""),
    ],
)
def test_a_cited_number_is_held_against_the_results(text: str, fault: str) -> None:
    found = faults(text, KNOWN)
    assert [one[: len(fault)] for one in found] == ([fault] if fault else [])


def test_the_report_is_what_the_results_make_it(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    for path in RESULTS.glob("*.json"):
        (folder / path.name).write_bytes(path.read_bytes())
    report.write(folder, tmp_path)
    page = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert page == (ROOT / "bench" / "RESULTS.md").read_text(encoding="utf-8")
    drawn = {path.name for path in folder.glob("*.svg")}
    assert drawn == {path.name for path in RESULTS.glob("*.svg")}
    assert set(re.findall(r"\]\(results/([^)]+)\)", page)) == drawn


def test_a_part_that_failed_or_never_ran_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    before = json.loads((RESULTS / "demo.json").read_text(encoding="utf-8"))
    tried = {"commit": "abc", "seconds": 1}
    found = before | {"failed": "Traceback\nValueError: it broke", "tried": tried}
    (folder / "demo.json").write_text(json.dumps(found), encoding="utf-8")
    report.write(folder, tmp_path)
    page = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert "The last try, at commit abc, failed: `ValueError: it broke`." in page
    assert before["rows"][0]["what"] in page  # the figure of the run before it
    for part in PARTS[1:]:
        assert f"| {part.name} | not run |" in page


def test_a_figure_leads_where_it_is_as_good_as_the_best_peer() -> None:
    def of(ours: float, better: str) -> Figure:
        return against_peers("k", "w", ours, {"one": 2.0, "two": 3.0}, better=better)  # pyright: ignore[reportArgumentType]

    low, high = of(2.5, "lower"), of(2.5, "higher")
    assert (low.against, low.peer, low.leads) == (2.0, "one", False)
    assert (high.against, high.peer, high.leads) == (3.0, "two", False)
    assert of(2.0, "lower").leads
    assert of(3.5, "higher").leads
    assert against_peers("k", "w", 1.0, {}, better="lower").leads is None


def test_what_does_not_lead_says_why() -> None:
    for part, found in kept():
        for row in found.get("rows", ()):
            if "key" in row and row.get("leads") is False:
                assert row.get("why"), f"{part}: {row['key']}"


def test_results_hold_no_path_of_a_machine_and_no_key_twice() -> None:
    keys: list[str] = []
    for path in RESULTS.glob("*.json"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"/(?:tmp|home|root|work|usr)/", text), path.name
    for _, found in kept():
        keys += [row["key"] for row in found.get("rows", ()) if "key" in row]
    assert len(keys) == len(set(keys))
