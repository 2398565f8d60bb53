"""A committed instruction file that asks for a file in the home, over the real command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reverie.apps.cli import LineScreen, ask_for_files
from reverie.store import IncludeApprovals, Project

pytestmark = pytest.mark.spec("12.outside")

SPOKEN = "hunter2-in-the-home"


@pytest.fixture
def project(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder, user = tmp_path / "project", tmp_path / "user"
    for one in (folder / ".git", user):
        one.mkdir(parents=True)
    home.mkdir(mode=0o700)
    (home / ".reverie-welcomed").touch()
    (user / "journal.txt").write_text(SPOKEN)
    monkeypatch.setenv("HOME", str(user))
    return folder


def sent(project: Path, home: Path, *args: str) -> tuple[str, str]:
    """What the command said on its standard error, and every byte that it recorded."""
    command = [sys.executable, "-m", "reverie.apps.cli", *args, "-p", "hello"]
    ran = subprocess.run(
        command, cwd=project, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    )
    files = [path for path in (home / "projects").rglob("*") if path.is_file()]
    return ran.stderr, "".join(path.read_text(errors="replace") for path in files)


@pytest.mark.parametrize("how", ["include", "link", "rule"])
def test_row_73_no_file_of_the_home_is_read_without_the_users_word(
    project: Path, home: Path, how: str
) -> None:
    target = Path(os.environ["HOME"], "journal.txt")
    match how:
        case "include":
            (project / "CLAUDE.md").write_text("Build with make.\n@~/journal.txt\n")
        case "link":
            (project / "CLAUDE.md").symlink_to(target)
        case _:
            (project / ".claude" / "rules").mkdir(parents=True)
            (project / ".claude" / "rules" / "r.md").symlink_to(target)
    told, recorded = sent(project, home)
    assert recorded
    assert SPOKEN not in recorded
    assert told.count(str(target)) == 1
    assert "approve" in told
    IncludeApprovals(home).approve(project, target, str(project / "CLAUDE.md"))
    told, recorded = sent(project, home)
    assert SPOKEN in recorded
    assert "approve" not in told


@pytest.mark.parametrize(("answer", "kept"), [("y", 1), ("n", 0)])
def test_row_73_a_person_at_the_prompt_is_asked_once(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch, answer: str, kept: int
) -> None:
    (project / "CLAUDE.md").write_text("@~/journal.txt")
    asked: list[str] = []

    def answers(prompt: str) -> str:
        asked.append(prompt)
        return answer

    monkeypatch.setattr("builtins.input", answers)
    place = Project.at(project)
    ask_for_files(place, LineScreen())
    assert [one.path for one in IncludeApprovals(home).all()] == [
        str(Path(os.environ["HOME"], "journal.txt"))
    ][:kept]
    ask_for_files(place, LineScreen())
    assert len(asked) == 2 - kept
