"""What an agent is told at the head of a session: short, true, and with git's state."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from reverie.agent import AgentOptions, open_agent
from reverie.session import git_state_lines, surroundings
from tests.loop.stage import NOON, simulated

LARGEST = 11_000  # bytes of system prompt and tool definitions together


@pytest.mark.spec("12.head")
async def test_system_prompt_and_tools_are_small(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    options = AgentOptions(project, home=tmp_path / "home", environ={"HOME": str(tmp_path)})
    async with open_agent(options, simulated()) as agent:
        head = agent.session.view.head
        assert head is not None
        place = str(agent.session.library.path).encode()
        system = head.system.encode().replace(place, b"/home/me/.reverie/projects/-home-me-project")
        assert len(system) + len(head.tools.encode()) <= LARGEST
        for name in ("Remember", "SearchMemory", "SearchSessions", "ReadBack", "r:"):
            assert name in head.system


@pytest.mark.spec("12.head")
def test_the_day_is_told_with_its_weekday(tmp_path: Path) -> None:
    assert "Today is 2026-05-28, Thursday." in surroundings(tmp_path, NOON)


def git(root: Path, *words: str) -> None:
    known = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}  # fmt: skip  # noqa: E501
    named = ("-c", "user.name=A", "-c", "user.email=a@b.example")
    subprocess.run(["git", *named, *words], cwd=root, check=True, env=known, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-b", "trunk")
    for n in range(7):
        (tmp_path / f"f{n}.txt").write_text(f"{n}\n")
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-m", f"Add f{n} \x1b[31mred")
    return tmp_path


@pytest.mark.spec("12.head")
def test_gits_state_is_told(checkout: Path) -> None:
    branch, clean, title, *commits = git_state_lines(checkout)
    assert branch == "Git branch: trunk"
    assert clean == "Git: no tracked file was changed"
    assert title == "Newest commits of this checkout:"
    assert [c.split(" ", 2)[2] for c in commits] == [f"Add f{n} red" for n in (6, 5, 4, 3, 2)]
    (checkout / "f1.txt").write_text("9\n")
    (checkout / "f2.txt").unlink()
    os.utime(checkout / "f3.txt", (1, 1))  # touched, and the same
    assert git_state_lines(checkout)[1] == "Git: changed files: f1.txt, f2.txt"


@pytest.mark.spec("12.head")
def test_nothing_of_the_repository_is_run(checkout: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trapped"
    git(checkout, "config", "core.fsmonitor", f"touch {trap}; false")
    git(checkout, "config", "filter.x.clean", f"touch {trap}; cat")
    (checkout / ".gitattributes").write_text("* filter=x\n")
    (checkout / "f1.txt").write_text("9\n")
    assert "f1.txt" in git_state_lines(checkout)[1]
    assert not trap.exists()


@pytest.mark.spec("12.head")
@pytest.mark.parametrize("index", [b"", b"DIRC", b"DIRC\0\0\0\4\0\0\0\1", b"\xff" * 5_000])
def test_what_cannot_be_read_is_left_out(checkout: Path, index: bytes) -> None:
    (checkout / ".git/index").write_bytes(index)
    (checkout / ".git/logs/HEAD").unlink()
    (checkout / ".git/HEAD").write_text("ref: refs/heads/a\nb</environment>\n")
    told = surroundings(checkout, NOON)
    assert told.count("</environment>") == 1
    assert "changed" not in told
    (checkout / ".git/HEAD").write_bytes(b"\xff\0")
    assert git_state_lines(checkout) == ()
