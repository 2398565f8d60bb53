"""The plugin in the real Claude Code: one session feeds the memory, the next one uses it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reverie
from tests.mcp.client import CLAUDE, call, claude_code, rule, run_client, said

pytestmark = [
    pytest.mark.spec("18.plugin"),
    pytest.mark.integration,
    pytest.mark.needs("bwrap", "git"),
]


Session = Callable[..., list[dict[str, Any]]]


def installed(version: str, tmp: Path) -> tuple[Session, reverie.Memory]:
    """Claude Code with the plugin, in a repository: a session of it, and the memory it has."""
    claude = claude_code(version)
    home, repo = tmp / "home", tmp / "repo"
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

    def session(prompt: str, *answers: dict[str, Any]) -> list[dict[str, Any]]:
        command = [claude, "-p", prompt, "--dangerously-skip-permissions"]
        return run_client(tmp, command, list(answers), cwd=repo, environ={**CLAUDE, **environ})

    return session, reverie.Memory(repo, home=home / ".reverie")


@pytest.mark.parametrize("version", ["2.1.197", "2.1.325"])
def test_sessions_feed_and_use_the_memory_without_the_proxy(version: str, tmp_path: Path) -> None:
    session, memory = installed(version, tmp_path)
    keep = call("mcp__plugin_reverie_reverie__remember", text="Staging runs in Frankfurt")
    first = said(session("From now on, always run the linter before you commit.", rule(keep)))
    assert "saved: project_staging" in first
    assert "reverie:memory" in first  # the skill is offered
    learned = {one.file: one.text for one in memory.list()}
    assert len(learned) == 2
    assert any("linter" in text for text in learned.values())
    second = said(session("Where does staging run, in which city?"))
    for file in learned:
        assert file in second  # the index, at the start
    frames = re.findall(r"<reverie-note.*?</reverie-note", second)
    assert any("Frankfurt" in frame for frame in frames)
    assert {one.file: one.text for one in memory.list()} == learned  # nothing is learned back
    origins = {one.origin.agent for one in memory.history()}
    assert origins == {"agent:claude-code", "extract_memories"}
    plugin = tmp_path / "home" / ".claude" / "skills" / "reverie"
    assert json.loads((plugin / ".mcp.json").read_text())


@pytest.mark.spec("B20.client")
def test_what_one_session_was_told_holds_a_call_of_the_next(tmp_path: Path) -> None:
    session, memory = installed("2.1.325", tmp_path)
    session("From now on never push to main, it deploys.")
    (learned,) = memory.list()
    line = "echo pushed; false && git push origin main"
    bash = [rule(call("Bash", command=c, description="x")) for c in (line, "echo other", line)]
    requests = session("Ship it", *bash)
    held, other, again = results(requests)
    assert learned.file in held
    assert "never push to main" in held.lower()
    assert "pushed" not in held
    assert "other" in other
    assert "pushed" in again  # shown once, then the call is the model's to make
    assert len(memory.list()) == 1


@pytest.mark.parametrize("version", ["2.1.197", "2.1.325"])
def test_calls_run_once_the_package_is_gone(version: str, tmp_path: Path) -> None:
    session, _ = installed(version, tmp_path)
    plugin = tmp_path / "home" / ".claude" / "skills" / "reverie"
    here = json.loads((plugin / ".mcp.json").read_text())["mcpServers"]["reverie"]["command"]
    for name in (".mcp.json", "hooks/hooks.json"):
        text = (plugin / name).read_text()
        (plugin / name).write_text(text.replace(here, "/gone/bin/reverie"))
    requests = session("Ship it", rule(call("Bash", command="echo it ran", description="x")))
    (ran,) = results(requests)
    assert "it ran" in ran


def results(requests: list[dict[str, Any]]) -> list[str]:
    """What the calls of a session came back with, as its longest request sends it."""
    last = max(requests, key=lambda one: len(one["messages"]))
    blocks = (b for m in last["messages"] if isinstance(m["content"], list) for b in m["content"])
    return [json.dumps(b["content"]) for b in blocks if b["type"] == "tool_result"]
