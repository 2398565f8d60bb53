"""A gateway that a client had stays the place its requests go to; what cannot pass is refused."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request as Asked
from urllib.request import urlopen

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from reverie.http_server import serving
from tests.cli.conftest import Run
from tests.processes import end

pytestmark = [pytest.mark.spec("18.client-settings"), pytest.mark.usefixtures("user")]

FILES = {
    "claude-code": ".claude/settings.json",
    "codex": ".codex/config.toml",
    "opencode": ".config/opencode/opencode.json",
}
AUTH = ".codex/auth.json"
TOKENS = {"id_token": "a.b.c", "access_token": "secret-1", "refresh_token": "secret-2"}
GATE = "https://gate.example"


def claude(**env: object) -> str:
    return json.dumps({"env": env})


def opencode(**more: Any) -> str:
    return json.dumps(more)


def based(api: str, url: str) -> dict[str, Any]:
    return {"provider": {api: {"options": {"baseURL": url, "apiKey": "gate-key"}}}}


REFUSED: list[tuple[str, str, dict[str, Any], dict[str, str], str]] = [
    ("codex", "", {"tokens": TOKENS}, {}, "login"),
    ("codex", "", {"tokens": TOKENS, "OPENAI_API_KEY": None}, {}, "ChatGPT"),
    ("codex", "", {"auth_mode": "chatgpt", "OPENAI_API_KEY": "sk-x"}, {}, "codex login"),
    ("codex", "", {"auth_mode": "chatgptAuthTokens"}, {}, "reverie mcp"),
    ("codex", 'model_provider = "azure"\n', {}, {}, "azure"),
    ("codex", 'model_provider = "anthropic"\n', {}, {}, "anthropic"),
    ("codex", 'profile = "w"\n[profiles.w]\nmodel_provider = "gate"\n', {}, {}, "gate"),
    ("codex", f'openai_base_url = "{GATE}/v4"\n', {}, {}, "/v1"),
    ("codex", f'openai_base_url = "{GATE}/v1?key=secret-3"\n', {}, {}, "query"),
    ("codex", "", {}, {"OPENAI_BASE_URL": f"{GATE}/v1"}, "OPENAI_BASE_URL"),
    ("opencode", opencode(model="openrouter/anthropic/claude-sonnet-4.5"), {}, {}, "openrouter"),
    ("opencode", opencode(model="local/qwen", **based("local", f"{GATE}/v1")), {}, {}, "local"),
    ("opencode", opencode(**based("anthropic", "{env:GATE}")), {}, {}, "anthropic base URL"),
    ("opencode", opencode(**based("openai", GATE)), {}, {}, "/v1"),
    ("opencode", "{}", {}, {"ANTHROPIC_BASE_URL": f"{GATE}/v1"}, "ANTHROPIC_BASE_URL"),
    ("claude-code", claude(CLAUDE_CODE_USE_BEDROCK="1"), {}, {}, "CLAUDE_CODE_USE_BEDROCK"),
    ("claude-code", claude(CLAUDE_CODE_USE_VERTEX=1), {}, {}, "--plugin"),
    ("claude-code", "{}", {}, {"CLAUDE_CODE_USE_FOUNDRY": "true"}, "CLAUDE_CODE_USE_FOUNDRY"),
    ("claude-code", claude(ANTHROPIC_BASE_URL="https://u:secret@gate.example"), {}, {}, "URL"),
]  # fmt: skip
KEPT: list[tuple[str, str, dict[str, Any], dict[str, str], dict[str, str]]] = [
    ("claude-code", claude(ANTHROPIC_BASE_URL=f"{GATE}/"), {}, {}, {"anthropic": GATE}),
    ("claude-code", claude(ANTHROPIC_BASE_URL=f"{GATE}/v1"), {}, {}, {"anthropic": f"{GATE}/v1"}),
    ("claude-code", "{}", {}, {"ANTHROPIC_BASE_URL": GATE}, {"anthropic": GATE}),
    ("claude-code", claude(ANTHROPIC_BASE_URL=GATE), {}, {"ANTHROPIC_BASE_URL": "http://b"},
     {"anthropic": GATE}),
    ("claude-code", claude(ANTHROPIC_BASE_URL="https://api.anthropic.com"), {}, {}, {}),
    ("claude-code", claude(CLAUDE_CODE_USE_BEDROCK="0"), {}, {"CLAUDE_CODE_USE_BEDROCK": "1"}, {}),
    ("codex", f'openai_base_url = "{GATE}/api/v1"\n', {}, {}, {"openai": f"{GATE}/api"}),
    ("codex", "", {"OPENAI_API_KEY": "sk-x"}, {}, {}),
    ("codex", "", {"OPENAI_API_KEY": "sk-x", "tokens": None, "auth_mode": "apikey"}, {}, {}),
    ("codex", 'model_provider = "openai"\n[model_providers.x]\nname = "x"\n', {}, {}, {}),
    ("opencode", opencode(model="anthropic/claude", **based("anthropic", f"{GATE}/v1")), {}, {},
     {"anthropic": GATE}),
    ("opencode", opencode(**based("openai", f"{GATE}/v1/")), {}, {}, {"openai": GATE}),
]  # fmt: skip


CODEX = """#!/bin/sh
# answers as codex 0.166 does
[ "$*" = "login status" ] || exit 9
file="${CODEX_HOME:-$HOME/.codex}/auth.json"
[ -e "$file" ] || { echo "Not logged in" >&2; exit 1; }
grep -qiE 'chatgpt|access_token' "$file" && { echo "Logged in using ChatGPT" >&2; exit 0; }
echo "API key configured - sk-fake-***00000" >&2
"""


@pytest.fixture(autouse=True)
def codex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A codex that knows how it is logged in."""
    program = tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.write_text(CODEX)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return program


