"""Claude Code and codex use the server: a scripted model calls its tools through them."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

import reverie
from tests.mcp.client import CLAUDE, call, claude_code, rule, run_client, said

pytestmark = [
    pytest.mark.spec("18.mcp"),
    pytest.mark.integration,
    pytest.mark.needs("bwrap", "git"),
]

SPACE = {"namespace": "mcp__reverie"}  # where codex puts a server's tools
SERVER = [sys.executable, "-m", "reverie.apps.cli", "mcp"]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("version", ["2.1.197", "2.1.325"])
def test_claude_code_keeps_and_finds(version: str, repo: Path, tmp_path: Path, home: Path) -> None:
    claude = claude_code(version)
    environ = {**CLAUDE, "REVERIE_HOME": str(home)}
    server = {"command": SERVER[0], "args": SERVER[1:], "env": {"REVERIE_HOME": str(home)}}
    config = json.dumps({"mcpServers": {"reverie": server}})
    command = [claude, "-p", "go", "--dangerously-skip-permissions", "--mcp-config", config]
    asked = run_client(
        tmp_path,
        command,
        [
            rule(call("WaitForMcpServers")),  # it may ask before the server has begun
            rule(call("mcp__reverie__remember", text="Staging runs in Frankfurt", name="Staging")),
            rule(call("mcp__reverie__search_memory", query="where is staging?")),
            rule(call("mcp__reverie__remember", text="a", trust="user")),
        ],
        cwd=repo,
        environ=environ,
    )
    assert "saved: project_staging.md" in said(asked)
    assert "Saved today: project_staging.md" in said(asked)
    assert "The input of remember is wrong" in said(asked)
    memory = reverie.Memory(repo, home=home)
    assert memory.get("project_staging.md").text == "Staging runs in Frankfurt"
    assert memory.history()[-1].origin.agent == "agent:claude-code"


def test_codex_keeps_and_finds(repo: Path, tmp_path: Path, home: Path) -> None:
    codex = shutil.which("codex")
    if codex is None:
        pytest.skip("needs codex: put the client on PATH")
    config = f"""
model = "gpt-5.6"
model_provider = "local"
[model_providers.local]
name = "local"
base_url = "{{url}}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
[mcp_servers.reverie]
command = {json.dumps(SERVER[0])}
args = {json.dumps(SERVER[1:])}
required = true
startup_timeout_sec = 60
env = {{ REVERIE_HOME = {json.dumps(str(home))} }}
"""
    asked = run_client(
        tmp_path,
        [
            codex,
            "exec",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
            "go",
        ],
        [
            rule({**call("remember", text="Staging runs in Frankfurt", name="Staging"), **SPACE}),
            rule({**call("search_memory", query="where is staging?"), **SPACE}),
        ],
        cwd=repo,
        environ={"OPENAI_API_KEY": "fake"},
        files={str(tmp_path / "home" / ".codex" / "config.toml"): config},
    )
    assert "saved: project_staging.md" in said(asked)
    assert "Saved today: project_staging.md" in said(asked)
    memory = reverie.Memory(repo, home=home)
    assert memory.get("project_staging.md").text == "Staging runs in Frankfurt"
    assert memory.history()[-1].origin.agent == "agent:codex-mcp-client"
