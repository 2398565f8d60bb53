"""Recall in a session's own turns: begun by what the user says, taken by a request, ended."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from reverie.agent import AgentOptions, open_agent
from reverie.errors import StoreError
from reverie.session import MemoryIndex, Recall, RecalledNotes, Session, run_turn
from reverie.settings import DEFAULTS
from reverie.store import INDEX_NAME, MemoryStore, Project
from reverie.testing import ScriptedModel, call, reply
from reverie.toolbox import Registry
from reverie.topics import new
from reverie.transcript import UserMessage
from reverie.wire import Delta, Request, ToolCall, tool_result, user

from .doors import opened
from .recall_stage import Hanging, hit, last_text

pytestmark = [pytest.mark.spec("8")]

QUESTION = "When do the billing deploys happen?"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
def memories(home: Path, project: Path):
    with MemoryStore.of(
        Project.at(project, home=home, environ={}, settings=DEFAULTS), now=lambda: 5.0
    ) as found:
        one = new("billing.md", name="Billing deploys", type="project",
                  description="when billing deploys happen",
                  body="The billing deploys happen on Friday.")  # fmt: skip
        (found.folder.root / "billing.md").write_bytes(one.data)
        for n in range(20):
            other = new(f"b{n}.md", name=f"b{n}", type="project", description="", body=f"Tulip {n}")
            (found.folder.root / f"b{n}.md").write_bytes(other.data)
        yield found


async def begun(s: Session) -> None:
    """Wait until the look that a message began has come to something."""
    recall = s.recall
    assert recall is not None
    assert recall._look is not None
    with anyio.fail_after(30):
        await recall._look.done.wait()


async def test_what_the_user_says_begins_a_look_and_the_request_takes_it(
    home: Path, project: Path, memories: MemoryStore
):
    async with opened(home, project, memories=memories) as s:
        await s.add(user(QUESTION))
        await begun(s)
        assert "on Friday" in last_text(await s.prepare())
        await s.observe(reply("On Friday.", call("Bash", "t1", command="ls")))
        await s.add(tool_result("t1", "x"))
        assert s.recall is not None
        assert s.recall._look is None
        await s.add(user("And by the way, which tulips?"))  # within the turn: no new look
        assert s.recall._look is None
        await s.prepare()
        await s.observe(reply("None."))
        await s.end_turn()
        await s.add(user("And the tulip beds?"))
        assert s.recall._look is not None
        await s.end_turn("cancelled")
        assert s.recall._look is None
        kinds = [type(e.record).__name__ for e in s.view.entries]
        assert kinds[-2:] == ["Recalled", "TurnEnded"]
    assert "recall.sqlite3" in os.listdir(s.library.path)


async def test_a_private_session_leaves_no_trace_of_recall(
    home: Path, project: Path, memories: MemoryStore
):
    async with opened(home, project, memories=memories, private=True) as s:
        assert s.recall is None
        await s.add(user(QUESTION))
        assert "Friday" not in (await s.prepare()).body()
    assert "recall.sqlite3" not in os.listdir(s.library.path)


class NoTools:
    registry = Registry()

    async def run(self, call: ToolCall) -> UserMessage:
        return tool_result(call.id, "nothing")


async def test_a_hanging_selector_delays_no_token_of_a_turn(
    home: Path, project: Path, memories: MemoryStore
):
    finder = Hanging([hit("billing.md")])
    seen: list[bool] = []
    model = ScriptedModel(["An answer."])

    def watch(event: object) -> None:
        if isinstance(event, Delta):
            seen.append(finder.over)

    async with opened(home, project, memories=memories) as s, anyio.create_task_group() as group:
        assert s.recall is not None
        s.recall.close()
        notes = RecalledNotes(memories, project, s.id, DEFAULTS)
        s.recall = Recall(s, group, finder=finder, notes=notes)
        try:
            await run_turn(s, model, NoTools(), QUESTION, on_event=watch)
        finally:
            finder.let_go.set()
            group.cancel_scope.cancel()
        assert seen == [False]
        assert s.view.recalled[-1].why == "the turn ended first"


# --- one index


def _held(home: Path) -> int:
    """How many times this process holds an index of this home open."""
    found = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
    return sum(path.startswith(str(home)) and path.endswith(f"/{INDEX_NAME}") for path in found)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are not to be seen")
async def test_an_agent_opens_one_index_and_leaves_nothing_beside_it(home: Path, project: Path):
    held: list[int] = []
    bodies: list[str] = []

    def answer(request: Request):
        held.append(_held(home))
        bodies.append(request.body())
        if len(held) == 1:
            calls = [
                call(f"Search{what}", what, query="billing") for what in ("Memory", "Sessions")
            ]
            return reply("Looking.", *calls)
        return "On Friday."

    wanted = AgentOptions(project, home=home, environ={"HOME": str(home.parent)})
    async with open_agent(wanted, ScriptedModel(answer)) as agent:
        assert agent.memories is not None
        path = agent.memories.folder.root / "billing.md"
        about = {"name": "billing", "description": "billing deploys", "type": "project"}
        path.write_bytes(new("billing.md", body="They run on Friday.", **about).data)
        await agent.turn(QUESTION)
        kept = agent.session.library.path
    assert f"{path}:" in bodies[1]
    assert max(held) <= 1
    assert _held(home) == 0
    assert [path.name for path in kept.glob(f"{INDEX_NAME}*")] == [INDEX_NAME]


async def test_a_closed_index_is_not_opened_again(tmp_path: Path):
    (tmp_path / "memory").mkdir()
    index = MemoryIndex(tmp_path / "memory", tmp_path / "kept")
    assert index.look("anything at all", 0.0).hits == ()
    index.close()
    with pytest.raises(StoreError):
        index.look("anything at all", 0.0)
    index.close()
    assert os.listdir(tmp_path / "kept") == [INDEX_NAME]
