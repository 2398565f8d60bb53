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


def codex_settings(folder: Path, home: Path) -> dict[str, str]:
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
    return {str(folder / "home" / ".codex" / "config.toml"): config}


def test_codex_keeps_and_finds(repo: Path, tmp_path: Path, home: Path) -> None:
    codex = shutil.which("codex")
    if codex is None:
        pytest.skip("needs codex: put the client on PATH")
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
        files=codex_settings(tmp_path, home),
    )
    assert "saved: project_staging.md" in said(asked)
    assert "Saved today: project_staging.md" in said(asked)
    memory = reverie.Memory(repo, home=home)
    assert memory.get("project_staging.md").text == "Staging runs in Frankfurt"
    assert memory.history()[-1].origin.agent == "agent:codex-mcp-client"


TIDY = "---\nname: Tests\ndescription: Run `make check`\ntype: feedback\n---\n\n"
MERGED = f"{TIDY}Run `make check` before every commit. It takes a minute.\n"
GONE = {
    "reason": "duplicate_of",
    "fact": "Before each commit, run `make check`.",
    "target": "feedback_tests.md",
    "by": "Run `make check` before every commit.",
}


def untidy(repo: Path, home: Path) -> reverie.Memory:
    memory = reverie.Memory(repo, home=home)
    memory.add("Run `make check` before every commit.", type="feedback", name="Tests")
    twice = "Before each commit, run `make check`. It takes a minute."
    memory.add(twice, type="feedback", name="Make check")
    return memory


@pytest.mark.spec("18.dream")
@pytest.mark.parametrize(
    ("version", "words"),
    [("2.1.197", "Tidy the memory of this project."), ("2.1.325", "/mcp__reverie__dream")],
)
def test_claude_code_dreams(
    version: str, words: str, repo: Path, tmp_path: Path, home: Path
) -> None:
    """A prompt or the person's words lead; the answers are those of a reader who saw what the
    tools gave. The older version knows no prompt of a server before it has connected."""
    claude = claude_code(version)
    memory = untidy(repo, home)
    server = {"command": SERVER[0], "args": SERVER[1:], "env": {"REVERIE_HOME": str(home)}}
    config = json.dumps({"mcpServers": {"reverie": server}})
    command = [
        *(claude, "-p", words, "--dangerously-skip-permissions"),
        *("--mcp-config", config),
    ]
    asked = run_client(
        tmp_path,
        command,
        [
            rule(call("WaitForMcpServers")),
            rule(call("mcp__reverie__dream_open")),
            rule(call("mcp__reverie__dream_write", file="feedback_make_check.md", text="")),
            rule(call("mcp__reverie__dream_write", file="feedback_tests.md", text=MERGED)),
            rule(
                call(
                    "mcp__reverie__dream_write",
                    file="feedback_make_check.md",
                    text="",
                    reasons=[GONE],
                )
            ),
            rule(call("mcp__reverie__dream_close")),
        ],
        cwd=repo,
        environ={**CLAUDE, "REVERIE_HOME": str(home)},
    )
    told = said(asked)
    assert "You are tidying the long-term memory of a coding agent" in told
    assert "fact lost: feedback_make_check.md" in told
    assert "Written. Nothing is wrong so far." in told
    assert "a dream changed 3 files" in told
    assert [one.file for one in memory.list()] == ["feedback_tests.md"]
    assert "It takes a minute." in memory.get("feedback_tests.md").text


@pytest.mark.spec("18.dream")
def test_codex_dreams_by_the_tools(repo: Path, tmp_path: Path, home: Path) -> None:
    codex = shutil.which("codex")
    if codex is None:
        pytest.skip("needs codex: put the client on PATH")
    memory = untidy(repo, home)
    write = {"file": "feedback_make_check.md", "text": "", "reasons": [GONE]}
    asked = run_client(
        tmp_path,
        [
            codex,
            "exec",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
            "Tidy the memory of this project.",
        ],
        [
            rule({**call("dream_open"), **SPACE}),
            rule({**call("dream_write", file="feedback_tests.md", text=MERGED), **SPACE}),
            rule({**call("dream_write", **write), **SPACE}),
            rule({**call("dream_close"), **SPACE}),
        ],
        cwd=repo,
        environ={"OPENAI_API_KEY": "fake"},
        files=codex_settings(tmp_path, home),
    )
    assert "a dream changed 3 files" in said(asked)
    assert [one.file for one in memory.list()] == ["feedback_tests.md"]
