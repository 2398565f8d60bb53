"""Limits of agents: how many, how deep, how long, how dear; and what cancelling leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from reverie.settings import DEFAULTS
from reverie.simulator import call
from reverie.transcript import ForkEnded
from reverie.world import Notice
from tests.loop.stage import NOON

from .stage import agents, cast, git, opened, project_in, results

pytestmark = [pytest.mark.spec("10.limits")]


class StandingClock:
    """A clock whose sleepers wait until it is moved."""

    def __init__(self) -> None:
        self.at = NOON
        self._moved = anyio.Event()

    def now(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        end = self.at + seconds
        while self.at < end:
            await self._moved.wait()

    def move(self, seconds: float) -> None:
        self.at += seconds
        moved, self._moved = self._moved, anyio.Event()
        moved.set()


async def never() -> Any:
    await anyio.sleep_forever()


async def settled(holds: Callable[[], bool]) -> None:
    with anyio.fail_after(20):
        while not holds():
            await anyio.lowlevel.checkpoint()


async def test_no_more_than_eight_at_once(tmp_path: Path) -> None:
    wanted = [{"prompt": f"task held: {n}", "mode": "background"} for n in range(9)]
    played, model = cast([agents(*wanted), "Done."], held=[never])
    async with opened(tmp_path, model) as lead:
        await lead.turn("Go")
        assert len(lead.at_work) == 8
        told = results(played.requests("lead")[1])
        assert sum("works in the background" in text for text in told) == 8
        assert sum("8 agents already run" in text for text in told) == 1
        assert await lead.kill("general-1")
        assert len(lead.at_work) == 7
        assert not await lead.kill("general-1")
    assert lead.at_work == ()


async def test_rounds_are_limited(tmp_path: Path) -> None:
    tight = replace(DEFAULTS, agent_rounds=3)
    played, model = cast([agents({"prompt": "task loop: go"}), "Done."], loop=[[call("List", {})]])
    async with opened(tmp_path, model, settings=tight) as lead:
        await lead.turn("Go")
        (member,) = lead.crew.members.values()
        assert (member.state, member.requests) == ("limit", 3)
    assert "stopped at a limit: the turn had 3 rounds" in results(played.requests("lead")[1])[0]


async def test_an_agents_share_of_the_days_budget_is_limited(tmp_path: Path) -> None:
    tight = replace(DEFAULTS, background_tokens_per_day=4_000)  # a quarter of it: 1,000
    played, model = cast([agents({"prompt": "task loop: go"}), "Done."], loop=[[call("List", {})]])
    async with opened(tmp_path, model, settings=tight) as lead:
        await lead.turn("Go")
        (member,) = lead.crew.members.values()
        assert (member.state, member.requests) == ("limit", 0)
    assert "price-weighted tokens" in results(played.requests("lead")[1])[0]


async def test_the_days_budget_holds_for_all_of_them(tmp_path: Path) -> None:
    tight = replace(DEFAULTS, background_calls_per_day=1)
    wanted = [{"prompt": "task one: go"}, {"prompt": "task two: go"}]
    played, model = cast([agents(*wanted), "Done."], one=["fine"], two=["fine"])
    async with opened(tmp_path, model, settings=tight) as lead:
        await lead.turn("Go")
    told = sorted(results(played.requests("lead")[1]))
    assert "day's budget for background work is used up: 1 of 1 calls" in told[0]
    assert told[1] == "fine"
    assert len(played.requests("one")) + len(played.requests("two")) == 1


async def test_time_is_limited_by_the_clock(tmp_path: Path) -> None:
    clock = StandingClock()
    played, model = cast(
        [agents({"prompt": "task held: go", "mode": "background", "name": "slow"}), "Done."],
        held=[never],
    )
    async with opened(tmp_path, model, clock=clock) as lead:
        await lead.turn("Go")
        slow = lead.crew.members["slow"]
        await settled(lambda: len(played.requests("held")) == 1)
        clock.move(30 * 60 - 1)
        await anyio.wait_all_tasks_blocked()
        assert slow.is_open
        clock.move(1)
        await settled(lambda: not slow.is_open)
        assert (slow.state, slow.reason) == ("limit", "it took over 30 minutes")


async def test_without_depth_there_are_no_agents(tmp_path: Path) -> None:
    played, model = cast(["Done."])
    async with opened(tmp_path, model, settings=replace(DEFAULTS, agent_depth=0)) as lead:
        await lead.turn("Go")
        assert lead.crew is None
    names = [tool["name"] for tool in played.requests("lead")[0]["tools"]]
    assert "Agent" not in names


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"prompt": "task x", "type": "wizard"}, "no such type of agent"),
        ({"prompt": " "}, "needs a task"),
        ({"prompt": "task x", "name": "../up"}, "cannot name an agent"),
        ({"prompt": "task x", "name": "lead"}, "this name is taken"),
        ({"prompt": "task x", "mode": "party"}, "mode must be one of"),
    ],
)
async def test_what_cannot_be_done_is_told(
    tmp_path: Path, wanted: dict[str, Any], told: str
) -> None:
    played, model = cast([agents(wanted), "Done."])
    async with opened(tmp_path, model) as lead:
        await lead.turn("Go")
        assert lead.crew.members == {}
        assert lead.crew._limit.borrowed_tokens == 0
    assert told in results(played.requests("lead")[1])[0]


async def test_a_repository_without_commits_gives_no_worktree(tmp_path: Path) -> None:
    project_in(tmp_path, commits=False)
    played, model = cast([agents({"prompt": "task x", "worktree": True}), "Done."])
    async with opened(tmp_path, model) as lead:
        await lead.turn("Go")
        assert lead.at_work == ()
    assert "no commit yet" in results(played.requests("lead")[1])[0]


async def test_a_branch_that_exists_is_not_taken_over(tmp_path: Path) -> None:
    root = project_in(tmp_path)
    git(root, "branch", "agent/fixer")
    played, model = cast([agents({"prompt": "task x", "worktree": True, "name": "fixer"}), "Done."])
    async with opened(tmp_path, model) as lead:
        await lead.turn("Go")
    assert "is there already" in results(played.requests("lead")[1])[0]
    assert git(root, "worktree", "list").count("\n") == 1


@pytest.mark.parametrize("to", ["nobody", "uds:/nowhere", "bridge:elsewhere"])
async def test_an_unknown_recipient_is_told(tmp_path: Path, to: str) -> None:
    played, model = cast([[call("SendMessage", {"to": to, "message": "hi"})], "Done."])
    async with opened(tmp_path, model) as lead:
        await lead.turn("Go")
    (told,) = results(played.requests("lead")[1])
    assert told.startswith("SendMessage failed: ")
    assert to.removeprefix("uds:").removeprefix("bridge:") in told


# --- cancelling


@pytest.mark.parametrize("mode", ["foreground", "background", "fork"])
async def test_leaving_the_session_ends_its_agents(tmp_path: Path, mode: str) -> None:
    name = "fork task held" if mode == "fork" else "task held"
    played, model = cast([agents({"prompt": name, "mode": mode}), "Done."], held=[never])
    notices: list[Notice] = []
    kept: list[Any] = []
    async with anyio.create_task_group() as group:

        async def led() -> None:
            async with opened(tmp_path, model, notices) as lead:
                kept.append(lead)
                await lead.turn("Go")
                await anyio.sleep_forever()

        group.start_soon(led)
        await settled(lambda: len(played.requests("held")) == 1)
        assert len(kept[0].at_work) == 1
        group.cancel_scope.cancel()
    (lead,) = kept
    (member,) = lead.crew.members.values()
    assert member.state == "cancelled"
    assert lead.crew._limit.borrowed_tokens == 0
    assert not lead.crew._at_work
    kept_file = next((lead.session.library.path / lead.session.id / "agents").glob("*.json"))
    assert json.loads(kept_file.read_text())["state"] == "cancelled"


async def test_cancelled_at_any_point_nothing_runs_on(tmp_path: Path, scale: Any) -> None:
    """The turn is cancelled after each number of steps of the event loop in turn."""
    project_in(tmp_path)
    left, steps = 0, 0
    for steps in range(0, 4_000, scale.pick(230, 10)):
        _played, model = cast(
            [agents({"prompt": "task one"}, {"prompt": "task two", "mode": "background"}), "Done."],
            one=[[call("List", {})], "fine"],
            two=[[call("List", {})], "fine"],
        )
        ended = False
        async with opened(tmp_path, model) as lead:
            async with anyio.create_task_group() as group:

                async def turn() -> None:
                    nonlocal ended
                    await lead.turn("Go")
                    ended = True
                    group.cancel_scope.cancel()

                group.start_soon(turn)
                for _ in range(steps):
                    await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()
            foreground = [m for m in lead.at_work if m.mode == "foreground"]
            left += len(foreground)
        left += len(lead.at_work) + lead.crew._limit.borrowed_tokens + len(lead.crew._at_work)
        assert all(not m.is_open for m in lead.crew.members.values())
        entries = [e.record for e in lead.session.view.entries]
        ends = [r for r in entries if isinstance(r, ForkEnded)]
        assert len(ends) <= 2
        if ended:
            break
    assert left == 0
    assert steps > 0
