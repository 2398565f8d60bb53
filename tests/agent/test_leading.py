"""What a lead is told of its agents, what they keep in memory, and what resuming says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from click.testing import CliRunner

from reverie.agent import AgentOptions, open_agent
from reverie.apps.cli import build
from reverie.errors import InvalidInput
from reverie.session import SessionDisk
from reverie.simulator import call
from reverie.store import BadLine
from reverie.testing import ScriptedModel
from reverie.transcript import Extracted, Recalled, decode
from reverie.world import Notice
from tests.loop.stage import simulated
from tests.session.compacts import a_summary

from .stage import agents, cast, environ_in, opened, project_in, results, texts

pytestmark = [pytest.mark.spec("10.leading")]
HEAD = 3_000
"""Bytes that agents add to the head of a session that has them."""
KEEPER = """\
---
name: keeper
description: Keeps what it learns
tools: Read, Write
memory: {scope}
---
You keep notes.
"""


def keeper(tmp: Path, scope: str) -> Path:
    """A type with a memory, from the user's own files."""
    folder = tmp / "home/agents"
    folder.mkdir(parents=True)
    (folder / "keeper.md").write_text(KEEPER.format(scope=scope))
    places = {
        "user": tmp / "home/agent-memory/keeper",
        "project": tmp / "project/.reverie/agent-memory/keeper",
        "local": tmp / "project/.reverie/agent-memory-local/keeper",
    }
    return places[scope]


def described(head: Any) -> int:
    return len(head.system.encode()) + len(head.tools.encode())


async def test_what_agents_add_to_the_head(tmp_path: Path) -> None:
    sizes: list[int] = []
    for offered in (False, True):
        async with opened(tmp_path, simulated("ok"), agents=offered) as lead:
            head = lead.session.view.head
            sizes.append(described(head))
            names = [tool["name"] for tool in json.loads(head.tools)]
            assert names[-2:] == ["Agent", "SendMessage"] if offered else "Agent" not in names
    assert 0 < sizes[1] - sizes[0] <= HEAD


@pytest.mark.parametrize("scope", ["user", "project", "local"])
async def test_an_agents_own_writes_go_to_its_scope(tmp_path: Path, scope: str) -> None:
    folder = keeper(tmp_path, scope)
    project_in(tmp_path)
    note = {"file_path": str(folder / "naming.md"), "content": "Totals are called sums here.\n"}
    mine = str(tmp_path / "home/agent-memory/other/x.md")
    other = {"file_path": mine, "content": "not mine"}
    index = {
        "file_path": str(folder / "MEMORY.md"),
        "content": "- [Naming](naming.md) — totals are sums\n",
    }
    played, model = cast(
        [
            agents({"prompt": "task keep", "type": "keeper"}),
            "Done.",
            agents({"prompt": "task again", "type": "keeper"}),
            "Done.",
        ],
        keep=[[call("Write", note), call("Write", index), call("Write", other)], "kept"],
        again=["I know"],
    )
    async with opened(tmp_path, model, mode="deny") as lead:
        await lead.turn("Go")
        await lead.turn("Again")
        entries = [entry.record for entry in lead.session.view.entries]
        assert not any(isinstance(record, Extracted) for record in entries)
    told = results(played.requests("keep")[1])
    assert "not permitted" not in told[0] + told[1]
    assert "not permitted" in told[2]
    assert (folder / "naming.md").read_text() == "Totals are called sums here.\n"
    system = json.dumps(played.requests("keep")[0]["system"])
    assert "You keep notes." in system
    assert str(folder) in system
    assert "totals are sums" not in system
    assert "totals are sums" in json.dumps(played.requests("again")[0]["system"])
    assert "keeper" not in json.dumps(played.requests("lead")[0]["system"])


@pytest.mark.parametrize("scope", ["user", "project", "local"])
async def test_a_chat_as_an_agent_has_its_prompt_tools_and_memory(
    tmp_path: Path, scope: str
) -> None:
    folder = keeper(tmp_path, scope)
    project_in(tmp_path)
    note = {"file_path": str(folder / "a.md"), "content": "A thing to know.\n"}
    played, model = cast([[call("Write", note)], "Kept."])
    environ = {"HOME": str(tmp_path)}  # with extraction and recall as they are by default
    async with opened(
        tmp_path, model, mode="deny", agents=False, agent="keeper", environ=environ
    ) as agent:
        await agent.turn("Keep that in mind")
        assert agent.memories is None
        records = [entry.record for entry in agent.session.view.entries]
        assert not any(isinstance(record, (Extracted, Recalled)) for record in records)
    (first, second) = played.requests("lead")
    assert [tool["name"] for tool in first["tools"]] == ["Read", "Write", "Snip"]
    assert "You keep notes." in json.dumps(first["system"])
    assert str(folder) in json.dumps(first["system"])
    assert "not permitted" not in results(second)[0]
    assert (folder / "a.md").exists()


async def test_a_chat_as_nobody_is_refused(tmp_path: Path) -> None:
    project_in(tmp_path)
    options = AgentOptions(
        tmp_path / "project", home=tmp_path / "home", environ=environ_in(tmp_path), agent="wizard"
    )
    with pytest.raises(InvalidInput, match="no such type of agent"):
        async with open_agent(options, ScriptedModel(["never"])):
            pass


