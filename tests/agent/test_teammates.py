"""Teammates: agents in processes of their own, their mail, and that none is left."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from reverie.providers.choose import model_for
from reverie.simulator import call
from reverie.testing import provider
from tests.loop.stage import alive, gone

from .stage import Cast, agents, environ_in, opened, texts

pytestmark = [pytest.mark.spec("10.agents")]
PROGRAM = "reverie.agent.subagents.teammate"


def surroundings(tmp: Path, url: str) -> dict[str, str]:
    return {**environ_in(tmp), "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "x"}


def processes() -> list[int]:
    return alive(PROGRAM)


async def test_a_teammate_works_answers_and_shuts_down(tmp_path: Path) -> None:
    played = Cast(
        [
            agents({"prompt": "task mate: go", "mode": "teammate", "name": "mate"}),
            "Started.",
            [
                call(
                    "SendMessage",
                    {"to": "mate", "message": "Please end", "type": "shutdown_request"},
                )
            ],
            "Asked.",
        ],
        mate=[
            [call("List", {})],
            "found one file",
            [
                call(
                    "SendMessage",
                    {"to": "lead", "message": "Yes", "type": "shutdown_response", "approve": True},
                )
            ],
            "bye",
        ],
    )
    with provider(played) as server:
        environ = surroundings(tmp_path, server.anthropic_url)
        model = model_for("claude-opus-5-5", environ)
        assert model is not None
        async with opened(tmp_path, model, environ=environ) as lead:
            await lead.turn("Go")
            mate = lead.crew.members["mate"]
            with anyio.fail_after(30):
                while mate.state != "idle" or not lead.crew.waiting:
                    await anyio.sleep(0.02)
            assert len(processes()) >= 1
            await lead.turn("End it")
            with anyio.fail_after(30):
                while mate.is_open:
                    await anyio.sleep(0.02)
            assert mate.state == "completed", mate
            assert mate.requests == 4
            said = texts(played.requests("lead")[2])
            assert '<agent-message from="mate" type="result">\nfound one file' in said
        await gone(PROGRAM)
        await model.aclose()
