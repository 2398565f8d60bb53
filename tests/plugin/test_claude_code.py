"""The plugin in the real Claude Code: one session feeds the memory, the next one uses it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import reverie
from tests.mcp.client import CLAUDE, call, claude_code, rule, run_client, said

pytestmark = [pytest.mark.spec("18.plugin"), pytest.mark.doors, pytest.mark.needs("bwrap", "git")]


@pytest.mark.parametrize("version", ["2.1.197", "2.1.325"])
def test_sessions_feed_and_use_the_memory_without_the_proxy(version: str, tmp_path: Path) -> None:
    claude = claude_code(version)
    home, repo = tmp_path / "home", tmp_path / "repo"
    home.mkdir()
    repo.mkdir()
    (repo / "reverie").mkdir()  # a module of that name in the project is not what runs
    (repo / "reverie" / "__init__.py").write_text("raise SystemExit(2)\n")
    environ = {
        "HOME": str(home),
        "REVERIE_HOME": str(home / ".reverie"),
        "REVERIE_FLAG_EXTRACT_NONINTERACTIVE": "1",  # nobody is there in a test
    }
    subprocess.run(
        [sys.executable, "-m", "reverie.apps.cli", "install", "claude-code", "--plugin", "--yes"],
        env={**os.environ, **environ},
        check=True,
        stdout=subprocess.DEVNULL,
    )

    def session(prompt: str, *answers: dict[str, object]) -> str:
        command = [claude, "-p", prompt, "--dangerously-skip-permissions"]
        given = {**CLAUDE, **environ}
        return said(run_client(tmp_path, command, list(answers), cwd=repo, environ=given))

    keep = call("mcp__plugin_reverie_reverie__remember", text="Staging runs in Frankfurt")
    first = session("From now on, always run the linter before you commit.", rule(keep))
    assert "saved: project_staging" in first
    assert "reverie:memory" in first  # the skill is offered
    memory = reverie.Memory(repo, home=home / ".reverie")
    learned = {one.file: one.text for one in memory.list()}
    assert len(learned) == 2
    assert any("linter" in text for text in learned.values())
    second = session("Where does staging run, in which city?")
    for file in learned:
        assert file in second  # the index, at the start
    frames = re.findall(r"<reverie-note.*?</reverie-note", second)
    assert any("Frankfurt" in frame for frame in frames)
    assert {one.file: one.text for one in memory.list()} == learned  # nothing is learned back
    origins = {one.origin.agent for one in memory.history()}
    assert origins == {"agent:claude-code", "extract_memories"}
    assert json.loads((home / ".claude" / "skills" / "reverie" / ".mcp.json").read_text())
