"""A test that failed is run once more, where that is wanted, and no more than a few are."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from scripts import second_run
from tests.test_project import write

pytestmark = [pytest.mark.spec("project.doors")]


class Played:
    """A pytest that ends as it is told: the first run, then each door by itself."""

    def __init__(self, code: int, *failed: str, again: Sequence[str] = ()) -> None:
        self.first, self.again = (code, list(failed)), again
        self.asked: list[list[str]] = []

    def __call__(self, arguments: Sequence[str]) -> tuple[int, list[str]]:
        self.asked.append(list(arguments))
        if len(self.asked) == 1:
            return self.first
        bad = [one for one in arguments if one in self.again]
        return int(bool(bad)), bad


@pytest.mark.parametrize(
    ("played", "code", "last", "runs"),
    [
        (Played(0), 0, "no door needed a second run", 1),
        (Played(1, "a"), 0, "1 door needed a second run: a", 2),
        (Played(1, "a", "b"), 0, "2 doors needed a second run: a, b", 3),
        (Played(1, "a", "b", again="b"), 1, "1 door failed twice: b", 3),
        (Played(1, *"abc"), 1, "3 doors failed, which is too many for a second run: a, b, c", 1),
        (Played(1), 1, "the doors could not be run: pytest ended with 1", 1),
        (Played(2, "a"), 2, "the doors could not be run: pytest ended with 2", 1),
        (Played(-9), -9, "the doors could not be run: pytest ended with -9", 1),
    ],
)
def test_two_get_a_second_run_and_what_fails_twice_fails(
    played: Played, code: int, last: str, runs: int
) -> None:
    assert second_run.run(["-v"], played, "door", 2) == (code, last)
    assert played.asked[1:] == [[one] for one in played.first[1]][: runs - 1]
    assert len(played.asked) == runs


def test_none_is_run_again_where_none_may_be() -> None:
    played = Played(1, "a")
    assert second_run.run([], played, "test", 0) == (1, "1 test failed: a")
    assert len(played.asked) == 1


SEEDED = """import pathlib, subprocess, sys, pytest
pytestmark = pytest.mark.doors
MARK = pathlib.Path("tried")
def test_only_once():
    left = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    again = MARK.exists()
    MARK.touch()
    assert again, "a process is left running"
    left.communicate(b"x")
def test_beside_it(): ...
"""
ALWAYS = "\n@pytest.mark.doors\ndef test_always():\n    assert 0\n"


@pytest.mark.doors
def test_seeded_failures(root: Path, tmp_path: Path) -> None:
    """With the real pytest and our own conftest: what the first run left behind takes no other test
    down, and a door that fails twice fails the whole."""
    for name in ("pyproject.toml", "tests/conftest.py", "tests/processes.py", "tests/postgres.py"):
        write(tmp_path, {name: (root / name).read_text()})
    write(tmp_path, {"scripts/second_run.py": (root / "scripts/second_run.py").read_text()})
    for more, code, last in (
        ("", 0, "1 door needed a second run: tests/test_seeded.py::test_only_once"),
        (ALWAYS, 1, "1 door failed twice: tests/test_seeded.py::test_always"),
    ):
        (tmp_path / "tried").unlink(missing_ok=True)
        write(tmp_path, {"tests/test_seeded.py": SEEDED + more})
        done = subprocess.run(
            [sys.executable, "-m", "scripts.second_run", "--doors", "-p", "no:randomly"],
            cwd=tmp_path, capture_output=True, text=True, check=False, timeout=200,
        )  # fmt: skip
        assert done.stdout.splitlines()[-1] == last, done.stdout
        assert done.returncode == code
        assert "a process is left running" in done.stdout
        assert f"{2 if more else 1} failed, 1 passed" in done.stdout
