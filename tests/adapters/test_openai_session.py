"""A session of the OpenAI Agents SDK whose run was not given our filter."""

from __future__ import annotations

from pathlib import Path

import pytest
from agents import Agent, OpenAIResponsesModel, RunConfig, Runner, SQLiteSession
from openai import AsyncOpenAI

from reverie import testing
from reverie.adapters import ReverieSession
from reverie.world import Notice

pytestmark = pytest.mark.spec("18.adapters")


@pytest.mark.parametrize("used", [True, False])
async def test_a_run_without_the_run_config_says_that_nothing_is_trimmed(
    home: Path, used: bool
) -> None:
    told: list[Notice] = []
    session = ReverieSession(SQLiteSession("s"), window=400_000, on_notice=told.append)
    config = session.run_config() if used else RunConfig()
    with testing.provider(["One.", "Two."]) as provider:
        async with AsyncOpenAI(base_url=provider.openai_url, api_key="k") as client:
            agent = Agent(name="a", model=OpenAIResponsesModel("gpt-5", openai_client=client))
            for text in ("Hello", "Again"):
                await Runner.run(agent, text, session=session, run_config=config)
    assert len([one for one in told if "run_config" in one.text]) == (0 if used else 1)
