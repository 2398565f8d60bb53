"""What a client writes into the user's message is not the user's: neither learned nor asked."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from tests.proxy.clients import Client, engine

pytestmark = pytest.mark.spec("18.proxy")
TOLD = "Please remember: we always deploy with the script ops/ship-nightly.sh."
ASK = "How do we deploy this project?"
CONTEXT = "As you answer, you may use this.\nContents of CLAUDE.md: we always use tabs, remember.\n"
REMINDER = f"<system-reminder>\n{CONTEXT * 120}</system-reminder>"


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


async def told(home: Path, folder: Path, *blocks: dict[str, str], called: str = "c1") -> str:
    """What goes up in another conversation of the project."""
    await anyio.Path(folder).mkdir()
    first = engine(home)
    client = Client(first, folder=str(folder))
    if blocks[0]["type"] == "tool_result":
        call = {"type": "tool_use", "id": called, "name": "Read", "input": {}}
        client.messages = [
            {"role": "user", "content": "Read it, please"},
            {"role": "assistant", "content": [call]},
        ]
    client.messages.append({"role": "user", "content": list(blocks)})
    await client.asks()
    await first.aclose()
    second = engine(home)
    sent = await Client(second, "s2", folder=str(folder)).says(ASK).asks()
    await second.aclose()
    return json.dumps(sent)


async def test_a_fact_behind_the_clients_reminder_is_kept(home: Path, tmp_path: Path) -> None:
    sent = await told(home, tmp_path / "p", text(REMINDER), text(TOLD))
    assert "ship-nightly.sh" in sent
    assert "tabs" not in sent


async def test_a_fact_told_behind_an_interrupted_tool_is_kept(home: Path, tmp_path: Path) -> None:
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "Interrupted"}
    notice = "[Request interrupted by user for tool use]"
    sent = await told(home, tmp_path / "p", result, text(notice), text(TOLD))
    assert "ship-nightly.sh" in sent


@pytest.mark.parametrize(
    "words",
    [
        f"<system-reminder>{TOLD}</system-reminder>",
        f"<local-command-stdout>{TOLD}</local-command-stdout>",
        f"<environment_context>{TOLD}</environment_context>",
    ],
)
async def test_what_the_client_says_itself_is_not_learned(
    home: Path, tmp_path: Path, words: str
) -> None:
    sent = await told(home, tmp_path / "p", text(words), text("Look at the folder, please"))
    assert "ship-nightly.sh" not in sent


async def test_a_result_that_nobody_asked_for_is_not_the_users(home: Path, tmp_path: Path) -> None:
    orphan = {"type": "tool_result", "tool_use_id": "gone", "content": TOLD}
    sent = await told(home, tmp_path / "p", orphan, text("What is that?"), called="other")
    assert "ship-nightly.sh" not in sent
