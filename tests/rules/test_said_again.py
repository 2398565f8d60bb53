"""A correction that has to be given again: one memory, pinned, with its history."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from reverie.agent import Agent, AgentOptions, open_agent
from reverie.embedded import EmbeddedModel
from reverie.session import UserText, said_again
from reverie.store import list_rules
from reverie.testing import ManualClock
from reverie.topics import IndexLimits, Origin, TopicFacts, Trust, render_index
from reverie.world import Notice
from tests.loop.stage import NOON
from tests.rules.stage import memories_in, project_of, push_rule

pytestmark = pytest.mark.spec("B20.said-again")
DAY = 86_400.0
FIRST = 1_780_000_000.0


def agent_at(tmp: Path, at: float, **more: Any) -> AbstractAsyncContextManager[Agent]:
    wanted = AgentOptions(project_of(tmp), home=tmp / "home", environ={"HOME": str(tmp)})
    return open_agent(wanted, EmbeddedModel(), clock=ManualClock(at), **more)


async def said(tmp: Path, text: str, at: float, notices: list[Notice]) -> dict[str, bytes]:
    """A session in which the user says one thing; the memories behind it."""
    async with agent_at(tmp, at, say=notices.append) as agent:
        await agent.turn(text)
        await agent.session.jobs.drain(30)
        assert agent.memories is not None
        folder = agent.memories.folder
        return {key: folder.bytes_of(key) for key in list(folder.keys())}


async def test_three_times_in_three_sessions_is_one_memory_with_its_days(tmp_path: Path) -> None:
    notices: list[Notice] = []
    await said(tmp_path, "From now on never push to main, it deploys.", FIRST, notices)
    await said(tmp_path, "I told you: never push to main!", FIRST + DAY, notices)
    found = await said(tmp_path, "Again: never push to main.", FIRST + 3 * DAY, notices)
    ((key, data),) = found.items()
    assert b'said: "2026-05-29, 2026-05-31"' in data
    told = [n.text for n in notices if n.layer == "rules"]
    assert len(told) == 1
    assert "3 times" in told[0]
    assert f"memory rules level {key} ask" in told[0]
    async with agent_at(tmp_path, FIRST + 4 * DAY) as agent:
        assert agent.memories is not None
        (row,) = list_rules(agent.memories, tmp_path / "project")
        log = agent.memories.history.log(key)
        days = [v.origin.note.removeprefix("said again on ") for v in log]
        assert days[-2:] == ["2026-05-29", "2026-05-31"]
    assert row.rule.get("said") == 3
    assert row.counts is not None
    assert row.counts.of("said") == 2


def test_one_message_is_counted_once_and_not_on_the_rule_it_made(tmp_path: Path) -> None:
    said = UserText("m1", "I told you: never push to main!", NOON + DAY)
    made = Origin("save", Trust.USER, "user", "s1", ("m1",), "Write")
    with memories_in(tmp_path) as memories:
        push_rule(memories, origin=made)
        assert said_again([said], memories, "s1") == []
        found = [said_again([said], memories, "s2") for _ in range(2)]
    assert [[one.times for one in repeats] for repeats in found] == [[2], []]


@pytest.mark.parametrize(
    "text", ["No pushes to main!", "不要推送到 main", "Push auf main ist verboten"]
)
def test_a_correction_in_other_words_is_seen_by_the_calls_it_names(
    tmp_path: Path, text: str
) -> None:
    with memories_in(tmp_path) as memories:
        push_rule(memories)
        found = said_again([UserText("m1", text, NOON + DAY)], memories, "s2")
    assert [(one.key, one.times) for one in found] == [("push.md", 2)]


@pytest.mark.parametrize(
    "text",
    [
        "Push to main now, please. Do you remember what main is?",
        "Never mind, look at the tests. Why did you push?",
    ],
)
async def test_what_does_not_repeat_the_rule_counts_nothing(tmp_path: Path, text: str) -> None:
    notices: list[Notice] = []
    await said(tmp_path, "From now on never push to main, it deploys.", FIRST, notices)
    found = await said(tmp_path, text, FIRST + DAY, notices)
    assert not any(b"\nsaid: " in data for data in found.values())


async def test_a_rule_said_again_stands_in_the_head_whatever_the_limits(tmp_path: Path) -> None:
    notices: list[Notice] = []
    await said(tmp_path, "From now on never push to main, it deploys.", FIRST, notices)
    await said(tmp_path, "I told you: never push to main!", FIRST + DAY, notices)
    async with agent_at(tmp_path, FIRST + 2 * DAY) as agent:
        assert agent.memories is not None
        for n in range(5):
            text = f"---\nname: n{n}\ndescription: d\ntype: feedback\n---\n\n{'word ' * 2_000}\n"
            (agent.memories.root / f"n{n}.md").write_text(text)
    async with agent_at(tmp_path, FIRST + 2 * DAY) as agent:
        assert agent.session.view.head is not None
        context = str(agent.session.view.head.context)
        assert "never push to main" in context.lower()
        assert "word word word" not in context


def test_an_index_that_is_too_long_keeps_what_was_said_again() -> None:
    rows = [f"- [n{n}](n{n}.md) — x" for n in range(300)]
    facts = {f"n{n}.md": TopicFacts(float(n * DAY)) for n in range(300)}
    facts["n3.md"] = TopicFacts(3 * DAY, "", 1)
    data = "\n".join(rows).encode()
    assert "(n3.md)" in render_index(data, IndexLimits(), facts).text
    facts["n3.md"] = TopicFacts(3 * DAY)
    assert "(n3.md)" not in render_index(data, IndexLimits(), facts).text


async def test_the_same_rule_with_another_value_is_not_said_again(tmp_path: Path) -> None:
    notices: list[Notice] = []
    rule = "From now on function arguments start with '{}'."
    await said(tmp_path, rule.format("a_"), FIRST, notices)
    found = await said(tmp_path, rule.format("b_"), FIRST + DAY, notices)
    assert not any(b"\nsaid: " in data for data in found.values())
