"""The Agent tool: types, places to work, results, limits, and what stays of an agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from reverie.simulator import call
from reverie.transcript import ForkEnded
from reverie.world import Notice
from tests.rules.stage import push_rule

from .stage import agents, cast, git, opened, project_in, results, texts

pytestmark = [pytest.mark.spec("10.agents")]


async def test_a_foreground_agent_gives_its_result_and_no_more(tmp_path: Path) -> None:
    played, model = cast(
        [agents({"prompt": "task seek: find total"}), "It is in a.py."],
        seek=[[call("Read", {"file_path": "a.py"})], "total is in a.py:1"],
    )
    async with opened(tmp_path, model) as lead:
        result = await lead.turn("Where is total?")
        assert result.text == "It is in a.py."
        assert results(played.requests("lead")[1]) == ["total is in a.py:1"]
        sent = json.dumps(played.requests("lead")[1])
        assert "def total" not in sent  # what it read stays with it
        assert "def total" in json.dumps(played.requests("seek")[1])
        (member,) = lead.crew.members.values()
        assert (member.state, member.requests, member.mode) == ("completed", 2, "foreground")
        folder = lead.session.library.path / lead.session.id / "agents"
        assert sorted(p.suffix for p in folder.iterdir()) == [".json", ".jsonl"]
        await lead.session.flush()
        ended = [e.record for e in lead.session.view.entries if isinstance(e.record, ForkEnded)]
        assert [(one.source, one.requests, one.outcome) for one in ended] == [
            ("agent", 2, "completed")
        ]


async def test_calls_in_one_answer_run_at_the_same_time(tmp_path: Path) -> None:
    both = anyio.Event()
    waiting = 0

    async def meet() -> str:
        nonlocal waiting
        waiting += 1
        if waiting == 3:
            both.set()
        with anyio.fail_after(10):
            await both.wait()
        return "met"

    wanted = [{"prompt": f"task {name}: go"} for name in ("one", "two", "three")]
    played, model = cast([agents(*wanted), "Done."], one=[meet], two=[meet], three=[meet])
    async with opened(tmp_path, model) as lead:
        await lead.turn("Go")
    assert results(played.requests("lead")[1]) == ["met", "met", "met"]


async def test_explore_has_tools_that_read_and_no_others(tmp_path: Path) -> None:
    played, model = cast(
        [agents({"prompt": "task seek: go", "type": "explore"}), "Done."],
        seek=[[call("Write", {"file_path": "b.py", "content": "x"})], "could not"],
    )
    async with opened(tmp_path, model) as lead:
        await lead.turn("Go")
    names = [tool["name"] for tool in played.requests("seek")[0]["tools"]]
    assert names == ["Read", "Grep", "Glob", "List", "ReadBack", "SearchMemory", "SearchSessions"]
    assert "There is no tool named 'Write'" in results(played.requests("seek")[1])[0]
    assert not (tmp_path / "project/b.py").exists()


async def test_no_agent_has_agents_or_the_leads_own_tools(tmp_path: Path) -> None:
    played, model = cast([agents({"prompt": "task deep: go"}), "Done."], deep=["ok"])
    async with opened(tmp_path, model) as lead:
        await lead.turn("Go")
    names = {tool["name"] for tool in played.requests("deep")[0]["tools"]}
    assert names.isdisjoint({"Agent", "SendMessage", "Snip", "Remember", "Forget"})
    assert {"Read", "Edit", "Bash"} <= names


async def test_a_background_agents_result_joins_as_a_message(tmp_path: Path) -> None:
    free = anyio.Event()

    async def held() -> str:
        await free.wait()
        return "the tests pass"

    played, model = cast(
        [
            agents({"prompt": "task check: go", "mode": "background", "name": "checker"}),
            "Started.",
            "Thanks.",
        ],
        check=[held],
    )
    notices: list[Notice] = []
    async with opened(tmp_path, model, notices) as lead:
        await lead.turn("Go")
        assert [one.name for one in lead.at_work] == ["checker"] == list(lead.tasks)
        free.set()
        while lead.at_work:
            await anyio.lowlevel.checkpoint()
        await lead.turn("And?")
    assert "checker works in the background" in results(played.requests("lead")[1])[0]
    said = texts(played.requests("lead")[2])
    assert '<agent-message from="checker" type="result">\nthe tests pass\n' in said
    assert any("checker completed" in one.text for one in notices)


async def test_where_nobody_is_there_it_is_waited_for(tmp_path: Path) -> None:
    played, model = cast(
        [agents({"prompt": "task check: go", "mode": "background"}), "Done."], check=["fine"]
    )
    async with opened(tmp_path, model, interactive=False) as lead:
        await lead.turn("Go")
    assert results(played.requests("lead")[1]) == ["fine"]


async def test_messages_reach_an_agent_at_its_next_tool_round(tmp_path: Path) -> None:
    read, sent = anyio.Event(), anyio.Event()

    async def looks() -> Any:
        read.set()
        await sent.wait()
        return [call("List", {})]

    async def sends() -> Any:
        await read.wait()
        message = {"to": "worker", "message": "Leave the tests alone", "summary": "tests"}
        return [call("SendMessage", message)]

    async def ends() -> str:
        sent.set()
        return "Started."

    played, model = cast(
        [agents({"prompt": "task look: go", "mode": "background", "name": "worker"}), sends, ends],
        look=[looks, "understood"],
    )
    async with opened(tmp_path, model) as lead:
        await lead.turn("Go")
        while lead.at_work:
            await anyio.lowlevel.checkpoint()
    assert results(played.requests("lead")[2]) == ["Sent to worker (running)"]
    assert texts(played.requests("look")[1]) == (
        '<agent-message from="lead" type="message">\nLeave the tests alone\n</agent-message>'
    )


async def test_what_comes_at_the_end_begins_another_turn(tmp_path: Path) -> None:
    asked, sent = anyio.Event(), anyio.Event()

    async def answers() -> str:
        asked.set()
        await sent.wait()
        return "first answer"

    async def sends() -> Any:
        await asked.wait()
        return [call("SendMessage", {"to": "worker", "message": "One more thing"})]

    async def ends() -> str:
        sent.set()
        return "Sent."

    played, model = cast(
        [agents({"prompt": "task look: go", "mode": "background", "name": "worker"}), sends, ends],
        look=[answers, "second answer"],
    )
    async with opened(tmp_path, model) as lead:
        await lead.turn("Go")
        while lead.at_work:
            await anyio.lowlevel.checkpoint()
        assert lead.crew.members["worker"].result == "second answer"
    assert "One more thing" in texts(played.requests("look")[1])


async def test_a_worktree_that_was_not_changed_is_removed(tmp_path: Path) -> None:
    wanted = {"prompt": "task look: go", "worktree": True, "name": "looker"}
    played, model = cast([agents(wanted), "Done."], look=["nothing to do"])
    async with opened(tmp_path, model) as lead:
        await lead.turn("Go")
    assert "not changed, and is removed" in results(played.requests("lead")[1])[0]
    assert git(tmp_path / "project", "worktree", "list").count("\n") == 1
    assert "agent/looker" not in git(tmp_path / "project", "branch", "--list")


async def test_a_changed_worktree_is_kept_and_named(tmp_path: Path) -> None:
    wanted = {"prompt": "task fix: go", "worktree": True, "name": "fixer"}
    new = {"file_path": "b.py", "content": "x = 1\n"}
    out = {"file_path": str(tmp_path / "project/c.py"), "content": "x = 1\n"}
    played, model = cast(
        [agents(wanted), "Done."],
        fix=[[call("Write", new), call("Write", out)], "wrote b.py"],
    )
    project_in(tmp_path)
    async with opened(tmp_path, model, mode="deny") as lead:
        await lead.turn("Go")
    tree = tmp_path / "project/.reverie/worktrees/fixer"
    told = results(played.requests("lead")[1])[0]
    assert told.startswith("wrote b.py\n\nIts worktree is kept: ")
    assert f"{tree} (branch agent/fixer; not committed: b.py)" in told
    assert (tree / "b.py").read_text() == "x = 1\n"
    assert "was not permitted" in results(played.requests("fix")[1])[1]  # the lead's own files
    assert not (tmp_path / "project/b.py").exists()
    assert not (tmp_path / "project/c.py").exists()
    assert git(tmp_path / "project", "status", "--porcelain") == ""


async def test_an_agent_that_floods_is_bounded(tmp_path: Path) -> None:
    flood = [call("SendMessage", {"to": "lead", "message": f"news {n}"}) for n in range(130)]
    played, model = cast(
        [
            agents({"prompt": "task flood: go", "mode": "background", "name": "flooder"}),
            "Started.",
            "I see.",
        ],
        flood=[flood, "sent"],
    )
    async with opened(tmp_path, model) as lead:
        await lead.turn("Go")
        while lead.at_work:
            await anyio.lowlevel.checkpoint()
        told = results(played.requests("flood")[1])
        assert told.count("Sent to lead") == 100
        assert sum("100 messages of yours wait there already" in text for text in told) == 30
        assert lead.crew.inbox._letters[-1].text == "sent"  # its result is not turned away
        await lead.turn("And?")
        assert texts(played.requests("lead")[2]).count("<agent-message") == 20  # at once


async def test_a_broadcast_reaches_all_the_others(tmp_path: Path) -> None:
    free = anyio.Event()

    async def held() -> Any:
        await free.wait()
        return [call("List", {})]

    wanted = [
        {"prompt": f"task {name}: go", "mode": "background", "name": name}
        for name in ("one", "two")
    ]
    played, model = cast(
        [agents(*wanted), [call("SendMessage", {"to": "*", "message": "Stop"})], "Told."],
        one=[held, "one stops"],
        two=[held, "two stops"],
    )
    async with opened(tmp_path, model) as lead:
        await lead.turn("Go")
        free.set()
        while lead.at_work:
            await anyio.lowlevel.checkpoint()
    assert results(played.requests("lead")[2]) == ["Sent to one (running), two (running)"]
    for name in ("one", "two"):
        assert "Stop" in texts(played.requests(name)[1])


@pytest.mark.spec("B20.remind")
async def test_an_agents_call_is_held_against_the_users_rules(tmp_path: Path) -> None:
    played, model = cast(
        [agents({"prompt": "task ship: publish it"}), "Left."],
        ship=[[call("Bash", {"command": "git push origin main"})], "It is not pushed."],
    )
    async with opened(tmp_path, model) as lead:
        assert lead.memories is not None
        push_rule(lead.memories)
        await lead.turn("Publish it")
    (held,) = results(played.requests("ship")[1])
    assert "Never push to main: it deploys." in held
