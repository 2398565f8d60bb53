"""The real Claude Code, its calls held by our hook: what it sends over the wire shows the rule.

It talks to `reverie simulate`, where there is no network but loopback.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from reverie.apps.hook import before_call
from reverie.settings import DEFAULTS
from reverie.store import MemoryStore, Project, RuleStore
from tests.mcp.client import CLAUDE, call, rule, run_client
from tests.memory.client import claude_under_test
from tests.plugin.test_claude_code import results
from tests.rules.stage import push_rule

pytestmark = [
    pytest.mark.spec("B20.client"),
    pytest.mark.integration,
    pytest.mark.needs("bwrap", "git"),
]


def test_the_hook_holds_a_call_of_the_real_client(tmp_path: Path) -> None:
    claude = claude_under_test()
    home, repo = tmp_path / "home", tmp_path / "repo"
    (home / ".claude").mkdir(parents=True)
    repo.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main", str(repo)], check=True)
    environ = {"HOME": str(home)}
    with MemoryStore.of(
        Project.at(repo, home=home / ".reverie", environ=environ, settings=DEFAULTS),
        now=lambda: 1.0,
    ) as memories:
        push_rule(memories)
    command = f"{sys.executable} -I -S {before_call.__file__}"
    hook = {"matcher": "*", "hooks": [{"type": "command", "command": command}]}
    settings = {"hooks": {"PreToolUse": [hook]}}
    (home / ".claude" / "settings.json").write_text(json.dumps(settings))
    line = "echo pushed; false && git push origin main"
    bash = [rule(call("Bash", command=c, description="x")) for c in (line, "echo other", line)]
    start = [claude, "-p", "Push it", "--dangerously-skip-permissions"]
    sent = run_client(tmp_path, start, bash, cwd=repo, environ=CLAUDE)
    held, other, again = results(sent)
    assert "> Never push to main: it deploys." in held
    assert "pushed" not in held
    assert "other" in other
    assert "pushed" in again  # shown once, then the call is the model's to make
    with MemoryStore.of(
        Project.at(repo, home=home / ".reverie", environ=environ, settings=DEFAULTS),
        now=lambda: 1.0,
    ) as memories:
        counts = RuleStore(memories, repo).counts()["push.md"]
    assert dict(counts.total) == {"matched": 2, "held": 1, "broken": 1}
