"""A fork sends its parent's bytes, is verified, cannot fork again, and is counted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from reverie.errors import BudgetExceeded, ForkRefused, Incomplete, ProviderError, Refused
from reverie.session import PLACEHOLDER, Session
from reverie.settings import DEFAULTS
from reverie.store import BadLine, Journal
from reverie.testing import ScriptedModel, call, reply
from reverie.toolbox import DENIED
from reverie.transcript import ForkEnded, Started, Task, Usage, decode, fold_entries
from reverie.wire import Request, render, so_far, tool_result, user
from reverie.world import ForkSpec

from .doors import LARGE, opened

pytestmark = [pytest.mark.spec("10.fork"), pytest.mark.spec("14")]
NOTES = ForkSpec("session_memory", "Write the notes.", Task("notes"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def last(s: Session) -> Request:
    assert s.last_request is not None
    return s.last_request


def last_content(request: Request) -> list[dict[str, Any]]:
    return json.loads(request.body())["messages"][-1]["content"]


async def a_turn(s: Session) -> None:
    await s.add(user("look"))
    await s.prepare()
    await s.observe(reply("Looking.", call("Bash", "t1", command="cat log")))
    await s.add(tool_result("t1", LARGE))
    await s.prepare()


async def test_all_children_share_their_parents_prefix(home: Path, project: Path):
    model = ScriptedModel(["one", "two"])
    async with opened(home, project, model=model) as s:
        await a_turn(s)
        await s.observe(reply("More.", call("Bash", "t2"), call("Read", "t3")))
        parent = so_far(s.view)
        for _ in range(2):
            await s.run_fork(NOTES)
        one, two = model.requests
    assert one.extends(parent)
    blocks = last_content(one)
    assert [b.get("content") for b in blocks[:2]] == [PLACEHOLDER, PLACEHOLDER]
    assert blocks[-1]["text"] == "Write the notes."
    assert one.body() == two.body()
    assert one.marks == last(s).marks
    assert one.difference(last(s)) is None
    assert one.task == Task("notes")
    assert one.source == "session_memory"


async def test_a_fork_at_a_turns_end_extends_the_whole_conversation(home: Path, project: Path):
    model = ScriptedModel(["noted"])
    async with opened(home, project, model=model) as s:
        await a_turn(s)
        await s.observe(reply("Done."))
        await s.run_fork(NOTES)
        assert model.requests[0].extends(render(s.view))
        await s.flush()
        ended = s.view.entries[len(s.view.entries) - 1].record
        assert isinstance(ended, ForkEnded)
        assert (ended.outcome, ended.requests) == ("completed", 1)
        assert ended.usage.total > 0


async def test_a_forks_transcript_folds_by_itself_on_its_parents(home: Path, project: Path):
    model = ScriptedModel([reply(call("Read", "f1")), "noted"])
    async with opened(home, project, model=model) as s:
        await a_turn(s)
        await s.observe(reply("Done."))
        parent = s.view
        result = await s.run_fork(replace(NOTES, rounds=3))
        assert (result.text, result.rounds) == ("noted", 2)
        (file,) = (s.library.folder.root / s.id / "agents").iterdir()
        log = Journal.open(s.library.folder, f"{s.id}/agents/{file.name}", write=False)
        entries = [decode(x.text) for x in log.read() if not isinstance(x, BadLine)]
        started = entries[0].record
        assert isinstance(started, Started)
        assert started.forked_at == parent.leaf
        base = replace(parent, sent=None, moved=(), leaf="", journal_leaf="")
        base = replace(base, entries=type(parent.entries)())
        child = fold_entries(entries, replace(base, sent_items=len(base.items)))
        assert (
            render(child)
            .body(marked=False)
            .startswith(model.requests[1].body(marked=False)[: -len("]}")])
        )
        assert s.library.sessions()[0].id == s.id  # agents are not counted as sessions
        assert len(s.library.sessions()) == 1


async def test_later_rounds_mark_their_last_block(home: Path, project: Path):
    model = ScriptedModel([reply(call("Read", "f1")), "noted"])
    async with opened(home, project, model=model) as s:
        await a_turn(s)
        await s.observe(reply("Done."))
        await s.run_fork(replace(NOTES, rounds=2))
        first, second = model.requests
        fork_point = last(s).marks[-1]
        assert first.marks[-1] == fork_point
        assert second.marks[-1].block == second.blocks - 1
        assert fork_point in second.marks


async def test_tools_are_denied_at_call_time_with_unchanged_definitions(home, project):
    model = ScriptedModel([reply(call("Bash", "f1", command="rm -rf /")), "noted"])
    async with opened(home, project, model=model) as s:
        await a_turn(s)
        await s.observe(reply("Done."))
        await s.run_fork(replace(NOTES, rounds=2))
        assert model.requests[1].head.tools == last(s).head.tools
        result = last_content(model.requests[1])[0]
        assert (result["content"], result["is_error"]) == (DENIED, True)


async def test_rounds_are_bounded(home: Path, project: Path):
    endless = ScriptedModel(lambda r: reply(call("Read", f"f{len(endless.requests)}")))
    async with opened(home, project, model=endless) as s:
        await a_turn(s)
        await s.observe(reply("Done."))
        with pytest.raises(Incomplete):  # it has no tools, and never said what it was asked for
            await s.run_fork(replace(NOTES, rounds=4))
        assert len(endless.requests) == 4


async def test_a_fork_cannot_fork(home: Path, project: Path):
    async with opened(home, project) as s:
        await a_turn(s)
        await s.observe(reply("Done."))
        child = await s.open_fork("notes")
        assert child.world.fork is None
        s.view = child.view
        with pytest.raises(ForkRefused, match="cannot fork"):
            await s.open_fork("again")
        child.close()


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("model", {"model": "m9"}),
        ("options", {"options": '{"max_tokens":7}'}),
        ("tools", {"tools": "[]"}),
        ("system", {"system": "[]"}),
        ("messages", {}),
    ],
)
async def test_a_fork_that_would_leave_the_prefix_is_refused(home, project, part, change):
    model = ScriptedModel(["never"])
    async with opened(home, project, model=model) as s:
        await a_turn(s)
        await s.observe(reply("Done."))
        child = await s.open_fork("notes")
        await child.instruct("go")
        if change:
            assert child.view.head is not None
            child.view = replace(child.view, head=replace(child.view.head, **change))
        else:
            child.view = replace(child.view, closed=child.view.closed.cut(1))
        with pytest.raises(ForkRefused, match=f"part {part}"):
            await child.ask(model, NOTES.task)
        assert not model.requests
        child.close()


async def test_nothing_to_share_before_the_first_request(home: Path, project: Path):
    async with opened(home, project) as s:
        await s.add("hi")
        with pytest.raises(ForkRefused, match="nothing was sent"):
            await s.open_fork("notes")


async def test_a_fork_waits_for_the_first_byte(home: Path, project: Path):
    order: list[str] = []
    async with opened(home, project) as s:
        await s.add("hi")
        await s.prepare()

        async def fork() -> None:
            (await s.open_fork("notes")).close()
            order.append("forked")

        async with anyio.create_task_group() as group:
            group.start_soon(fork)
            await anyio.wait_all_tasks_blocked()
            order.append("first byte")
            s.responding()
    assert order == ["first byte", "forked"]


async def test_the_budget_is_counted_before_a_request_leaves(home: Path, project: Path):
    model = ScriptedModel(["one", "two"])
    tight = replace(DEFAULTS, background_calls_per_day=1)
    async with opened(home, project, model=model, settings=tight) as s:
        await a_turn(s)
        await s.observe(reply("Done."))
        await s.run_fork(NOTES)
        with pytest.raises(BudgetExceeded, match="1 of 1 calls"):
            await s.run_fork(NOTES)
        assert len(model.requests) == 1
        await s.flush()
        outcomes = [e.record.outcome for e in s.view.entries if isinstance(e.record, ForkEnded)]
        assert outcomes == ["completed", "failed"]


async def test_a_failing_fork_fails_alone(home: Path, project: Path):
    model = ScriptedModel([ProviderError("overloaded"), "fine"])
    said = []
    async with opened(home, project, model=model, say=said.append) as s:
        await a_turn(s)
        await s.observe(reply("Done."))

        async def notes() -> None:
            await s.run_fork(NOTES)

        s.jobs.start("session_memory", notes)
        await s.jobs.drain(10)
        await s.end_turn()
        kinds = [type(e.record).__name__ for e in s.view.entries]
        assert "Failed" in kinds
        assert any("overloaded" in n.text for n in said)
        await s.run_fork(NOTES)


def test_usage_adds_up():
    from reverie.session import UsageTotals

    tally = UsageTotals()
    tally.count(Usage(1, 2, 3, 4, 1))
    tally.count(Usage(10, 20, 30, 40, 2))
    assert tally.usage == Usage(11, 22, 33, 44, 3)


async def test_a_child_whose_model_refuses_says_so(home: Path, project: Path):
    model = ScriptedModel([replace(reply("I cannot."), stop_reason="refusal"), reply("Notes.")])
    async with opened(home, project, model=model) as s:
        await a_turn(s)
        await s.observe(reply("Done."))
        with pytest.raises(Refused):
            await s.run_fork(NOTES)
        assert (await s.run_fork(NOTES)).text == "Notes."
