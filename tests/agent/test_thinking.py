"""Thinking and effort are asked for as the settings say, and only of models that can."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reverie.providers import table_capabilities
from reverie.session import thinking_options
from reverie.settings import DEFAULTS

pytestmark = pytest.mark.spec("13.thinking")
ENABLED = {"type": "enabled", "budget_tokens": 10_000}


@pytest.mark.parametrize(
    ("model", "settings", "options"),
    [
        ("claude-opus-5-5", {}, {}),
        ("claude-opus-5-5", {"thinking": "adaptive"}, {"thinking": {"type": "adaptive"}}),
        ("claude-opus-5-5", {"thinking": "budget"}, {"thinking": ENABLED}),
        ("claude-sonnet-4-5", {"thinking": "adaptive"}, {"thinking": ENABLED}),
        ("claude-sonnet-4-5", {"effort": "high"}, {}),
        ("claude-opus-5-5", {"effort": "max"}, {"output_config": {"effort": "max"}}),
        ("gpt-5", {"thinking": "budget", "effort": "low"}, {"output_config": {"effort": "low"}}),
        ("gpt-4o", {"effort": "low"}, {}),
        ("some-local-model", {"thinking": "adaptive", "effort": "low"}, {}),
    ],
)
def test_what_is_asked_for(model: str, settings: dict[str, Any], options: dict[str, Any]) -> None:
    assert thinking_options(replace(DEFAULTS, **settings), table_capabilities(model)) == options


def test_a_budget_leaves_room_for_the_answer() -> None:
    settings = replace(DEFAULTS, thinking="budget", thinking_tokens=50_000)
    (found,) = thinking_options(settings, table_capabilities("claude-opus-5-5")).values()
    assert found["budget_tokens"] == 32_000 - 1_024
