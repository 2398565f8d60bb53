"""The examples in the documentation run, and what they show is true."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from reverie.session import EVENTS, TurnLimits, load_hooks

pytestmark = pytest.mark.spec("18.library")
ROOT = Path(__file__).resolve().parents[2]
AGENT = (ROOT / "docs" / "agent.md").read_text()
HOOKS = (ROOT / "docs" / "hooks.md").read_text()


def blocks(text: str, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("code", blocks(AGENT, "python"), ids=["agent"])
def test_an_example_runs_as_it_stands(code: str) -> None:
    exec(compile(code, "docs/agent.md", "exec"), {"__name__": "example"})


def test_the_example_of_hooks_is_read_without_a_complaint(tmp_path: Path) -> None:
    settings, answer = blocks(HOOKS, "json")
    (tmp_path / "settings.json").write_text(settings)
    hooks, problems = load_hooks(home=tmp_path, root=None, policy=tmp_path / "none")
    assert (len(hooks), problems) == (4, ())
    assert set(json.loads(answer)) == {"decision", "reason", "additionalContext"}
    assert all(event in HOOKS for event in EVENTS)
    assert TurnLimits().goes_on == 3
    assert "three times a turn" in HOOKS
