"""`reverie memory learn` against a simulated provider."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reverie.settings import DEFAULTS
from reverie.store import Project
from reverie.testing import provider

from .conftest import Run, assert_private

pytest.importorskip("starlette", reason="needs starlette: the extra `server` is not installed")
pytestmark = [pytest.mark.spec("7.learn")]
RULE = """---
name: pnpm
description: which package manager
type: feedback
---

Always use pnpm instead of npm.
"""


def row(number: int, kind: str, said: str) -> str:
    parent = f"r{number - 1}" if number else None
    content: Any = said if kind == "user" else [{"type": "text", "text": said}]
    base = {"type": kind, "uuid": f"r{number}", "parentUuid": parent, "sessionId": "cc-9"}
    message = {"role": kind, "content": content, "id": f"m{number}"}
    return json.dumps({**base, "timestamp": "2026-01-02T03:04:05Z", "message": message})


@pytest.fixture
def past(tmp_path: Path) -> Path:
    path = tmp_path / "past.jsonl"
    said = ("Always use pnpm instead of npm.", "All right.", "Thanks.", "You are welcome.")
    rows = [row(n, ("user", "assistant")[n % 2], text) for n, text in enumerate(said)]
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture
def saving(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A model that saves one memory, then has nothing more to say."""
    with provider([f'<memory file="feedback_pnpm.md">\n{RULE}</memory>']) as served:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", served.anthropic_url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
        yield


@pytest.mark.usefixtures("saving")
def test_a_file_is_learned_from_and_the_second_time_adds_nothing(
    run: Run, past: Path, home: Path, project: Path
) -> None:
    done = run("memory", "learn", past, "--json").json()
    (session,) = done["sessions"]
    assert (session["session"], session["turns"]) == ("cc-9", 2)
    assert session["written"] == ["feedback_pnpm.md"]
    assert session["calls"] == 1
    assert session["cost"] > 0
    folder = Project.at(project, home=home, environ={}, settings=DEFAULTS).memory_folder
    assert (folder / "feedback_pnpm.md").read_text() == RULE
    assert "(feedback_pnpm.md)" in (folder / "MEMORY.md").read_text()
    again = run("memory", "learn", past, "--json").json()["sessions"][0]
    assert (again["turns"], again["calls"], again["written"]) == (0, 0, [])
    versions = run("memory", "log", "--json").json()["versions"]
    assert {v["origin"]["session"] for v in versions} == {"cc-9"}
    assert_private(home)


@pytest.mark.usefixtures("saving")
def test_a_dry_run_and_a_budget_save_nothing(
    run: Run, past: Path, home: Path, project: Path
) -> None:
    small = run("memory", "learn", past, "--budget", "10", "--json").json()["sessions"][0]
    assert small["over_budget"]
    assert (small["calls"], small["written"]) == (0, [])
    done = run("memory", "learn", past, "--dry-run", code=0)
    assert "Would save: feedback_pnpm.md" in done.out
    folder = Project.at(project, home=home, environ={}, settings=DEFAULTS).memory_folder
    assert not (folder / "feedback_pnpm.md").exists()


def test_what_cannot_be_read_is_named(run: Run, tmp_path: Path) -> None:
    assert run("memory", "learn", tmp_path / "no.jsonl", "--json").error["type"] == "NotFound"
    (tmp_path / "odd.jsonl").write_text('{"a": 1}\n')
    done = run("memory", "learn", tmp_path / "odd.jsonl", "--json")
    assert done.error["type"] == "ImportFailed"
    assert run("memory", "learn", "not an id", "--json").code != 0
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "no session file" in run("memory", "learn", empty, "--json").error["what"]
