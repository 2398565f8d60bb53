"""Hours of tests in slices: each with its own seed, noted when it ends, gone on with later."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts import endurance

DRAWS = """from hypothesis import given, settings, strategies
import os, pathlib
@settings(max_examples=1)
@given(strategies.none())
def test_notes_its_seed(none):
    with pathlib.Path("seen").open("a") as seen:
        print(os.environ["REVERIE_SEED"], os.environ["REVERIE_EXAMPLES"], file=seen)
    with open(os.environ["REVERIE_TALLY"], "a") as tally:
        print(3, "kills", file=tally)
    assert not pathlib.Path("broken").exists()
"""


@pytest.fixture
def specimen(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    (tmp_path / "bench").mkdir()
    (tmp_path / "tests/test_draws.py").write_text(DRAWS)
    (tmp_path / "tests/test_other.py").write_text("def test_other(): assert False\n")
    return tmp_path


def rows(specimen: Path) -> list[list[object]]:
    found = json.loads((specimen / endurance.RESULTS).read_text())["rows"]
    assert all(row["rate"] > 0 for row in found)
    return [[row["part"], row["what"], row["seed"], row["bad"]] for row in found]


def ran(specimen: Path, slices: int) -> int:
    return endurance.run(specimen, "properties", 7, hours=1, slices=slices, jobs=0)


def test_it_goes_on_where_it_was_stopped_and_tells_of_each_slice(specimen: Path) -> None:
    assert ran(specimen, 2) == 0
    (specimen / "broken").touch()
    assert ran(specimen, 2) == 1
    (specimen / "broken").unlink()
    assert ran(specimen, 1) == 0
    assert rows(specimen) == [["properties", "kills", "7, 8, 9", 1]]
    (row,) = json.loads((specimen / endurance.RESULTS).read_text())["rows"]
    assert row["count"] == 3 * len((specimen / "seen").read_text().splitlines())
    seen = (specimen / "seen").read_text().splitlines()
    assert list(dict.fromkeys(seen)) == ["7 1000", "8 2000", "9 4000"]


def test_each_part_has_its_tests(root: Path) -> None:
    kills = endurance.test_files(root, "kills")
    assert "tests/store/test_crash.py" in kills
    assert "tests/session/test_crash.py" in kills
    assert len(endurance.test_files(root, "properties")) > 40
    assert "tests/session/test_cancel.py" in endurance.test_files(root, "cancels")
    assert "tests/session/test_power.py" in endurance.test_files(root, "power")
    assert "tests/store/test_power.py" in endurance.test_files(root, "power")
    assert "tests/memory/test_undo.py" in endurance.test_files(root, "faults")
    courses = endurance.test_files(root, "courses")
    assert {one.split("/")[1] for one in courses} >= {"agent", "fleet", "proxy", "team"}
    assert endurance.test_files(root, "fuzz") == [
        "tests/fuzz/test_findings.py",
        "tests/fuzz/test_fuzz.py",
    ]
    assert endurance.test_files(root, "simulation") == ["tests/simulation/test_simulation.py"]
    assert endurance.test_files(root, "journals") == ["tests/session/test_hostile.py"]
