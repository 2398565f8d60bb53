"""An agent with long-term memory: told of it once, saving with its normal tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reverie.agent import AgentOptions, open_agent
from reverie.embedded import EmbeddedModel
from reverie.testing import ManualClock, ScriptedModel, call, reply

pytestmark = pytest.mark.spec("7.agent")
MEMORY = """---
name: deploy window
description: when deploys are allowed
type: project
---
Deploys only on Tuesdays.
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "CLAUDE.md").write_text("Use tabs in this project.\n")
    return folder


def wanted(home: Path, project: Path, **parts: Any) -> AgentOptions:
    return AgentOptions(project, home=home, environ={"HOME": str(home.parent)}, mode="ask", **parts)


async def turn(home: Path, project: Path, model: ScriptedModel, **parts: Any) -> str:
    """One turn; the memory folder it had, or nothing."""
    made = wanted(home, project, **parts)
    async with open_agent(made, model, clock=ManualClock()) as agent:
        await agent.turn("go on")
        return str(agent.memories.folder.root) if agent.memories else ""


def save(folder: str, name: str, text: str) -> ScriptedModel:
    path = f"{folder}/{name}"
    return ScriptedModel([reply(call("Write", "w1", file_path=path, content=text)), "Saved."])


def results(model: ScriptedModel) -> list[dict[str, Any]]:
    last = [request for request in model.requests if request.source == "main"][-1]
    return json.loads(last.body())["messages"][-1]["content"]


async def test_the_head_tells_of_memory_and_instructions(home: Path, project: Path):
    model = ScriptedModel(["hello"])
    folder = await turn(home, project, model)
    body = json.loads(model.requests[0].body())
    assert folder in body["system"][0]["text"]
    first = body["messages"][0]["content"][0]["text"]
    assert "Use tabs in this project." in first
    assert "Working folder" in first


async def test_a_memory_saved_with_write_needs_no_permission_and_has_a_history(home, project):
    folder = await turn(home, project, ScriptedModel(["hello"]))
    model = save(folder, "deploy.md", MEMORY)
    await turn(home, project, model)
    assert not results(model)[0].get("is_error")
    assert (Path(folder) / "deploy.md").read_text() == MEMORY
    async with open_agent(wanted(home, project), model, clock=ManualClock()) as agent:
        assert agent.memories is not None
        (version,) = agent.memories.history.log("deploy.md")
        assert (version.origin.agent, version.origin.tool) == ("main", "Write")
    assert not list(project.rglob("deploy.md"))


async def test_the_index_is_sent_to_the_next_session(home: Path, project: Path):
    folder = await turn(home, project, ScriptedModel(["hello"]))
    await turn(home, project, save(folder, "MEMORY.md", "- [Deploy](deploy.md) — only Tuesdays\n"))
    model = ScriptedModel(["hello"])
    await turn(home, project, model)
    first = json.loads(model.requests[0].body())["messages"][0]["content"][0]["text"]
    assert "only Tuesdays" in first


async def test_the_index_limits_of_the_settings_hold(home: Path, project: Path):
    folder = await turn(home, project, ScriptedModel(["hello"]))
    lines = "".join(f"- [Topic {n}](topic_{n}.md) — hook {n}\n" for n in range(40))
    (Path(folder) / "MEMORY.md").write_text(lines)
    (home / "settings.json").write_text('{"indexLines": 10}')
    model = ScriptedModel(["hello"])
    await turn(home, project, model)
    first = json.loads(model.requests[0].body())["messages"][0]["content"][0]["text"]
    assert 0 < first.count("](topic_") <= 10
    assert "not shown" in first


async def test_a_secret_is_refused_and_nothing_is_written(home: Path, project: Path):
    folder = await turn(home, project, ScriptedModel(["hello"]))
    key = "ghp_" + "aB3dE6gH9j" * 3 + "kLmN2p"
    model = save(folder, "token.md", MEMORY + f"\nThe token is {key}.\n")
    await turn(home, project, model)
    (result, *_) = results(model)
    assert result["is_error"]
    assert key not in json.dumps(result)
    assert not (Path(folder) / "token.md").exists()


@pytest.mark.parametrize("parts", [{"private": True}, {"bare": True}])
async def test_no_memory_where_it_is_off(home: Path, project: Path, parts: dict[str, Any]):
    model = ScriptedModel(["hello"])
    assert await turn(home, project, model, **parts) == ""
    assert "MEMORY.md" not in json.loads(model.requests[0].body())["system"][0]["text"]


async def test_remember_and_forget_act_at_once_without_a_model(home: Path, project: Path):
    """The embedded model hears the request; the tools act, with nobody asked."""
    model = EmbeddedModel()
    async with open_agent(wanted(home, project), model, clock=ManualClock()) as agent:
        assert agent.memories is not None
        await agent.turn("Remember that deploys happen on Tuesdays, and never on Fridays.")
        (key,) = agent.memories.folder.keys()
        assert "never on Fridays" in agent.memories.folder.read(key).text
        assert key in (Path(agent.memories.folder.root) / "MEMORY.md").read_text()
        await agent.turn(f"forget {key}")
        assert agent.memories.folder.keys() == ()
        assert key not in (Path(agent.memories.folder.root) / "MEMORY.md").read_text()
        assert [v.origin.tool for v in agent.memories.history.log(key)] == ["Remember", "Forget"]


@pytest.mark.parametrize(
    "text", ["do you remember the tests?", "Remember when we read a.py?", "I forget things", "记住"]
)
async def test_what_is_no_request_saves_nothing(home: Path, project: Path, text: str):
    async with open_agent(wanted(home, project), EmbeddedModel(), clock=ManualClock()) as agent:
        assert agent.memories is not None
        await agent.turn(text)
        assert agent.memories.folder.keys() == ()
