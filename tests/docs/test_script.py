"""The page about scripts for the simulated provider shows one that is played as it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reverie.errors import InvalidInput
from reverie.simulator import answer, from_json, load
from reverie.transcript import Json
from tests.docs.lines import ROOT, blocks

pytestmark = pytest.mark.spec("project.docs-run")
PAGE = "docs/reference/script.md"


def asked(text: str) -> dict[str, Json]:
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


def test_the_script_on_the_page_is_played_as_the_page_says(tmp_path: Path) -> None:
    ((_, text),) = blocks(PAGE, "json")
    path = tmp_path / "answers.json"
    path.write_text(text)
    play = load(path)
    assert answer(play(asked("hi"))).content[0].text == "A text is a whole answer."
    blocks_ = answer(play(asked("hi"))).content
    assert [one.type for one in blocks_] == ["text", "tool_use"]
    limited = answer(play(asked("hi")))  # the one for the weather does not fit, and waits
    assert limited.stop_reason == "max_tokens"
    assert answer(play(asked("the weather?"))).content[0].text == "It rains."
    fault = answer(play(asked("hi"))).fault
    assert fault is not None
    assert (fault.kind, fault.status, fault.headers) == ("error", 529, {"retry-after": "2"})
    assert play(asked("hi")) == play(asked("hi")) == json.loads(text)["otherwise"]


def test_every_fault_on_the_page_is_one() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    shown = [line.split("`")[1] for line in text.splitlines() if line.startswith("| `{")]
    kinds = [from_json(json.loads(one)).kind for one in shown]
    assert kinds == ["error", "cut", "slow", "garbled", "raw"]
    with pytest.raises(InvalidInput):
        from_json({"none": 1})