def test_a_login_that_cannot_be_checked_is_refused(run: Run, user: Path, codex: Path) -> None:
    wrote(user, "codex", "", {"OPENAI_API_KEY": "sk-x"})
    codex.write_text("#!/bin/sh\nexec /nowhere/at/all\n")
    codex.chmod(0o644)
    assert "cannot be checked" in run("install", "codex", "--yes", code=2).err
    (user / AUTH).unlink()
    run("install", "codex", "--yes", code=0)


def test_no_token_goes_into_a_file_that_git_would_commit(run: Run, user: Path) -> None:
    path = wrote(user, "claude-code", "{}", {})
    subprocess.run(["git", "init", "-q", str(path.parent)], check=True)
    refused = run("install", "claude-code", "--yes", code=None)
    assert (refused.code != 0, path.read_text()) == (True, "{}")
    assert "git" in refused.err
    (path.parent / ".gitignore").write_text("settings.json\n")
    run("install", "claude-code", "--yes", code=0)


def wrote(user: Path, client: str, text: str, login: dict[str, Any]) -> Path:
    path = user / FILES[client]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if login:
        (user / AUTH).write_text(json.dumps(login))
    return path


@pytest.mark.parametrize(("client", "text", "login", "environ", "word"), REFUSED)
def test_what_would_not_pass_is_refused_with_the_reason(
    run: Run, user: Path, home: Path, monkeypatch: pytest.MonkeyPatch,
    client: str, text: str, login: dict[str, Any], environ: dict[str, str], word: str,
) -> None:  # fmt: skip
    path = wrote(user, client, text, login)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    refused = run("install", client, "--yes", code=2)
    assert word in refused.err
    assert "secret" not in refused.err
    assert path.read_text() == text
    assert not (home / "installed").exists()


@pytest.mark.parametrize(("client", "text", "login", "environ", "upstreams"), KEPT)
def test_a_gateway_is_told_and_everything_comes_back(
    run: Run, user: Path, monkeypatch: pytest.MonkeyPatch,
    client: str, text: str, login: dict[str, Any], environ: dict[str, str],
    upstreams: dict[str, str],
) -> None:  # fmt: skip
    path = wrote(user, client, text, login)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    told = run("install", client, "--yes", "--json").json()
    assert {api: url for api, url in told["upstreams"].items() if url} == upstreams
    assert ("gateway that" in run("install", client, "--yes", code=0).out) == bool(upstreams)
    run("uninstall", client, "--yes", code=0)
    assert path.read_text() == text


# --- through the proxy


@contextmanager
def host() -> Iterator[tuple[str, list[str]]]:
    """A server that keeps the tokens it is sent."""
    tokens: list[str] = []

    async def answer(request: Request) -> JSONResponse:
        if request.method == "POST":
            tokens.append(f"{request.headers.get('authorization')} {request.url.path}")
        return JSONResponse({"ok": True})

    every = Route("/{path:path}", answer, methods=["GET", "HEAD", "POST"])
    with serving(Starlette(routes=[every])) as url:
        yield url, tokens


