"""Which policy keeps a session's context small: chosen once, and kept however it is resumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from reverie.session import open_session
from reverie.settings import DEFAULTS, Settings
from reverie.testing import ManualClock, ScriptedModel, tool_definition
from reverie.transcript import Replaced, Stand, Started, text_block

pytestmark = [pytest.mark.spec("4"), pytest.mark.spec("B11")]
CAN = (tool_definition("ReadBack", reference={"type": "string"}),)
CLASSIC = replace(DEFAULTS, context_policy="classic")


async def opened(
    tmp_path: Path, tools: Sequence[dict[str, object]], settings: Settings, resume: str = ""
) -> tuple[str, str]:
    """A session with a turn in it: its id, and its policy."""
    async with open_session(
        tmp_path / "p",
        model=ScriptedModel(["done"]),
        tools=tools,
        settings=settings,
        resume=resume,
        home=tmp_path / "home",
        environ={},
        clock=ManualClock(),
    ) as session:
        return session.id, session.world.settings.context_policy


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "p").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("tools", "settings", "policy"),
    [
        (CAN, DEFAULTS, "collapse"),
        ((), DEFAULTS, "classic"),  # nobody could read back
        (CAN, CLASSIC, "classic"),
    ],
)
async def test_new_sessions_collapse_wherever_the_model_can_read_back(
    place: Path, tools: Sequence[dict[str, object]], settings: Settings, policy: str
) -> None:
    assert (await opened(place, tools, settings))[1] == policy


@pytest.mark.parametrize("first", [DEFAULTS, CLASSIC])
async def test_a_resumed_session_keeps_its_policy(place: Path, first: Settings) -> None:
    ident, policy = await opened(place, CAN, first)
    for settings in (DEFAULTS, CLASSIC):
        assert await opened(place, CAN, settings, ident) == (ident, policy)


@pytest.mark.parametrize(
    ("reason", "policy"), [("compaction", "classic"), ("collapse", "collapse")]
)
async def test_an_old_transcript_says_by_its_seals_what_it_was(
    place: Path, reason: str, policy: str
) -> None:
    """Before the policy was recorded, classic was the default."""
    async with open_session(
        place / "p", model=ScriptedModel(["done"]), home=place / "home", environ={}, tools=CAN
    ) as session:
        started = next(e.record for e in session.view.entries if isinstance(e.record, Started))
        await session.append(replace(started, policy=""))
        await session.add("hello")
        first = session.view.leaf
        await session.append(Replaced(first, first, (Stand("user", (text_block("x"),)),), reason))
        ident = session.id
    assert await opened(place, CAN, DEFAULTS, ident) == (ident, policy)
