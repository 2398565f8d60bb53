"""Hours of tests in slices: each with its own seed, noted when it ends, gone on with later."""

from __future__ import annotations

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


def rows(specimen: Path) -> list[list[str]]:
    text = (specimen / endurance.RESULTS).read_text()
    cells = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| 2")]
    assert all(row[6].startswith(("3 kills (", "6 kills (")) for row in cells)
    return [[*row[1:5], row[7]] for row in cells]


def ran(specimen: Path, slices: int) -> int:
    return endurance.run(specimen, "properties", 7, hours=1, slices=slices, jobs=0)


def test_it_goes_on_where_it_was_stopped_and_tells_of_each_slice(specimen: Path) -> None:
    assert ran(specimen, 2) == 0
    (specimen / "broken").touch()
    assert ran(specimen, 2) == 1
    (specimen / "broken").unlink()
    assert ran(specimen, 1) == 0
    assert rows(specimen) == [
        ["properties", "7", "0", "1,000", "1 passed"],
        ["properties", "7", "1", "2,000", "1 passed"],
        ["properties", "7", "2", "4,000", "1 failed"],
        ["properties", "7", "2", "4,000", "1 passed"],
    ]
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
    assert endurance.test_files(root, "journals") == ["tests/session/test_hostile.py"]
