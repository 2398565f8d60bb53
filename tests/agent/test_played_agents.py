"""A course that somebody played as the lead and as its three agents, and once alone.

They saw what a model sees and nothing else. A search, a review and an edit in a worktree were given
to three agents at once, the lead merged the edit; then one agent did the same without others. The
answers are kept as they were, and play here against real files and a simulated provider.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reverie.agent import AgentOptions, open_agent
from reverie.session import weight
from reverie.settings import DEFAULTS
from reverie.simulator import Engine, SimulatedModel, call
from reverie.transcript import Usage, text_block

from .course_project import SAID, course_project
from .stage import environ_in, git, results

pytestmark = [pytest.mark.spec("10.agents")]
COURSE = json.loads((Path(__file__).parent.parent / "fixtures/agents_course.json").read_text())
TASKS = {one["Agent"]["name"]: one["Agent"]["prompt"] for one in COURSE["led"]["lead"][0][1:]}


class Players:
    """The kept answers, by who asks."""

    def __init__(self, course: Mapping[str, list[Any]]) -> None:
        self.course = course
        self.asked: list[tuple[str, Mapping[str, Any]]] = []

    def __call__(self, body: Mapping[str, Any]) -> Any:
        first = [b["text"] for b in body["messages"][0]["content"] if b["type"] == "text"]
        name = next((one for one, task in TASKS.items() if task in first), "lead")
        before = sum(other == name for other, _ in self.asked)
        self.asked.append((name, body))
        return [_block(part) for part in self.course[name][before]]

    def requests(self, name: str) -> list[Mapping[str, Any]]:
        return [body for who, body in self.asked if who == name]


def _block(part: Any) -> Any:
    if isinstance(part, str):
        return text_block(part)
    ((name, given),) = part.items()
    return call(name, given)


async def played(tmp: Path, course: Mapping[str, list[Any]], *, led: bool) -> tuple[Players, Any]:
    project = course_project(tmp / "project")
    players = Players(course)
    engine = Engine(players)
    options = AgentOptions(
        project, home=tmp / "home", environ=environ_in(tmp), agents=led, mode="allow",
        interactive=False,
    )  # fmt: skip
    async with open_agent(options, SimulatedModel(engine)) as agent:
        result = await agent.turn(SAID)
        assert result.outcome == "completed"
        cost = agent.spend.weighted + sum(one.weighted for one in agent.over)
        context = agent.session.view.tokens
    assert "--dry-run" in (project / "tools/export.py").read_text()
    assert git(project, "log", "--format=%s", "-1").strip() == "Let the export try without writing"
    assert git(project, "worktree", "list").count("\n") == 1
    return players, (cost, context, engine)


async def test_a_lead_merges_what_its_agents_bring_and_what_that_costs(tmp_path: Path) -> None:
    """On a task as small as this one agents cost more, and the lead's context stays smaller."""
    for name in ("led", "alone"):
        (tmp_path / name).mkdir()
    players, (cost, context, engine) = await played(tmp_path / "led", COURSE["led"], led=True)
    asked = [name for name, _ in players.asked]
    assert asked[0] == "lead"
    assert {name: asked.count(name) for name in (*TASKS, "lead")} == {
        "seeker": 3, "reviewer": 2, "editor": 4, "lead": 3,
    }  # fmt: skip
    found = results(players.requests("lead")[1])
    assert found[0].startswith("Discounts are rounded in three places")
    assert found[1].startswith("Verdict: do not apply.")
    assert "Its worktree is kept: " in found[2]
    assert "(branch agent/editor; 1 commit)" in found[2]
    sent = json.dumps(players.requests("lead")[-1]["messages"])
    for read in ("coupons_keep_29", "def charge(send, order)", "ArgumentParser()"):
        mine = "\n".join(
            json.dumps(body["messages"]) for who, body in players.asked if who in TASKS
        )
        assert read in mine
    assert "coupons_keep_29" not in sent
    assert "def charge(send, order)" not in sent
    own = {"lead": COURSE["alone"]}
    _, (alone, whole, _) = await played(tmp_path / "alone", own, led=False)
    assert cost == pytest.approx(sum(weight(_usage(one), DEFAULTS) for one in engine.log), rel=0.01)
    assert 1.5 <= cost / alone <= 2.1
    assert context / whole <= 0.85


def _usage(logged: Any) -> Usage:
    charge = logged.charge
    new = charge.total - charge.read - charge.written
    return Usage(new, charge.read, charge.written, logged.output)
