"""Which turns are worth a call of the extraction, and what becomes of the others."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from reverie.session import asks_now
from reverie.transcript import (
    EMPTY,
    AssistantMessage,
    Entry,
    ExtractTask,
    Record,
    UserMessage,
    View,
    apply,
    text_block,
)
from tests.session.extracts import Script, Stage, calls, turn

pytestmark = [pytest.mark.spec("7.worth"), pytest.mark.anyio]
OFFER = "There are two ways. Option 1: rename the flag in both parsers. Option 2: keep both names."
WORTH = "The staging database is rebuilt every Monday morning"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def said(*texts: str) -> View:
    """A conversation of the user's and the agent's words in turn, the user's first."""
    view = EMPTY
    for n, text in enumerate(texts):
        blocks = (text_block(text),)
        record: Record = UserMessage(blocks) if n % 2 == 0 else AssistantMessage(blocks)
        view = apply(view, Entry(f"e{n}", view.leaf, 1.0 + n, record))
    return view


@pytest.mark.parametrize(
    "text",
    [
        WORTH,
        "No, we removed the session commands on purpose last month",
        "Die Testdatenbank wird jeden Montag neu aufgebaut",
        "La base de datos de pruebas se reconstruye cada lunes",
        "\u6d4b\u8bd5\u6570\u636e\u5e93\u6bcf\u5468\u4e00\u91cd\u5efa",
        # short, and meant for later too
        "Remember: use tabs",
        "From now on, tabs.",
        "never push",
        "Merk dir: Tabs",
        "Ab jetzt nur Tabs",
        "Recuerda: usa tabs",
        "D\u00e9sormais, des tabulations",
        "Lembre: use tabs",
        "\u0417\u0430\u043f\u043e\u043c\u043d\u0438: \u0442\u0430\u0431\u044b",
        "\u8bb0\u4f4f:\u7528tab",
        "\u899a\u3048\u3066: tab",
        "\uae30\uc5b5\ud574: tab",
    ],
)
def test_a_turn_that_tells_something_is_worth_a_call(text: str) -> None:
    assert asks_now(said("Hello there", OFFER, text, "Done."))


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "Do option 1 please",
        "ok, then let us do option 1 and rename the flag in both parsers",
        "let's do 2",
        "yes, yes, please go on and do that then",
        "Ja, mach das",
        "push it",
        "\u597d\u7684",
    ],
)
def test_an_approval_or_a_pick_waits_for_what_comes_next(text: str) -> None:
    view = said("Hi", OFFER, text, "Done.")
    assert not asks_now(view)
    assert asks_now(view, last=True)


async def test_turns_that_wait_are_looked_at_with_the_next_that_is_worth_it(stage: Stage) -> None:
    script = Script(calls([]))
    async with stage.agent(script) as agent:
        for text in ("Look around", "ok", "push it"):
            await agent.turn(text)
            assert await agent.session.jobs.wait("extract_memories", 60)
        assert not script.forks
        await turn(agent, WORTH)
        assert len(script.forks) == 1
        task = script.forks[0].task
        assert isinstance(task, ExtractTask)
        assert len(task.times) == 4
    assert len(script.forks) == 1  # nothing is left for the end


async def test_what_still_waits_is_looked_at_when_the_session_ends(stage: Stage) -> None:
    script = Script(calls([]))
    async with stage.agent(script) as agent:
        await agent.turn("Use tabs")
        assert not script.forks
    assert len(script.forks) == 1


async def test_or_in_an_idle_pause(stage: Stage) -> None:
    script = Script(calls([]))
    environ = {"REVERIE_EXTRACT_IDLE_SECONDS": "0.01"}
    async with stage.agent(script, environ=environ) as agent:
        await agent.turn("Use tabs")
        with anyio.fail_after(30):
            await script.asked.wait()
        assert await agent.session.jobs.wait("extract_memories", 60)
    assert len(script.forks) == 1


async def test_a_pause_in_which_somebody_speaks_is_none(stage: Stage) -> None:
    script = Script(calls([]))
    environ = {"REVERIE_EXTRACT_IDLE_SECONDS": "0.3"}
    async with stage.agent(script, environ=environ) as agent:
        await agent.turn("Use tabs")
        await agent.turn("ok")
        await agent.turn("go on")
        assert not script.forks
    assert len(script.forks) == 1
