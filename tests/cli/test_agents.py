"""Agents at the terminal: their lines, /tasks, lists of sessions, and a chat as one of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from reverie.agent import AgentOptions
from reverie.apps.cli import PATIENCE, AnswerScreen, ChatController
from reverie.simulator import call
from reverie.testing import provider
from tests.agent.stage import agents, cast, environ_in, project_in
from tests.cli.conftest import Run
from tests.cli.test_screens import on_terminal
from tests.cli.typed import Typed

pytestmark = pytest.mark.spec("10.terminal")


def test_each_agent_is_told_of_when_it_does_something_new(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, tty = on_terminal(monkeypatch)
    screen.idle(PATIENCE, ["seeker: Reading a.py · 10 tokens", "editor: Editing b.py · 20 tokens"])
    first = tty.getvalue()
    assert first.splitlines() == [
        "agent seeker: Reading a.py",
        "agent editor: Editing b.py",
        "waiting for the model",
    ]
    screen.idle(PATIENCE, ["seeker: Reading a.py · 15 tokens", "editor: Editing b.py · 25 tokens"])
    assert tty.getvalue() == first  # the same is not said again
    screen.idle(PATIENCE, ["editor: Running make test · 30 tokens"])
    assert tty.getvalue()[len(first) :] == "agent editor: Running make test\n"


def test_a_line_of_an_agent_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, tty = on_terminal(monkeypatch)
    screen.idle(PATIENCE, ["x" * 500])
    assert len(tty.getvalue().replace("\n", "")) < 200


def test_tasks_lists_agents_and_ends_one(tmp_path: Path) -> None:
    async def never() -> Any:
        await anyio.sleep_forever()

    project_in(tmp_path)
    _, model = cast(
        [
            agents(
                {"prompt": "task held", "mode": "background", "name": "holder"},
                {"prompt": "task quick", "name": "quick"},
            ),
            "Started.",
        ],
        held=[never],
        quick=["done"],
    )
    wanted = AgentOptions(
        tmp_path / "project", home=tmp_path / "home", environ=environ_in(tmp_path), agents=True
    )
    with ChatController(AnswerScreen()).open(wanted, model) as desk:
        chat = Typed(desk)
        desk.turn("Go")
        listed = chat.types("/tasks")
        assert "holder [general, background] a task · running" in listed
        assert "quick [general, foreground] a task · completed" in listed
        assert "1 task in the background" in listed
        assert chat.types("/tasks kill holder") == "Ended holder"
        assert "holder [general, background] a task · cancelled (it was killed)" in chat.types(
            "/tasks"
        )


def test_a_pipe_with_agents_and_what_lists_say_of_them(
    run: Run, process: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "a.txt").write_text("x\n")
    played, _ = cast(
        [agents({"prompt": "task seek", "type": "explore", "name": "seeker"}), "One file."],
        seek=[[call("List", {})], "a.txt"],
    )
    for flag in ("SESSION_MEMORY", "EXTRACT_MEMORIES", "DREAM"):
        monkeypatch.setenv(f"REVERIE_FLAG_{flag}", "0")
    with provider(played) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.anthropic_url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "x")
        done = process("chat", "-p", "Which files?", "--model", "claude-opus-5-5")
    assert (done.code, done.out) == (0, "One file.\n")
    (row,) = run("sessions", "list", "--json").json()["sessions"]
    (member,) = row["agents"]
    assert (member["name"], member["type"], member["state"]) == ("seeker", "explore", "completed")
    shown = run("sessions", "show", row["id"]).out
    assert "agent seeker [explore, foreground] a task · completed" in shown
    header, _, line = run("sessions", "list").out.partition("\n")
    assert "agents" in header
    assert " 1 " in line


def test_a_chat_as_an_agent_of_a_type(
    process: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "agents").mkdir(parents=True)
    (home / "agents/keeper.md").write_text(
        "---\nname: keeper\ntools: Read, Write\nmemory: user\n---\nYou keep notes.\n"
    )
    played, _ = cast(["Noted."])
    with provider(played) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.anthropic_url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "x")
        words = ("chat", "-p", "Hello", "--model", "claude-opus-5-5", "--agent", "keeper")
        assert process(*words).out == "Noted.\n"
    body = played.requests("lead")[0]
    assert "You keep notes." in json.dumps(body["system"])
    assert str(home / "agent-memory/keeper") in json.dumps(body["system"])
    assert [tool["name"] for tool in body["tools"]] == ["Read", "Write", "Snip"]
