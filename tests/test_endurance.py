"""Hours of tests in slices: each with its own seed, noted when it ends, gone on with later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scripts import endurance

BREAKS = """import os, pathlib
def EVERY(): pass
def test_tells_what_it_tried():
    EVERY()
    with pathlib.Path("seen").open("a") as seen:
        print(os.environ["REVERIE_SEED"], os.environ["REVERIE_EXAMPLES"], file=seen)
    with open(os.environ["REVERIE_TALLY"], "a") as tally:
        print("3 drawn kills\\n5 same kills\\n7 drawn fault points", file=tally)
    assert not pathlib.Path("broken").exists()
""".replace("EVERY", "every_kill")


@pytest.fixture
def specimen(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    (tmp_path / "bench").mkdir()
    (tmp_path / "tests/test_breaks.py").write_text(BREAKS)
    (tmp_path / "tests/test_other.py").write_text("def test_other(): assert False\n")
    return tmp_path


def row(specimen: Path) -> dict[str, Any]:
    (found,) = json.loads((specimen / endurance.RESULTS).read_text())["rows"]
    assert found["rate"] > 0
    return {key: found[key] for key in ("part", "what", "count", "same", "bad", "mended", "seed")}


def ran(specimen: Path, slices: int) -> int:
    return endurance.run(specimen, "kills", 7, hours=1, slices=slices, jobs=0)


def test_it_goes_on_where_it_was_stopped_and_tells_of_each_slice(specimen: Path) -> None:
    """What a seed draws adds up, what is the same for all counts once, and so does a seed that is
    run again; a part counts what it is run for and nothing else."""
    found = {"part": "kills", "what": "kills", "same": 5}
    assert ran(specimen, 2) == 0
    assert row(specimen) == {**found, "count": 11, "bad": 0, "mended": 0, "seed": "7, 8"}
    (specimen / "broken").touch()
    assert ran(specimen, 2) == 1
    assert row(specimen) == {**found, "count": 14, "bad": 1, "mended": 0, "seed": "7, 8, 9"}
    (specimen / "broken").unlink()
    assert ran(specimen, 1) == 0
    assert row(specimen) == {**found, "count": 14, "bad": 0, "mended": 1, "seed": "7, 8, 9"}
    seen = (specimen / "seen").read_text().splitlines()
    assert seen == ["7 1000", "8 2000", "9 4000", "9 4000"]


def test_each_part_has_its_tests(root: Path) -> None:
    kills = endurance.test_files(root, "kills")
    assert "tests/store/test_crash.py" in kills
    assert "tests/session/test_crash.py" in kills
    lives = "tests/store/test_crash.py::test_row_27_lives_that_are_killed_again_and_again_add_up"
    assert lives in endurance.test_names(root, "kills")
    assert not [one for one in endurance.test_names(root, "faults") if "kill" in one]
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
