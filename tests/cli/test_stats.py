"""`reverie stats`: cost by source, today and this week, and the product's own figures."""

from __future__ import annotations

import json
import time
from pathlib import Path

import anyio
import pytest

from reverie.apps.cli import sparkline
from reverie.observer import SystemClock
from reverie.session import Budget, open_session
from reverie.settings import DEFAULTS
from reverie.store import Folder, canonical_root, find_project_folder
from reverie.testing import reply
from reverie.transcript import (
    Boundary,
    Candidate,
    Extracted,
    Failed,
    ForkEnded,
    Recalled,
    Replaced,
    Stand,
    Usage,
    text_block,
)
from reverie.wire import user
from tests.proxy.clients import Client, engine

from .conftest import Run

pytestmark = [pytest.mark.spec("B18"), pytest.mark.spec("B7")]


@pytest.fixture
def worked(home: Path, project: Path) -> None:
    """A session with a compaction, forks, failures and a recall."""

    async def work() -> None:
        async with open_session(project, home=home, environ={"HOME": str(home.parent)}) as s:
            await s.add(user("hello there"))
            await s.prepare()
            await s.observe(reply("hi", usage=Usage(uncached=100, read=900, output=10)))
            first = s.view.items[0].id
            by = (Stand("user", (text_block("short"),)),)
            note = Boundary(fidelity=0.9, calls=1)
            await s.append(
                ForkEnded("session_memory", "a1", Usage(read=1000, output=20), 2, "completed"),
                *(Failed("compaction", "no") for _ in range(3)),
                Replaced(first, first, by, "full", boundary=note),
                Recalled("e1", 5, (Candidate("a.md", 1.0, "injected", size=40),)),
            )
            await s.end_turn()

    anyio.run(work)


@pytest.mark.usefixtures("worked")
def test_the_figures_of_the_week(run: Run) -> None:
    shown = run("stats", "--json").json()
    assert shown["sessions"] == 1
    assert shown["hit_rate"] == 0.9
    assert (shown["compactions"], shown["summary_rate"], shown["fidelity"]) == (1, 1.0, 0.9)
    assert (shown["compaction_failures"], shown["breaker_trips"]) == (3, 1)
    assert (shown["recalls"], shown["injected"]) == (1, 1)
    assert shown["requests"] == {"main": 1, "session_memory": 2}
    assert shown["cost"] == {"main": 100 + 90 + 50, "session_memory": 100 + 100}
    assert (shown["unpriced"], shown["dollars"]) == (["scripted"], {})
    assert [one["requests"] for one in shown["days"].values()] == [1]
    text = run("stats", code=0).out
    for told in ("90.0%", "session_memory", "its price is not known"):
        assert told in text


def test_a_memory_is_checked_again_only_when_it_changed(
    run: Run, home: Path, project: Path
) -> None:
    run("memory", "add", "The printer is on floor 3 next to the stairs.", code=0)
    folder = find_project_folder(home, canonical_root(project))
    (before,) = run("stats", "--json").json()["memory"]
    kept = folder / "hygiene.jsonl"
    row = json.loads(kept.read_text())
    kept.write_text(json.dumps([row[0], 7, *row[2:]]) + "\n")
    assert [day["score"] for day in run("stats", "--json").json()["memory"]] == [7]
    (folder / "memory" / "junk.md").write_text("---\nname: J\n---\n\nTBD\n")
    (after,) = run("stats", "--json").json()["memory"]
    assert after["memories"] == before["memories"] + 1
    assert 7 < after["score"] < before["score"]
    kept.write_text(json.dumps([row[0], 7, *row[2:4]]) + "\n")  # as it was noted without a mark
    assert run("stats", "--json").json()["memory"] == [after]


