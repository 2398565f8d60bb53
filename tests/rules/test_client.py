"""The real Claude Code, its calls held by our hook: what it sends over the wire shows the rule.

It talks to `reverie simulate`, where there is no network but loopback.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reverie.apps.hook import before_call
from reverie.settings import DEFAULTS
from reverie.store import Memories, Project, RuleStore
from tests.rules.stage import push_rule

pytestmark = [pytest.mark.spec("B20.client"), pytest.mark.doors, pytest.mark.needs("bwrap", "git")]


def bash(command: str) -> dict[str, Any]:
    call = {"type": "tool_use", "name": "Bash", "input": {"command": command, "description": "x"}}
    return {"when": {"tools": True}, "content": [call]}


def results(requests: list[dict[str, Any]]) -> list[str]:
    """The results that the last request carries, in their order."""
    last = max(requests, key=lambda one: len(one["messages"]))
    blocks = (b for m in last["messages"] if isinstance(m["content"], list) for b in m["content"])
    return [json.dumps(b["content"]) for b in blocks if b["type"] == "tool_result"]


def test_the_hook_holds_a_call_of_the_real_client(root: Path, tmp_path: Path) -> None:
    claude = os.environ.get("CLIENT_UNDER_TEST") or shutil.which("claude")
    if not claude:
        pytest.skip("needs claude: put the client on PATH or name it in CLIENT_UNDER_TEST")
    home, repo = tmp_path / "home", tmp_path / "repo"
    (home / ".claude").mkdir(parents=True)
    repo.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main", str(repo)], check=True)
    environ = {"HOME": str(home)}
    with Memories.of(
        Project.at(repo, home=home / ".reverie", environ=environ, settings=DEFAULTS),
        now=lambda: 1.0,
    ) as memories:
        push_rule(memories)
    command = f"{sys.executable} -I -S {before_call.__file__}"
    hook = {"matcher": "*", "hooks": [{"type": "command", "command": command}]}
    settings = {"hooks": {"PreToolUse": [hook]}}
    (home / ".claude" / "settings.json").write_text(json.dumps(settings))
    script, log = tmp_path / "script.json", tmp_path / "log.jsonl"
    line = "echo pushed; false && git push origin main"
    script.write_text(json.dumps([bash(line), bash("echo other"), bash(line)]))
    alone = ["bwrap", "--unshare-net", "--dev-bind", "/", "/", "--die-with-parent", "--"]
    given = map(str, (claude, home, repo, script, log, "Push it"))
    done = subprocess.run(
        [*alone, sys.executable, "-m", "tests.memory.client", *given],
        cwd=root, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(one) for one in log.read_text().splitlines()]
    sent = [json.loads(one["body"]) for one in lines if one["path"].startswith("/v1/messages")]
    held, other, again = results(sent)
    assert "> Never push to main: it deploys." in held
    assert "pushed" not in held
    assert "other" in other
    assert "pushed" in again  # shown once, then the call is the model's to make
    with Memories.of(
        Project.at(repo, home=home / ".reverie", environ=environ, settings=DEFAULTS),
        now=lambda: 1.0,
    ) as memories:
        counts = RuleStore(memories, repo).counts()["push.md"]
    assert dict(counts.total) == {"matched": 2, "held": 1, "broken": 1}
