"""What the proxy leaves alone: requests of our own background work, sessions with nobody there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from reverie import Memory
from reverie.apps.cli import build
from reverie.providers.cli_programs import HEADER
from tests.proxy.clients import BIG, assistant, gave, use, user
from tests.proxy.proxied import PATHS, READ, Through, standing

pytestmark = pytest.mark.spec("B23")
CUE = "Please remember: we always deploy with the script ops/ship-nightly.sh."
CLAUDE = "claude-cli/2.1.325 (external, {})"
ALONE = [
    CLAUDE.format("sdk-cli"),
    CLAUDE.format("sdk-ts"),
    "codex_exec/0.169.0 (Debian 12; x86_64)",
]
ATTENDED = [CLAUDE.format("cli"), "codex_cli_rs/0.169.0 (Debian 12; x86_64)"]


def talk() -> dict[str, Any]:
    """A request with a result that is large enough to be stored, and a wish of the user's."""
    said = [user(CUE), assistant("I see."), user("Read it"), assistant(use("c1"))]
    said.append(user(gave("c1", BIG)))
    return {"model": "claude-opus-5-5", "max_tokens": 99, "tools": [READ], "messages": said}


def ask(proxy: Through, folder: Path, **headers: str) -> str:
    given = {"x-reverie-project": str(folder), "session-id": "s1", **headers}
    found = proxy.post(PATHS["messages"], talk(), given)
    assert found.status_code == 200
    return found.headers["x-reverie"]


def kept(home: Path, folder: Path) -> list[str]:
    with Memory(folder, home=home) as memory:
        return [one.text for one in memory.list()]


@pytest.mark.parametrize("inside", [True, False])
def test_a_request_of_our_own_work_passes_as_it_is(
    home: Path, tmp_path: Path, inside: bool
) -> None:
    folder = tmp_path / "p"
    folder.mkdir()
    with standing(home) as (upstream, proxy):
        told = ask(proxy, folder, **({HEADER: "extract"} if inside else {}))
        sent = json.dumps(upstream.requests[0].messages)
    assert (told == "off") is inside
    assert (sent == json.dumps(talk()["messages"])) is inside
    assert (list(home.glob("projects/**/*.jsonl")) == []) is inside
    assert (kept(home, folder) == []) is inside


@pytest.mark.parametrize("switched", [False, True])
@pytest.mark.parametrize("agent", [*ALONE, *ATTENDED])
def test_a_session_with_nobody_there_teaches_only_where_that_is_wanted(
    home: Path, tmp_path: Path, agent: str, switched: bool
) -> None:
    folder = tmp_path / "p"
    folder.mkdir()
    if switched:
        done = CliRunner().invoke(build(), ["flags", "set", "extract_noninteractive", "on"])
        assert done.exit_code == 0, done.output
    with standing(home) as (_, proxy):
        assert ask(proxy, folder, **{"user-agent": agent}).startswith("stored=1 ")
    assert bool(kept(home, folder)) is (switched or agent in ATTENDED)
