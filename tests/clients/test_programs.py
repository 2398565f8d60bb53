"""Real clients, unmodified, through the proxy: rounds with tools, and what befalls a session."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reverie.simulator import call, cut
from tests.clients.line import Line, standing
from tests.clients.model import Planned, results
from tests.clients.programs import GPT, PROGRAMS, Desk, claude, codex
from tests.clients.shape import stored_path

pytestmark = [pytest.mark.spec("B15.clients"), pytest.mark.integration]

OPUS = "claude-opus-5-5"
SIZE = 14_000
FILES = [f"{name}.txt" for name in "abcdefgh"]


def reads(tool: str, argument: str, **more: Any) -> Any:
    return lambda file: call(tool, json.dumps({argument: f"cat {file}", **more}))


SHELLS = {
    "claude": reads("Bash", "command"),
    "codex": reads("exec_command", "cmd"),
    "opencode": reads("bash", "command", description="read"),
    "qwen": reads("run_shell_command", "command", is_background=False),
}


def plans(client: str) -> dict[str, list[Any]]:
    shell = SHELLS.get(client)
    if shell is None:
        return {"go": [], "more": [], "sub": []}
    a, b, c, d, e, f, g, h = map(shell, FILES)
    agent = call(
        "Agent",
        json.dumps(
            {"description": "look", "prompt": "[[sub]] look", "subagent_type": "general-purpose"}
        ),
    )
    return {
        "go": [[a], [b, c], [d]],
        "more": [[e], [f, g]],
        "sub": [[h]],
        "agents": [[agent, agent], [a]],
    }


@pytest.fixture
def line(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Line]:
    client = getattr(request, "param", "claude")
    with standing(plans(client), tmp_path / "reverie") as found:
        yield found


@pytest.fixture
def desk(tmp_path: Path, line: Line) -> Desk:
    found = Desk(tmp_path / "desk", line.url)
    for name in FILES:
        found.file(name, SIZE)
    return found


def plan(line: Line, name: str, *steps: Any) -> None:
    assert isinstance(line.engine.answerer, Planned)
    line.engine.answerer.plans[name] = list(steps)


def judged(line: Line, most: float = 1.02) -> None:
    line.clean()
    alone, through = line.costs()
    assert through <= most * alone, f"{through / alone:.3f} of the client alone"


# --- every client


@pytest.mark.parametrize("line", ["codex", "opencode", "qwen"], indirect=True)
def test_a_client_with_tools_goes_on_as_before(
    line: Line, desk: Desk, request: pytest.FixtureRequest
) -> None:
    client = request.node.callspec.params["line"]
    assert "That is done (go)." in PROGRAMS[client](desk, "[[go]] read the files")
    assert len(line.client_side) >= 4
    judged(line)


@pytest.mark.parametrize("version", ["", "2.1.197"])
@pytest.mark.parametrize("model", [OPUS, "claude-sonnet-4-5"])
def test_claude_code_goes_on_as_before_and_costs_less(
    line: Line, desk: Desk, version: str, model: str
) -> None:
    assert "done (go)" in claude(desk, "[[go]] read the files", version=version, model=model)
    more = claude(desk, "[[more]] and these", "--continue", version=version, model=model)
    assert "done (more)" in more
    assert len(line.client_side) >= 7
    judged(line, 0.95)


@pytest.mark.parametrize("line", ["aider", "llm"], indirect=True)
def test_a_client_without_tools_is_never_dearer(
    line: Line, desk: Desk, request: pytest.FixtureRequest
) -> None:
    client = request.node.callspec.params["line"]
    more = ("a.txt", "--restore-chat-history") if client == "aider" else ()
    assert "done (go)" in PROGRAMS[client](desk, "[[go]] tell me", *more)
    again = more if client == "aider" else ("-c",)
    assert "done (more)" in PROGRAMS[client](desk, "[[more]] and then", *again)
    judged(line)


# --- what befalls a session of Claude Code


def test_sub_agents_side_by_side(line: Line, desk: Desk) -> None:
    claude(desk, "[[agents]] look around", model=OPUS)
    agents = {one.headers.get("x-claude-code-agent-id") for one in line.client_side}
    assert len(agents) >= 3
    judged(line)


def test_a_fork_and_the_session_it_came_from(line: Line, desk: Desk) -> None:
    claude(desk, "[[go]] read the files")
    claude(desk, "[[more]] in the fork", "--continue", "--fork-session")
    first = line.client_side[0].headers["x-claude-code-session-id"]
    claude(desk, "[[more]] in the old one", "--resume", first)
    assert len({one.session for one in line.client_side}) == 2
    judged(line)


def test_twins_with_the_same_words(line: Line, desk: Desk) -> None:
    for _ in range(2):
        claude(desk, "[[go]] read the files")
    judged(line)


def test_a_cut_stream_is_asked_for_again(line: Line, desk: Desk) -> None:
    line.engine.faults = type(line.engine.faults)(lambda n, _: cut(600) if n == 2 else None)
    claude(desk, "[[go]] read the files")
    assert [entry.fault for entry in line.engine.log].count("cut") == 1
    assert len(line.client_side) == 5
    judged(line)


def test_another_version_and_another_model_in_one_session(line: Line, desk: Desk) -> None:
    claude(desk, "[[go]] read the files", version="2.1.197")
    claude(desk, "[[more]] and these", "--continue")
    claude(desk, "[[go]] once more", "--continue", model=OPUS)
    judged(line)


def test_the_clients_own_compaction(line: Line, desk: Desk) -> None:
    claude(desk, "[[go]] read the files", model=OPUS)
    claude(desk, "/compact", "--continue", model=OPUS)
    claude(desk, "[[more]] and these", "--continue", model=OPUS)
    assert any("summary" in json.dumps(one.body["messages"][-1]) for one in line.client_side)
    judged(line)


def test_the_proxy_is_started_anew_in_the_middle(line: Line, desk: Desk) -> None:
    claude(desk, "[[go]] read the files")
    line.restart()
    claude(desk, "[[more]] and these", "--continue")
    line.restart(signal.SIGKILL)
    claude(desk, "[[go]] once more", "--continue")
    judged(line)


def test_the_proxy_joins_in_the_middle(line: Line, desk: Desk) -> None:
    assert line.proxy is not None
    through = line.recorder.upstream
    line.recorder.upstream = line.proxy.upstream
    claude(desk, "[[go]] read the files")
    line.recorder.upstream = through
    claude(desk, "[[more]] and these", "--continue")
    judged(line)


def test_killed_in_a_tool_and_gone_on_with(line: Line, desk: Desk) -> None:
    plan(line, "slow", [call("Bash", '{"command":"cat a.txt; sleep 100"}')])
    desk.seconds = 6
    with pytest.raises(subprocess.TimeoutExpired):
        claude(desk, "[[slow]] read the files")
    desk.seconds = 120
    claude(desk, "[[more]] rather these", "--continue")
    judged(line)


# --- stored results, memory


def test_a_stored_result_is_read_by_the_client_with_the_installed_rule(
    line: Line, desk: Desk, tmp_path: Path
) -> None:
    """Not with all permissions: with what `reverie install` wrote."""

    def reads_it(body: Any) -> Any:
        found = next((p for text in results(body) if (p := stored_path(text))), "")
        assert found, "nothing was stored"
        paths.append(found)
        return [call("Read", json.dumps({"file_path": found}))]

    paths: list[str] = []
    plan(line, "back", [call("Bash", '{"command":"cat a.txt"}')], reads_it)
    desk.environ["REVERIE_HOME"] = str(tmp_path / "reverie")
    desk.run(sys.executable, "-m", "reverie.apps.cli", "install", "claude-code", "--yes")
    settings = desk.home / ".claude" / "settings.json"
    held = json.loads(settings.read_text())
    held["env"]["ANTHROPIC_BASE_URL"] = line.url
    held["permissions"]["allow"].append("Bash(cat:*)")
    settings.write_text(json.dumps(held))
    desk.run(
        "claude", "-p", "[[back]] read it", "--model", "claude-sonnet-4-5",
        ANTHROPIC_API_KEY="sk-ant-fake-0000", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        DISABLE_AUTOUPDATER="1", IS_SANDBOX="1",
    )  # fmt: skip
    whole = (desk.repo / "a.txt").read_text()
    last = json.dumps(line.client_side[-1].body["messages"][-1])
    assert whole.splitlines()[-1] in last, last[:2000]
    assert whole.splitlines()[len(whole.splitlines()) // 2] in last
    judged(line, 2.0)


def test_a_fact_told_to_claude_code_is_known_to_codex_the_next_day(
    line: Line, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVERIE_FLAG_EXTRACT_NONINTERACTIVE", "1")
    line.restart()
    fact = "Please remember: we always deploy with the script ops/ship-nightly.sh."
    claude(desk, f"{fact} [[rest]]")
    line.restart()
    plan(line, "ask")
    codex(desk, "[[ask]] how do we deploy this project?")
    last = [one for one in line.upstream_side if one.body.get("model") == GPT][-1]
    assert "ship-nightly.sh" in json.dumps(last.body)
    assert "ship-nightly.sh" not in json.dumps(
        [one.body for one in line.client_side if one.body.get("model") == GPT]
    )