@contextmanager
def proxy(port: int, *options: str) -> Iterator[str]:
    """`reverie proxy` on a port; what it says when it listens, "" where it does not."""
    line = [sys.executable, "-m", "reverie.apps.cli", "proxy", "--port", str(port), "--json"]
    pipe = subprocess.PIPE
    with subprocess.Popen([*line, *options], text=True, stdout=pipe, stderr=pipe) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline()
        finally:
            end(process)


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def post(url: str, token: str) -> int:
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    try:
        with urlopen(Asked(url, b'{"model": "m", "messages": []}', headers)) as answer:
            return answer.status
    except HTTPError as error:
        return error.code


def test_a_gateways_token_reaches_that_gateway_alone(run: Run, user: Path, port: int) -> None:
    with host() as (gate, at_gate), host() as (other, elsewhere):
        path = wrote(user, "claude-code", claude(ANTHROPIC_BASE_URL=gate), {})
        with proxy(port, "--upstream", other) as ready:
            assert ready
            refused = run("install", "claude-code", "--port", str(port), "--yes", code=2)
            assert "Stop it" in refused.err
        run("install", "claude-code", "--port", str(port), "--yes", code=0)
        base = json.loads(path.read_text())["env"]["ANTHROPIC_BASE_URL"]
        refused = run("proxy", "--port", str(port), "--upstream", other, code=2)
        assert "--upstream" in refused.err
        with proxy(port) as ready:
            assert ready
            assert post(f"{base}/v1/messages", "of-the-gate") == 200
            run("install", "claude-code", "--port", str(port), "--yes", code=0)
        assert at_gate == ["Bearer of-the-gate /v1/messages"]
        assert elsewhere == []


def test_two_clients_of_one_port_have_one_upstream(run: Run, user: Path, port: int) -> None:
    with host() as (gate, at_gate):
        codex = wrote(user, "codex", f'openai_base_url = "{gate}/v1"\n', {})
        run("install", "codex", "--port", str(port), "--yes", code=0)
        refused = run("install", "opencode", "--port", str(port), "--yes", code=2)
        assert f"--port {port + 1}" in refused.err
        run("install", "claude-code", "--port", str(port), "--yes", code=0)
        with proxy(port) as ready:
            assert ready
            base = tomllib.loads(codex.read_text())["openai_base_url"]
            assert post(f"{base}/responses", "of-the-gate") == 200
        assert at_gate == ["Bearer of-the-gate /v1/responses"]
        run("uninstall", "codex", "--yes", code=0)
        run("install", "opencode", "--port", str(port), "--yes", code=0)


def test_a_gateway_of_the_environment_stays_when_the_client_itself_installs_again(
    run: Run, user: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = wrote(user, "claude-code", "{}", {})
    monkeypatch.setenv("ANTHROPIC_BASE_URL", GATE)
    run("install", "claude-code", "--yes", code=0)
    ours = json.loads(path.read_text())["env"]["ANTHROPIC_BASE_URL"]
    monkeypatch.setenv("ANTHROPIC_BASE_URL", ours)
    again = run("install", "claude-code", "--port", str(port), "--yes", "--json").json()
    assert again["upstreams"] == {"anthropic": GATE}


def test_a_gateway_that_an_earlier_version_did_not_keep_stops_the_proxy(
    run: Run, user: Path, home: Path, port: int
) -> None:
    wrote(user, "codex", f'openai_base_url = "{GATE}/v1"\n', {})
    run("install", "codex", "--port", str(port), "--yes", code=0)
    note = home / "installed" / "codex.json"
    kept = json.loads(note.read_text())
    del kept["upstreams"]
    note.write_text(json.dumps(kept))
    assert "reverie install codex" in run("proxy", "--port", str(port), code=2).err
    run("install", "codex", "--port", str(port), "--yes", code=0)
    assert json.loads(note.read_text())["upstreams"] == {"openai": GATE}


# --- claims


@pytest.mark.parametrize("client", list(FILES))
def test_what_was_written_is_said_and_nothing_that_was_not_seen(
    run: Run, user: Path, client: str
) -> None:
    path = wrote(user, client, "{}" if client != "codex" else "", {})
    for _ in range(2):
        told = run("install", client, "--yes", code=0).out
        assert str(path) in told
        assert "reverie doctor" in told
        assert "through the proxy" not in told
    assert "directly" not in run("uninstall", "--yes", code=0).out
    plugin = run("install", "claude-code", "--plugin", "--yes", code=0).out
    assert "uses the memory" not in plugin
    assert os.fspath(user / ".claude" / "skills" / "reverie") in plugin
