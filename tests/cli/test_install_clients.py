"""`reverie install`, `uninstall` and what `doctor` says of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from reverie.clients import known_token
from reverie.http_server import serving
from tests.cli.conftest import Run

pytestmark = [pytest.mark.spec("18.client-settings"), pytest.mark.usefixtures("user")]


def test_nothing_is_written_before_a_yes(run: Run, user: Path, home: Path) -> None:
    path = user / ".claude" / "settings.json"
    asked = run("install", "claude-code", input="n\n", code=1)
    assert "+" in asked.out
    assert "ANTHROPIC_BASE_URL" in asked.out
    assert "Write this?" in asked.out
    assert path.read_text() == '{"model": "opus"}\n'
    assert not (home / "installed").exists()
    run("install", "claude-code", input="\n", code=1)
    assert path.read_text() == '{"model": "opus"}\n'
    done = run("install", "claude-code", input="y\n", code=0)
    assert "reverie proxy" in done.out
    assert json.loads(path.read_text())["model"] == "opus"


def test_json_asks_nothing_and_wants_a_yes(run: Run, user: Path) -> None:
    refused = run("install", "codex", "--json", code=2)
    assert "--yes" in refused.error["do"]
    told = run("install", "codex", "--json", "--yes").json()
    assert told["changed"]
    assert told["file"] == str(user / ".codex" / "config.toml")
    assert not run("install", "codex", "--json", "--yes").json()["changed"]
    gone = run("uninstall", "--json", "--yes").json()
    assert [one["client"] for one in gone["uninstalled"]] == ["codex"]
    assert not (user / ".codex").exists()


def test_uninstall_alone_takes_everything_back(run: Run, user: Path, home: Path) -> None:
    for client in ("claude-code", "codex", "opencode"):
        run("install", client, "--yes", code=0)
    done = run("uninstall", "--yes", code=0)
    assert done.out.count("names the proxy no longer") == 3
    assert [str(p.relative_to(user)) for p in user.rglob("*") if p.is_file()] == [
        ".claude/settings.json"
    ]
    assert not home.exists()
    assert "Nothing was installed" in run("uninstall", "--yes", code=0).out


@pytest.mark.spec("18.off")
def test_everything_goes_at_the_word_alone(run: Run, user: Path, home: Path) -> None:
    run("memory", "add", "Prices are in cents.", code=0)
    run("install", "codex", "--yes", code=0)
    assert "`--everything`" in run("uninstall", "--yes", code=0).out
    asked = run("uninstall", "--everything", input="yes\n", code=0)
    assert "of 1 project" in asked.out
    assert "Nothing was removed" in asked.out
    assert "cents" in run("memory", "list", code=0).out
    assert "--yes" in run("uninstall", "--everything", "--json", code=2).error["do"]
    run("uninstall", "--everything", "codex", code=2)
    assert "is gone" in run("uninstall", "--everything", input="remove\n", code=0).out
    assert not home.exists()


@pytest.mark.spec("18.off")
def test_a_folder_that_is_not_ours_stays(run: Run, user: Path, home: Path) -> None:
    home.mkdir(exist_ok=True)
    (home / "letters").write_text("mine")
    refused = run("uninstall", "--everything", "--yes", code=2)
    assert "not a home of Reverie's" in refused.err
    assert (home / "letters").read_text() == "mine"


def test_an_unknown_client_is_an_error_that_names_the_known(run: Run) -> None:
    assert "opencode" in run("install", "emacs", code=2).err


# --- doctor


def checks(run: Run) -> list[dict[str, Any]]:
    told = json.loads(run("doctor", "--json").out)
    return [one for one in told["checks"] if one["name"] == "clients"]


def test_doctor_says_what_is_wrong_with_a_client_that_was_installed(run: Run, user: Path) -> None:
    assert checks(run) == []  # none was
    run("install", "claude-code", "--yes", "--port", "9", code=0)
    (one,) = checks(run)
    assert one["state"] == "problem"
    assert "nothing answers on port 9" in one["what"]
    assert "reverie proxy" in one["do"]
    (user / ".claude" / "settings.json").write_text("{}")
    (one,) = checks(run)
    assert (one["state"], "no longer name" in one["what"]) == ("problem", True)


@pytest.fixture
def proxy() -> Iterator[tuple[int, dict[str, Any], list[str]]]:
    """Something on a port that answers what a test says."""
    told: dict[str, Any] = {}
    asked: list[str] = []

    async def status(request: Request) -> JSONResponse:
        asked.append(request.url.path)
        return JSONResponse(told)

    with serving(Starlette(routes=[Route("/{path:path}", status)])) as url:
        yield int(url.rsplit(":", 1)[1]), told, asked


def test_doctor_says_whether_requests_arrive(
    run: Run, home: Path, proxy: tuple[int, dict[str, Any], list[str]]
) -> None:
    port, told, asked = proxy
    run("install", "claude-code", "--yes", "--port", str(port), code=0)
    (one,) = checks(run)
    assert one["state"] == "note"
    assert "no request has arrived" in one["what"]
    assert asked == [f"/{known_token(home)}/status"]
    told["requests"] = {"changed": 3, "passed": 1}  # of other clients
    assert checks(run)[0]["state"] == "note"
    told["clients"] = {"claude-code": {"main": 3, "side": 1}}
    (one,) = checks(run)
    assert one["state"] == "ok"
    assert one["what"] == "claude-code: 4 requests have arrived at the proxy since it started"
    told["clients"] = ["nonsense"]
    assert checks(run)[0]["state"] == "note"
