"""A rule that asks stands at the permission prompt."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie.agent import AgentOptions, open_agent
from reverie.testing import ManualClock
from reverie.toolbox import Asker, PermissionAnswer, Question
from tests.loop.stage import calls, simulated
from tests.rules.stage import memories_in, project_of, push_rule, results

pytestmark = pytest.mark.spec("B20.block")
PUSH = ("Bash", {"command": "echo git; true || git push origin main"})


async def asked(tmp: Path, asker: Asker | None, mode: str = "allow") -> list[str]:
    """The results of two calls, the first of which a rule says to ask about."""
    with memories_in(tmp) as memories:
        push_rule(memories, "ask")
    environ = {"HOME": str(tmp), "PATH": "/usr/bin:/bin"}
    wanted = AgentOptions(project_of(tmp), home=tmp / "home", environ=environ, mode=mode)  # type: ignore[arg-type]
    model = simulated(calls(PUSH, ("Bash", {"command": "echo other"})), "done")
    async with open_agent(wanted, model, asker=asker, clock=ManualClock()) as agent:
        await agent.turn("Ship it")
        return results(agent.session)


@pytest.mark.parametrize("allow", [True, False])
async def test_the_prompt_shows_the_rule_whatever_is_allowed(tmp_path: Path, allow: bool) -> None:
    questions: list[Question] = []

    async def answer(question: Question) -> PermissionAnswer:
        questions.append(question)
        return PermissionAnswer(allow, remember="session")

    first, second = await asked(tmp_path, answer)
    assert [q.reason for q in questions] == [
        "your rule says to ask: Never push to main: it deploys. (push.md)"
    ]
    assert ("git" in first and "not permitted" not in first) is allow
    assert "other" in second


async def test_where_nobody_is_there_it_is_denied(tmp_path: Path) -> None:
    first, second = await asked(tmp_path, None)
    assert "nobody can be asked" in first
    assert "Never push to main" in first
    assert "other" in second