async def test_types_are_listed_once(tmp_path: Path) -> None:
    keeper(tmp_path, "user")
    played, model = cast(["One.", "Two."])
    async with opened(tmp_path, model) as lead:
        await lead.turn("a")
        await lead.turn("b")
    sent = json.dumps(played.requests("lead")[1])
    assert sent.count("Types of agents beside general and explore") == 1
    assert sent.count("- keeper: Keeps what it learns") == 1


async def test_agents_and_their_types_come_back_behind_a_compaction(tmp_path: Path) -> None:
    keeper(tmp_path, "user")
    hold = anyio.Event()

    async def held() -> str:
        await hold.wait()
        return "done"

    wanted = {"prompt": "task hold", "mode": "background", "name": "holder"}
    played, model = cast([agents(wanted), "Started.", a_summary(), "On."], hold=[held])
    classic = {**environ_in(tmp_path), "REVERIE_CONTEXT_POLICY": "classic"}
    async with opened(tmp_path, model, environ=classic) as lead:
        await lead.turn("x" * 40_000)
        await lead.session.summarize()
        await lead.turn("Go on")
        hold.set()
    said = json.dumps(played.requests("lead")[-1]["messages"])
    assert "holder [general, background] a task \\u00b7 running" in said
    assert "- keeper: Keeps what it learns" in said
    assert said.count("Agents of this session:") == 1


async def test_a_resumed_session_says_what_became_of_each(tmp_path: Path) -> None:
    played, model = cast([agents({"prompt": "task one", "name": "one"}), "Done."], one=["fine"])
    async with opened(tmp_path, model) as lead:
        await lead.turn("Go")
        session, library = lead.session.id, lead.session.library.path
        (kept,) = (library / session / "agents").glob("*.json")
    value = json.loads(kept.read_text())
    assert value["state"] == "completed"
    other = {**value, "id": "x", "name": "two", "state": "running"}  # as a kill -9 leaves it
    (kept.parent / "x.json").write_text(json.dumps(other))
    (kept.parent / "torn.json").write_text('{"id":')
    (kept.parent / "list.json").write_text("[1]")
    played, model = cast(["I see.", "Still."])
    notices: list[Notice] = []
    async with opened(tmp_path, model, notices, resume=session) as lead:
        states = {one.name: one.state for one in lead.crew.members.values()}
        assert states == {"one": "completed", "two": "lost"}
        await lead.turn("And?")
        await lead.turn("And now?")
    assert "two is lost" in "\n".join(one.text for one in notices)
    first, second = played.requests("lead")
    assert texts(first).count("This agent is lost") == 1
    assert json.dumps(second).count("This agent is lost") == 1
    notices.clear()
    async with opened(tmp_path, simulated("ok"), notices, resume=session):
        assert not notices


async def test_an_agents_transcript_is_whole_and_collapsed_like_any_other(tmp_path: Path) -> None:
    project = project_in(tmp_path)
    for n in range(6):
        (project / f"big{n}.txt").write_text(f"line of file {n}\n" * 2_500)
    reads = [[call("Read", {"file_path": f"big{n}.txt"})] for n in range(6)]
    played, model = cast(
        [agents({"prompt": "task read", "name": "reader"}), "Done."], read=[*reads, "read"]
    )
    async with opened(tmp_path, model) as lead:
        await lead.turn("Go")
        member = lead.crew.members["reader"]
        library, session = lead.session.library, lead.session.id
        lines = list(library.agent_lines(session, member.id))
        load = SessionDisk(library.folder, session).get_blob
        entries = [decode(one.text, load) for one in lines if not isinstance(one, BadLine)]
    kinds = [type(entry.record).__name__ for entry in entries]
    assert kinds[:2] == ["Started", "HeadSet"]
    assert kinds.count("AssistantMessage") == 7
    assert "Replaced" in kinds or "ResultDecided" in kinds
    sizes = [len(json.dumps(body)) for body in played.requests("read")]
    assert max(sizes) < 6 * 2_500 * 16
    assert "line of file" not in json.dumps(played.requests("lead")[-1])


async def test_agents_of_a_private_session_leave_nothing(tmp_path: Path) -> None:
    project_in(tmp_path)
    wanted = {"prompt": "task look", "mode": "background", "name": "looker"}
    played, model = cast([agents(wanted), "Started.", "I see."], look=["nothing kept"])
    async with opened(tmp_path, model, private=True) as lead:
        await lead.turn("Go")
        with anyio.fail_after(10):
            while lead.at_work:
                await anyio.lowlevel.checkpoint()
        await lead.turn("And?")
    assert "nothing kept" in texts(played.requests("lead")[2])
    home = tmp_path / "home"
    kept = [path for path in home.rglob("*") if path.is_file()] if home.exists() else []
    assert not any(b"nothing kept" in path.read_bytes() for path in kept)
    assert not any(path.suffix in (".jsonl", ".sock") for path in kept)


async def test_words_that_are_forgotten_go_from_what_agents_left(tmp_path: Path) -> None:
    played, model = cast(
        [agents({"prompt": "task look for Zanzibar", "description": "Find Zanzibar"}), "Done."],
        look=["Zanzibar is in a.py"],
    )
    async with opened(tmp_path, model) as lead:
        await lead.turn("Go")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**environ_in(tmp_path), "REVERIE_HOME": str(tmp_path / "home")}.items():
            patch.setenv(name, value)
        patch.chdir(tmp_path / "project")
        done = CliRunner().invoke(build(), ["memory", "forget", "Zanzibar", "--yes"])
        assert done.exit_code == 0, done.output
    left = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert not any(b"Zanzibar" in path.read_bytes() for path in left)
    assert len(played.asked) == 3
