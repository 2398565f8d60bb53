"""`reverie -p` says by its exit code and in its JSON why an answer ended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reverie.simulator import Engine, SimulatedAnswer, script, serving
from reverie.transcript import blocks_of
from tests.cli.conftest import Run

pytestmark = pytest.mark.spec("13.stops")


PROVIDERS = {
    "anthropic": ("ANTHROPIC", "claude-opus-5-5", ""),
    "openai-responses": ("OPENAI", "gpt-5", "/v1"),
}


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("text", "stop", "code", "outcome"),
    [
        ("Fine.", "end_turn", 0, "completed"),
        ("Half", "max_tokens", 8, "truncated"),
        ("", "end_turn", 8, "empty"),
        ("I cannot.", "refusal", 11, "refused"),
        ("Fine.", "solar_flare", 0, "completed"),
    ],
)
def test_the_exit_code_says_how_an_answer_ended(
    process: Run,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    provider: str,
    text: str,
    stop: str,
    code: int,
    outcome: str,
) -> None:
    answer = SimulatedAnswer(blocks_of(text) if text else (), stop)
    name, model, under = PROVIDERS[provider]
    monkeypatch.setenv(f"{name}_API_KEY", "sk-test")
    with serving(Engine(script(otherwise=answer))) as url:
        monkeypatch.setenv(f"{name}_BASE_URL", url + under)
        asked = ("-p", "Hello", "--model", model, "--bare", "--output-format", "json")
        ran = process(*asked)
    value = json.loads(ran.out)
    assert (ran.code, value["outcome"], value["stop_reason"]) == (code, outcome, stop)
    assert bool(value["reason"]) == bool(code)
    assert value["reason"] in ran.err
    assert ("solar_flare" in ran.err) == (stop == "solar_flare")
