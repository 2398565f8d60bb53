"""A model that makes the same failing call again and again is told so, and then stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reverie.agent import AgentOptions, open_agent
from reverie.errors import ProviderError
from reverie.session import AGAIN, Session, TurnLimits, run_turn
from reverie.simulator import call
from reverie.testing import ManualClock
from reverie.toolbox import Registry
from reverie.transcript import UserMessage, text_block
from reverie.wire import ToolCall, tool_result
from tests.loop.stage import NOON, SimpleTools, opened, simulated

pytestmark = pytest.mark.spec("13.repeats")
TOUCH = {"command": "touch made", "description": "make it"}


@pytest.mark.parametrize("inputs", ["the same", "another each time"])
async def test_the_same_failing_call_is_told_and_then_stopped(tmp_path: Path, inputs: str) -> None:
    async def refuse(given: dict[str, Any]) -> str:
        raise ProviderError("no such thing")

    made = ({"n": n if inputs != "the same" else 0} for n in range(100))
    model = simulated(*([call("echo", given)] for given in made))
    async with opened(tmp_path, model) as session:
        tools = SimpleTools(echo=refuse)
        result = await run_turn(session, model, tools, "Go.", limits=TurnLimits(rounds=50))
        assert (result.outcome, result.rounds) == ("limit", 5)
        assert "failed 5 times in a row: echo" in result.reason
        texts = [b.text for m in _user_messages(session) for b in m]
        assert [t for t in texts if t == AGAIN.format(count=3)] == [AGAIN.format(count=3)]


async def test_calls_that_fail_in_other_ways_are_not_counted_together(tmp_path: Path) -> None:
    async def refuse(given: dict[str, Any]) -> str:
        raise ProviderError(f"{given['n']} is not there")

    model = simulated(*([call("echo", {"n": n})] for n in range(8)), otherwise="I give up.")
    async with opened(tmp_path, model) as session:
        result = await run_turn(session, model, SimpleTools(echo=refuse), "Go.")
        assert (result.outcome, result.rounds) == ("completed", 9)


class DenyingTools:
    """Somebody says no to every call, each time in other words."""

    registry = Registry()
    asked = 0

    async def run(self, call: ToolCall) -> UserMessage:
        self.asked += 1
        denied = tool_result(call.id, "echo was not permitted: the user said no", is_error=True)
        return UserMessage((*denied.blocks, text_block("No" + "!" * self.asked)), "tool")


async def test_a_denial_that_is_answered_by_trying_again_is_told_and_then_stopped(
    tmp_path: Path,
) -> None:
    tools = DenyingTools()
    model = simulated(*([call("echo", {"n": n})] for n in range(50)))
    async with opened(tmp_path, model) as session:
        result = await run_turn(session, model, tools, "Go.", limits=TurnLimits(rounds=50))
        assert (result.outcome, result.rounds, tools.asked) == ("limit", 5, 5)
        texts = [b.text for m in _user_messages(session) for b in m]
        assert texts.count(AGAIN.format(count=3)) == 1
        said = [t for t in texts if t.startswith("No!")]
        assert said == ["No!", "No!!", "No!!!", "No!!!!", "No!!!!!"]


@pytest.mark.parametrize("calls", ["an unknown tool", "a denied one"])
async def test_row_79_an_agent_that_repeats_itself_is_stopped_after_five(
    tmp_path: Path, calls: str
) -> None:
    """The whole agent: its own tools, its own permissions, nobody there to ask."""
    made = call("Teleport", {"to": "x"}) if calls == "an unknown tool" else call("Bash", TOUCH)
    model = simulated(*([made] for _ in range(50)))
    options = AgentOptions(
        tmp_path, home=tmp_path / "home", environ={"HOME": str(tmp_path)}, interactive=False
    )
    async with open_agent(options, model, clock=ManualClock(NOON), say=lambda _: None) as agent:
        result = await agent.turn("Go.")
        texts = [b.text for m in _user_messages(agent.session) for b in m]
    assert (result.outcome, result.rounds) == ("limit", 5)
    assert texts.count(AGAIN.format(count=3)) == 1
    assert not (tmp_path / "made").exists()


def _user_messages(session: Session) -> list[Any]:
    return [[p.block for p in i.pieces] for i in session.view.items if i.role == "user"]