def test_what_ran_unasked_by_day_and_source(run: Run, home: Path) -> None:
    budget = Budget(Folder(home), DEFAULTS, SystemClock())
    for source, read in (("dream", 1000), ("dream", 3000), ("extract_memories", 500)):
        budget.settle(budget.reserve(source, 1.0), Usage(read=read))
    budget.close()
    (day,) = run("stats", "--json").json()["unasked"]
    assert day["weighted"] == {"dream": 400.0, "extract_memories": 50.0}
    assert day["calls"] == {"dream": 2, "extract_memories": 1}
    assert day["day"] == time.strftime("%Y-%m-%d", time.gmtime())
    assert f"450 of {DEFAULTS.background_tokens_per_day:,}" in run("stats", code=0).out


def test_a_session_that_cannot_be_read_is_counted(run: Run, home: Path, project: Path) -> None:
    run("memory", "add", "One thing.", code=0)
    folder = next((home / "projects").iterdir())
    (folder / "00000000-0000-4000-8000-000000000001.jsonl").mkdir()
    (folder / "00000000-0000-4000-8000-000000000002.jsonl").write_text("garbage\n")
    shown = run("stats", "--all", "--json").json()
    assert shown["since"] == "always"
    assert shown["sessions"] + shown["unreadable"] <= 2


def test_pollution_is_counted_where_there_is_some(run: Run) -> None:
    """A folder with a junk memory is not told as clean, nor a good memory as junk."""
    run("memory", "add", "We use pnpm, not npm.", code=0)
    assert run("stats", "--json").json()["memory"][-1]["pollution"] == 0.0
    run("memory", "add", "The build 4482913 failed again, look at it.", code=0)
    assert run("stats", "--json").json()["memory"][-1]["pollution"] == 0.5


def test_learning_costs_what_was_spent_for_each_memory_that_is_still_there(
    run: Run, home: Path, project: Path
) -> None:
    run("memory", "add", "We use pnpm, not npm.", code=0)
    (kept,) = [one["file"] for one in run("memory", "list", "--json").json()["memories"]]

    async def work() -> None:
        async with open_session(project, home=home, environ={"HOME": str(home.parent)}) as s:
            await s.add(user("hello there"))
            await s.prepare()
            await s.observe(reply("hi", usage=Usage(uncached=100, output=10)))
            last = s.view.items[-1].id
            await s.append(
                ForkEnded(
                    "extract_memories", "a1", Usage(uncached=1000, output=20), 2, "completed"
                ),
                Extracted(last, "written", (kept, "gone.md")),
                Recalled("e1", 5, (Candidate(kept, 1.0, "injected", size=40),)),
            )
            await s.end_turn()

    anyio.run(work)
    shown = run("stats", "--json").json()
    assert (shown["memories_written"], shown["memories_kept"]) == (2, 1)
    assert shown["cost_of_a_memory"] == shown["cost"]["extract_memories"] == 1100.0
    assert (shown["injected"], shown["cited"], shown["cited_share"]) == (1, 0, 0.0)
    assert "cost of learning, for each still there" in run("stats", code=0).out


def test_bars_are_as_high_as_their_values() -> None:
    assert sparkline([1.0, 4.0, 8.0]) == "▁▄█"
    assert sparkline([0.0, 0.5, 1.0], 1.0) == "▁▄█"
    assert sparkline([]) == ""


def test_what_the_embedded_rules_learn_of_a_client_of_the_proxy_costs_nothing(
    run: Run, home: Path, project: Path
) -> None:
    async def talk() -> None:
        made = engine(home)
        client = Client(made, folder=str(project))
        for said in ("Always use pnpm, never npm, in this project, please.", "Go on."):
            await client.says(said).asks()
        await made.aclose()

    anyio.run(talk)
    told = run("stats", "--json").json()
    assert (told["memories_kept"], told["requests"]) == (1, {"main": 2, "extract_memories": 1})
    assert told["cost_of_a_memory"] == told["cost"]["extract_memories"] == 0
    assert told["dollars"]["extract_memories"] == 0 < told["dollars"]["main"]
    seen = run("cache", "--json").json()
    assert (seen["requests"], seen["cost"]) == (3, told["cost"]["main"])
    assert seen["total_cost_usd"] == pytest.approx(told["dollars"]["main"], abs=0.0001)
