"""Words of the user beside a tool's result are the user's, whichever way the message came in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reverie import Fitter, Session, tool_result, user
from reverie.apps.replay import ReplayPolicy, ReplayStage
from reverie.session import user_words
from reverie.transcript import UserMessage, View, block_of
from reverie.transcript.recordings import read
from tests.replay.courses import course, row
from tests.replay.courses import use as used

pytestmark = pytest.mark.spec("4.typed")
WORDS = "but keep the exit codes as they are"
MODEL = "claude-opus-5-5"
TOOLS = [
    {"name": "run", "description": "Run it.", "input_schema": {"type": "object"}},
    {"name": "ReadBack", "description": "Read.", "input_schema": {"type": "object"}},
]
SMALL = {"collapse_tail": 2_000, "collapse_log": 1_000, "collapse_kept": 100}


def use(n: int) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{n}", "name": "run", "input": {"n": n}}


def gave(n: int) -> dict[str, Any]:
    text = f"result {n}\n" + "a line of output\n" * 60
    return {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": text}


def told(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def answer(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "msg", "type": "message", "role": "assistant", "model": MODEL,
        "content": list(blocks), "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip


def listed(rounds: int) -> list[dict[str, Any]]:
    """A list in which the user speaks beside the first result."""
    out: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for n in range(rounds):
        out.append({"role": "assistant", "content": [use(n)]})
        words = [] if n else [told(WORDS)]
        out.append({"role": "user", "content": [gave(n), *words]})
    return out


def speakers(view: View) -> list[tuple[str, str]]:
    found = [e.record for e in view.entries if isinstance(e.record, UserMessage)]
    return [(r.origin, "".join(sorted({b.type for b in r.blocks}))) for r in found]


def learned(view: View) -> list[str]:
    return [one.text for one in user_words(view, view.items)]


MIXED: dict[str, Callable[[], tuple[Any, ...]]] = {
    "parts": lambda: (tool_result("toolu_0", gave(0)["content"]), user(WORDS)),
    "text": lambda: (tool_result("toolu_0", gave(0)["content"]), WORDS),
    "message": lambda: ({"role": "user", "content": [gave(0), told(WORDS)]},),
    "blocks": lambda: (block_of(gave(0)), block_of(told(WORDS))),
}


@pytest.mark.anyio
@pytest.mark.parametrize("how", MIXED)
async def test_added_to_a_session(how: str, home: Path, tmp_path: Path) -> None:
    async with Session.open(
        tmp_path, model=MODEL, memory=True, policy="collapse", tools=TOOLS, settings=SMALL
    ) as s:
        await s.add("go")
        await s.prepare()
        await s.observe(answer(use(0)))
        await s.add(*MIXED[how]())
        sent = (await s.prepare()).anthropic()["messages"]
        assert [part["type"] for part in sent[-1]["content"]] == ["tool_result", "text"]
        assert speakers(s.view)[1:] == [("tool", "tool_result"), ("user", "text")]
        assert learned(s.view) == ["go", WORDS]
        for n in range(1, 40):
            await s.observe(answer(use(n)))
            await s.add(gave(n))
            await s.prepare()
        text = (await s.prepare()).body()
    assert "[folded" in text
    assert text.count(f"<user>{WORDS}</user>") == 1


@pytest.mark.anyio
async def test_adopted_from_elsewhere(home: Path, tmp_path: Path) -> None:
    async with Session.open(
        tmp_path, model=MODEL, memory=True, policy="collapse", tools=TOOLS, settings=SMALL
    ) as s:
        await s.adopt(listed(1))
        assert learned(s.view) == ["go", WORDS]
        for n in range(1, 40):
            await s.prepare()
            await s.observe(answer(use(n)))
            await s.add(gave(n))
        text = (await s.prepare()).body()
    assert "[folded" in text
    assert text.count(f"<user>{WORDS}</user>") == 1


def test_in_a_list_that_is_fitted() -> None:
    kept = Fitter(model=MODEL, policy="collapse", tools=TOOLS, settings=SMALL, via="ReadBack")
    text = str(list(kept.fit(listed(40))))
    assert "[folded" in text
    assert text.count(f"<user>{WORDS}</user>") == 1


@pytest.mark.anyio
async def test_in_a_session_that_is_replayed() -> None:
    rows = [row("user", "go", 0)]
    for n in range(3):
        said = [] if n else [told(WORDS)]
        rows.append(row("assistant", [used(f"toolu_{n}", command="ls")], n + 0.2))
        rows.append(row("user", [gave(n), *said], n + 0.5))
    going = course(*rows, row("assistant", [told("Done.")], 9))
    stage = ReplayStage(going.head, ReplayPolicy.of("collapse"))
    for step in going.steps:
        if step.role == "assistant":
            await stage.prepare()
            stage.observe(step.blocks)
        else:
            await stage.add(step.blocks)
    assert ("tool", "tool_result") in speakers(stage.view)
    assert learned(stage.view) == ["go", WORDS]
    entries = read(rows).entries
    mine = [e.record for e in entries if isinstance(e.record, UserMessage)]
    assert WORDS in [b.get("text") for r in mine if r.origin == "user" for b in r.blocks]
    assert {b.type for r in mine if r.origin == "tool" for b in r.blocks} == {"tool_result"}
