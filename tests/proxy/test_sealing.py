"""Old rounds of a long conversation leave by `--policy collapse`, and can be read back."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from reverie.apps.proxy import FOLDER
from reverie.apps.proxy.sealing import sealing
from tests.proxy.clients import MARK, Client, blocks, engine, extends, unmarked
from tests.proxy.proxied import READ

pytestmark = pytest.mark.spec("18.proxy")
ROUNDS = 40


def _readable(home: Path, body: dict[str, Any]) -> list[str]:
    """The files whose references stand in a request."""
    folder = next(home.glob(f"projects/*/*/{FOLDER}"))
    names = re.findall(r"\br:([a-z]+)\b", json.dumps([b for _, b in blocks(body)]))
    paths = (folder / f"{name}.txt" for name in names)
    return [path.read_text() for path in paths if path.exists()]


async def test_collapse_seals_old_rounds_where_the_client_can_read_them(home: Path) -> None:
    made = engine(home, memory=False, seal=sealing("collapse"))
    client = Client(made)
    client.says("Read these files one after another, please")
    for n in range(ROUNDS):
        await client.round(f"result {n}\n" + f"line of file {n}\n" * 400)
    last = client.sent[-1]
    whole = [len(json.dumps(client.messages)), len(json.dumps(last["messages"]))]
    assert whole[1] < whole[0] / 2
    assert any("line of file 3" in text for text in _readable(home, last))
    await made.aclose()
    again = engine(home, memory=False, seal=sealing("collapse"))
    same = Client(again)
    same.messages = client.messages
    assert (await same.asks(None))["messages"] == last["messages"]
    await again.aclose()


async def test_nothing_is_sealed_where_the_client_cannot_read_it(home: Path) -> None:
    made = engine(home, memory=False, seal=sealing("collapse"))
    client = Client(made)
    client.tools = [{**READ, "name": "weather"}]
    client.says("Read these files one after another, please")
    for n in range(ROUNDS):
        await client.round(f"line of file {n}\n" * 400)
    assert len(json.dumps(client.sent[-1])) >= len(json.dumps(client.messages))
    await made.aclose()


async def test_nothing_more_is_sealed_where_the_client_sums_up(home: Path) -> None:
    made = engine(home, memory=False, seal=sealing("collapse"))
    client = Client(made)
    client.says("Read these files one after another, please")
    order = {"role": "user", "content": "Sum up what was said so far, for whoever goes on"}
    changed = 0
    for n in range(ROUNDS):
        before = client.sent[-1] if n else None
        last = await client.round(f"result {n}\n" + f"line of file {n}\n" * 400)
        answer = {"type": "text", "text": "I have read it.", "cache_control": MARK}
        behind = [*client.messages, {"role": "assistant", "content": [answer]}, order]
        await client.out({**client.body(), "messages": behind})
        assert extends(client.sent.pop(), last)  # after an answer
        await client.out({**client.body(), "messages": [*client.body()["messages"], order]})
        amid = client.sent.pop()  # in place of going on
        assert before is None or extends(amid, before)
        changed += before is not None and not extends(last, before)
    assert changed  # so that a summary would have been the one to be sealed
    await made.aclose()


async def test_what_the_client_says_before_the_first_prompt_never_leaves(home: Path) -> None:
    made = engine(home, memory=False, seal=sealing("collapse"))
    client = Client(made)
    rules = "<system-reminder>\n" + "We write short functions.\n" * 300 + "</system-reminder>"
    prompt = {"type": "text", "text": "Read these files one after another, please"}
    client.messages = [
        {"role": "user", "content": [{"type": "text", "text": rules}, prompt]},
        {"role": "system", "content": "The environment is this.\n" * 100},
    ]
    for n in range(ROUNDS):
        await client.round(f"result {n}\n" + f"line of file {n}\n" * 400)
    sent = unmarked(client.sent[-1]["messages"])
    assert len(json.dumps(sent)) < len(json.dumps(client.messages)) / 2
    assert sent[0]["content"][0] == {"type": "text", "text": rules}
    assert len(sent[0]["content"]) > 1
    assert unmarked(client.messages[1]) in sent
    assert json.dumps(sent).count("short functions") == 300
    await made.aclose()
