"""What a session loads: no SDK, no rules, no background work."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api.test_light import loaded, ours

pytestmark = pytest.mark.spec("18.session-light")
FOREIGN = {"anthropic", "openai", "httpx", "httpx2", "click", "rich", "sqlite3", "starlette"}
ROOMS = {"agent", "apps", "embedded", "simulator", "upkeep", "testing"}
DUE = (
    "reverie.session.extraction.run",
    "reverie.session.notes",
    "reverie.session.recall.recall",
    "reverie.session.dream.run",
    "reverie.store.recall.index",
    "reverie.toolbox.shell",
    "reverie.toolbox.sandbox",
    "reverie.toolbox.guard",
)
USED = """
import anyio
from reverie import Session
async def main():
    async with Session.open("shop", model="claude-opus-5-5") as s:
        await s.add("hello")
        (await s.prepare()).anthropic()
        await s.observe({"role": "assistant", "content": "hello"})
        await s.end_turn()
anyio.run(main)
"""


def test_a_name_loads_no_sdk_no_event_loop_and_nothing_that_is_due_later() -> None:
    found = loaded("from reverie import Session")
    assert not {name.split(".")[1] for name in ours(found)} & ROOMS
    assert not found.intersection(DUE)
    assert not loaded("from reverie import Session, Agent, blocking") & (FOREIGN | {"asyncio"})


def test_a_session_in_use_loads_what_is_due_alone(home: Path) -> None:
    found = loaded(USED)
    assert not found & FOREIGN
    assert not {name.split(".")[1] for name in ours(found)} & ROOMS
    assert not found.intersection(DUE)
