"""What `reverie install` writes is what real clients need: their requests arrive."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from reverie.simulator import Engine
from reverie.simulator import serving as provider
from tests.clients.line import Proxy
from tests.clients.model import Planned
from tests.clients.programs import GPT, MODEL, Desk

pytestmark = [pytest.mark.spec("18.client-settings"), pytest.mark.integration]

QUIET = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
         "IS_SANDBOX": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1",
         "OPENCODE_DISABLE_MODELS_FETCH": "1", "ANTHROPIC_API_KEY": "sk-ant-fake-0000"}  # fmt: skip


def _claude(desk: Desk) -> str:
    return desk.run("claude", "-p", "[[rest]] hello", "--model", MODEL, **QUIET)


def _codex(desk: Desk) -> str:
    folder = desk.home / ".codex"
    folder.mkdir(exist_ok=True)
    (folder / "auth.json").write_text(json.dumps({"OPENAI_API_KEY": "fake"}))
    return desk.run("codex", "exec", "-m", GPT, "--skip-git-repo-check", "[[rest]] hello")


def _opencode(desk: Desk) -> str:
    return desk.run("opencode", "run", "-m", f"anthropic/{MODEL}", "[[rest]] hello", **QUIET)


RUNS: dict[str, Callable[[Desk], str]] = {
    "claude-code": _claude,
    "codex": _codex,
    "opencode": _opencode,
}
# the client itself adds the schema where it is missing
SCHEMED = '{\n  "$schema": "https://opencode.ai/config.json",\n  // mine\n  "theme": "system"\n}\n'
OWN = {
    "claude-code": (".claude/settings.json", '{"theme": "dark"}\n'),
    "codex": (".codex/config.toml", '# mine\nmodel_reasoning_effort = "low"\n'),
    "opencode": (".config/opencode/opencode.jsonc", SCHEMED),
}


@pytest.fixture
def engine() -> Engine:
    return Engine(answerer=Planned({"rest": []}))


@pytest.fixture
def desk(tmp_path: Path, engine: Engine) -> Iterator[Desk]:
    home = tmp_path / "reverie"
    home.mkdir()
    with provider(engine) as upstream:
        proxy = Proxy(upstream, home)
        try:
            port = urlsplit(proxy.start()["anthropic"]).port
            yield Desk(tmp_path / "desk", "", {"REVERIE_HOME": str(home), "PORT": str(port)})
        finally:
            proxy.stop()


def reverie(desk: Desk, *args: str) -> str:
    return desk.ended(sys.executable, "-m", "reverie.apps.cli", *args)[1]


@pytest.mark.parametrize("client", list(RUNS))
def test_requests_of_an_installed_client_arrive_and_doctor_says_so(
    desk: Desk, engine: Engine, client: str
) -> None:
    place, text = OWN[client]
    settings = desk.home / place
    settings.parent.mkdir(parents=True)
    settings.write_text(text)
    told = reverie(desk, "install", client, "--yes", "--port", desk.environ["PORT"])
    assert f"{settings} names the proxy now" in told
    assert "no request has arrived" in reverie(desk, "doctor")
    assert "done (rest)" in RUNS[client](desk)
    assert [entry.status for entry in engine.log if entry.body]
    assert all("x-api-key" not in entry.headers for entry in engine.log)
    assert "arrived at the proxy since it started" in reverie(desk, "doctor")
    reverie(desk, "uninstall", "--yes")
    assert settings.read_text() == text
