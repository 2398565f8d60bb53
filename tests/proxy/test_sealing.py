"""Old rounds of a long conversation leave by `--policy collapse`, and can be read back."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from reverie.apps.proxy import FOLDER, sealing
from tests.proxy.clients import (
    MARK,
    Client,
    assistant,
    blocks,
    engine,
    extends,
    text,
    unmarked,
    user,
)
from tests.proxy.proxied import READ

pytestmark = pytest.mark.spec("18.proxy")
ROUNDS = 40
TASK = "Read these files one after another, please"


def _readable(home: Path, body: dict[str, Any]) -> list[str]:
    """The files whose references stand in a request."""
    folder = next(home.glob(f"projects/*/*/{FOLDER}"))
    names = re.findall(r"\br:([a-z]+)\b", json.dumps([b for _, b in blocks(body)]))
    paths = (folder / f"{name}.txt" for name in names)
    return [path.read_text() for path in paths if path.exists()]


@pytest.fixture
async def client(home: Path) -> AsyncGenerator[Client]:
    made = engine(home, memory=False, seal=sealing("collapse"))
    yield Client(made)
    await made.aclose()


async def reads(client: Client) -> None:
    """Many files, one after another."""
    for n in range(ROUNDS):
        await client.round(f"result {n}\n" + f"line of file {n}\n" * 400)


async def test_collapse_seals_old_rounds_where_the_client_can_read_them(
    client: Client, home: Path
) -> None:
    client.says(TASK)
    await reads(client)
    last = client.sent[-1]
    whole = [len(json.dumps(client.messages)), len(json.dumps(last["messages"]))]
    assert whole[1] < whole[0] / 2
    assert any("line of file 3" in text for text in _readable(home, last))
    await client.engine.aclose()
    again = engine(home, memory=False, seal=sealing("collapse"))
    same = Client(again)
    same.messages = client.messages
    assert (await same.asks(None))["messages"] == last["messages"]
    await again.aclose()


async def test_nothing_is_sealed_where_the_client_cannot_read_it(client: Client) -> None:
    client.tools = [{**READ, "name": "weather"}]
    client.says(TASK)
    await reads(client)
    assert len(json.dumps(client.sent[-1])) >= len(json.dumps(client.messages))


async def test_nothing_more_is_sealed_where_the_client_sums_up(client: Client) -> None:
    client.says(TASK)
    order = user("Sum up what was said so far, for whoever goes on")
    changed = 0
    for n in range(ROUNDS):
        before = client.sent[-1] if n else None
        last = await client.round(f"result {n}\n" + f"line of file {n}\n" * 400)
        answer = assistant({**text("I have read it."), "cache_control": MARK})
        behind = [*client.messages, answer, order]
        await client.out({**client.body(), "messages": behind})
        assert extends(client.sent.pop(), last)  # after an answer
        await client.out({**client.body(), "messages": [*client.body()["messages"], order]})
        amid = client.sent.pop()  # in place of going on
        assert before is None or extends(amid, before)
        changed += before is not None and not extends(last, before)
    assert changed  # so that a summary would have been the one to be sealed


async def test_what_the_client_says_before_the_first_prompt_never_leaves(client: Client) -> None:
    rules = "<system-reminder>\n" + "We write short functions.\n" * 300 + "</system-reminder>"
    client.messages = [
        user(text(rules), text(TASK)),
        {"role": "system", "content": "The environment is this.\n" * 100},
    ]
    await reads(client)
    sent = unmarked(client.sent[-1]["messages"])
    assert len(json.dumps(sent)) < len(json.dumps(client.messages)) / 2
    assert sent[0]["content"][0] == text(rules)
    assert len(sent[0]["content"]) > 1
    assert unmarked(client.messages[1]) in sent
    assert json.dumps(sent).count("short functions") == 300
