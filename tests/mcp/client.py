"""One run of a foreign client against `reverie simulate`, where there is no other network.

`python -m tests.mcp.client RUN.json`, started where loopback is all there is: it serves the
script, puts the server's address in the place of `{url}` in the client's command, environment and
files, waits for the client's end, stops the server and hands on the client's exit code.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.memory.client import simulated

LIMIT_S = 240
ALONE = ["bwrap", "--unshare-net", "--dev-bind", "/", "/", "--die-with-parent", "--"]
CLAUDE = {
    "ANTHROPIC_BASE_URL": "{url}",
    "ANTHROPIC_API_KEY": "sk-ant-fake-0000",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "IS_SANDBOX": "1",  # lets it skip permissions as root
}
Run = Callable[..., list[dict[str, Any]]]


def main(path: str) -> int:
    given = json.loads(Path(path).read_text())
    with simulated(given["script"], given["log"]) as url:
        for name, text in given["files"].items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(text.replace("{url}", url))
        done = subprocess.run(
            [one.replace("{url}", url) for one in given["command"]],
            cwd=given["cwd"],
            env={k: v.replace("{url}", url) for k, v in given["environ"].items()},
            stdin=subprocess.DEVNULL,
            timeout=LIMIT_S,
            check=False,
        )
        return done.returncode


def run_client(
    folder: Path,
    command: list[str],
    answers: list[dict[str, Any]],
    *,
    cwd: Path,
    environ: dict[str, str],
    files: dict[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Run a client with scripted answers; the requests that it sent, in order."""
    home, script, log = (folder / name for name in ("home", "script.json", "log.jsonl"))
    home.mkdir(exist_ok=True)
    log.unlink(missing_ok=True)
    script.write_text(json.dumps(answers))
    known = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TMPDIR": str(home),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
    }
    given = {
        "script": str(script),
        "log": str(log),
        "cwd": str(cwd),
        "command": command,
        "environ": {**known, **environ},
        "files": files or {},
    }
    (folder / "run.json").write_text(json.dumps(given))
    done = subprocess.run(
        [*ALONE, sys.executable, "-m", "tests.mcp.client", str(folder / "run.json")],
        cwd=Path(__file__).parents[2],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    asked = [line for line in lines if line["path"].startswith(("/v1/messages", "/v1/responses"))]
    assert [line["status"] for line in asked] == [200] * len(asked)
    return [json.loads(line["body"]) for line in asked]


def call(name: str, /, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "name": name, "input": given}


def rule(*content: dict[str, Any]) -> dict[str, Any]:
    return {"when": {"tools": True}, "content": list(content)}


def said(requests: list[dict[str, Any]]) -> str:
    return json.dumps(requests, ensure_ascii=False)


def claude_code(version: str) -> str:
    """Claude Code as npm has it, or as its Python SDK brings it along."""
    if version == "2.1.325":
        return bundled_claude()
    found = shutil.which(f"claude-{version}") or shutil.which("claude")
    if found is None:
        pytest.skip("needs claude: put the client on PATH")
    return found


def bundled_claude() -> str:
    """The Claude Code that its own Python SDK carries."""
    import claude_agent_sdk

    found = Path(claude_agent_sdk.__path__[0]) / "_bundled" / "claude"
    if not found.exists():
        pytest.skip("needs claude: the one in the wheel of claude-agent-sdk")
    return str(found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
