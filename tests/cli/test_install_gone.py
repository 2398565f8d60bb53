"""The plugin's hook lines as Claude Code runs them: with the program there, and with it gone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import reverie
from reverie.store import digest
from tests.cli.conftest import Run

pytestmark = pytest.mark.spec("18.plugin")
EVENTS: dict[str, dict[str, Any]] = {
    "SessionStart": {"source": "startup"},
    "UserPromptSubmit": {"prompt": "Push it to main, please"},
    "PreToolUse": {"tool_name": "Bash", "tool_input": {"command": "git push origin main"}},
    "Stop": {"transcript_path": "/nowhere.jsonl"},
    "PreCompact": {"trigger": "manual", "transcript_path": "/nowhere.jsonl"},
    "SessionEnd": {"reason": "exit", "transcript_path": "/nowhere.jsonl"},
}
PROGRAM = """#!{python}
import sys
sys.path.insert(0, {site!r})
from reverie.apps.cli import main
sys.exit(main())
"""


class Installed:
    """A `reverie` with a package of its own, which a test can take away, and Claude's files."""

    def __init__(self, tmp: Path) -> None:
        self.site, self.project, self.user = tmp / "site", tmp / "project", tmp / "user"
        self.program = tmp / "a bin" / "reverie"
        for folder in (self.site, self.project, self.user, self.program.parent):
            folder.mkdir(exist_ok=True)
        (self.site / "reverie").symlink_to(Path(reverie.__file__).parent)
        self.program.write_text(PROGRAM.format(python=sys.executable, site=str(self.site)))
        self.program.chmod(0o755)
        (self.project / "json.py").write_text("raise SystemExit(2)\n")
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.user),
            "REVERIE_HOME": str(tmp / "home"),
            "PYTHONPATH": ".",
        }

    def runs(self, *args: str) -> subprocess.CompletedProcess[str]:
        environ = {**self.environ, "PYTHONPATH": ""}
        line = [str(self.program), *args]
        return subprocess.run(
            line, env=environ, cwd=self.project, capture_output=True, text=True, check=True
        )

    def lines(self) -> dict[str, str]:
        text = (self.user / ".claude/skills/reverie/hooks/hooks.json").read_text()
        return {
            event: rows[0]["hooks"][0]["command"]
            for event, rows in json.loads(text)["hooks"].items()
        }

    def hook(self, event: str, line: str) -> subprocess.CompletedProcess[str]:
        told = {"hook_event_name": event, "session_id": "s1", "cwd": str(self.project)}
        return subprocess.run(
            ["/bin/sh", "-c", line],
            input=json.dumps({**told, **EVENTS[event]}),
            env=self.environ,
            cwd=self.project,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    found = Installed(tmp_path)
    found.runs("memory", "add", "Never push to main: it deploys.")
    found.runs("install", "claude-code", "--plugin", "--yes")
    return found


def test_a_hook_holds_a_call_while_the_program_is_there(installed: Installed) -> None:
    lines = installed.lines()
    assert set(lines) == set(EVENTS)
    told = {event: installed.hook(event, line) for event, line in lines.items()}
    assert {event: one.returncode for event, one in told.items()} == dict.fromkeys(EVENTS, 0)
    answer = json.loads(told["PreToolUse"].stdout)["hookSpecificOutput"]
    assert answer["permissionDecision"] == "deny"
    assert "deploys" in answer["permissionDecisionReason"]
    assert "deploys" in told["SessionStart"].stdout


def test_a_program_that_blocks_is_heard(installed: Installed) -> None:
    installed.program.write_text("#!/bin/sh\necho no >&2\nexit 2\n")
    for event, line in installed.lines().items():
        done = installed.hook(event, line)
        assert (done.returncode, done.stderr) == (2, "no\n")


def test_every_call_passes_once_the_package_is_gone(installed: Installed) -> None:
    lines = installed.lines()
    (installed.site / "reverie").unlink()
    shutil.rmtree(installed.program.parent)
    for event, line in lines.items():
        done = installed.hook(event, line)
        assert (event, done.returncode, done.stdout, done.stderr) == (event, 0, "", "")


def test_the_plugin_names_the_program_and_no_file_of_the_package(installed: Installed) -> None:
    folder = installed.user / ".claude" / "skills" / "reverie"
    server = json.loads((folder / ".mcp.json").read_text())["mcpServers"]["reverie"]
    assert (server["command"], server["args"]) == (str(installed.program), ["mcp"])
    for line in installed.lines().values():
        assert line.endswith(f"'{installed.program}' hook")
        assert str(installed.site) not in line
        assert sys.executable not in line


OLD = {
    "hooks/hooks.json": '{"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [{"type": "command", '
    '"command": "/usr/bin/python3 -I -S /gone/reverie/apps/hook/before_call.py"}]}]}}\n',
    ".mcp.json": '{"mcpServers": {"reverie": {"command": "/usr/bin/python3", "args": '
    '["-I", "-m", "reverie.apps.cli", "mcp"]}}}\n',
}


@pytest.fixture
def old(user: Path) -> Path:
    """The plugin as an earlier version wrote it."""
    folder = user / ".claude" / "skills" / "reverie"
    for name, text in OLD.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    note = {"files": {name: digest(text.encode()) for name, text in OLD.items()}}
    (folder / ".reverie.json").write_text(json.dumps(note))
    return folder


def test_doctor_names_hooks_of_an_earlier_version_and_install_renews_them(
    run: Run, old: Path
) -> None:
    def found() -> list[dict[str, str]]:
        checks = json.loads(run("doctor", "--json").out)["checks"]
        return [one for one in checks if "plugin" in one["what"] and one["state"] != "ok"]

    (one,) = found()
    assert one["state"] == "problem"
    assert "reverie install claude-code --plugin" in one["do"]
    run("install", "claude-code", "--plugin", "--yes", code=0)
    assert "before_call" not in (old / "hooks" / "hooks.json").read_text()
    assert found() == []


def test_an_earlier_version_is_removed_whole(run: Run, user: Path, old: Path) -> None:
    run("uninstall", "claude-code", "--yes", code=0)
    assert not old.exists()
