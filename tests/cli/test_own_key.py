"""A person with a key of their own: what is missing, what it costs, how hard the model works."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from reverie.agent import AgentOptions
from reverie.apps.cli import (
    EFFORTS,
    THINKING,
    AnswerScreen,
    ChatController,
    ExitChat,
    LineScreen,
    status,
)
from reverie.apps.cli.interactive import _model  # pyright: ignore[reportPrivateUsage]
from reverie.apps.tui import status_text
from reverie.embedded import EmbeddedModel
from reverie.settings import SETTINGS
from reverie.simulator import Engine, Ledger, script, serving
from reverie.store import Project
from tests.cli.conftest import Run
from tests.loop.stage import simulated

pytestmark = [pytest.mark.spec("18.own-key"), pytest.mark.usefixtures("welcomed")]


# --- without the package


def test_without_the_package_the_embedded_model_is_offered(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    place = Project.at(project)
    asked: list[str] = []

    def answers(yes: bool) -> Any:
        return lambda text, **_: asked.append(text) or yes

    monkeypatch.setattr("click.confirm", answers(True))
    assert _model(place, "", "", LineScreen()).name == "embedded"
    said = capsys.readouterr().out.replace("\n", " ")
    assert f"{sys.executable} -m pip install 'reverie[anthropic]'" in said
    assert "embedded model" in asked[0]
    monkeypatch.setattr("click.confirm", answers(False))
    with pytest.raises(ExitChat):
        _model(place, "", "", LineScreen())


# --- a home that cannot be written


@pytest.mark.parametrize("place", ["/dev/null/home", "/proc/reverie"])
def test_private_works_where_home_cannot_be_written(process: Run, place: str) -> None:
    environ = {**os.environ, "REVERIE_HOME": place}
    asked = ("-p", "run seq 30000", "--permission-mode", "allow")
    ran = process(*asked, "--private", env=environ)
    assert (ran.code, "29999" in ran.out) == (0, True), ran.err
    assert process(*asked, env=environ).code != 0


# --- for scripts


def test_the_keys_that_scripts_for_claude_code_read(process: Run) -> None:
    ran = process("-p", "run echo hi", "--permission-mode", "allow", "--json")
    value = json.loads(ran.out)
    assert value["result"] == value["text"]
    assert (value["is_error"], value["num_turns"], value["total_cost_usd"]) == (False, 2, 0.0)
    assert value["cost"] == 0.0  # nothing is billed
    assert value["session_id"]
    ran = process("-p", "hi", "--max-rounds", "1", "--max-cost", "1", "--json")
    assert json.loads(ran.out)["is_error"] is True
    failed = process("-p", "x", "--model", "claude-x", "--output-format", "json")
    value = json.loads(failed.out)
    assert (value["is_error"], value["session_id"]) == (True, "")
    assert "no key" in value["result"]


def test_money_is_told_where_prices_are_known(
    process: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    with serving(Engine(script(otherwise="Fine."))) as url:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        asked = ("-p", "Hello", "--bare", "--output-format", "json", "--model")
        known, unknown = (
            json.loads(process(*asked, name).out)
            for name in ("claude-sonnet-5", "claude-haiku-5-5")
        )
    used = known["usage"]
    input_cost = used["uncached"] * 2 + used["read"] * 0.2 + used["written"] * 2.5
    assert known["total_cost_usd"] == round((input_cost + used["output"] * 10) / 1e6, 6) > 0
    assert unknown["total_cost_usd"] is None


def test_the_footer_tells_money_and_the_cache_where_there_is_one(tmp_path: Path) -> None:
    wanted = AgentOptions(tmp_path, home=tmp_path / "home", environ={"HOME": str(tmp_path)})
    with ChatController(AnswerScreen()).open(wanted, EmbeddedModel()) as desk:
        desk.turn("hello")
        told = status_text(status(desk.agent))
    assert "cache" not in told
    assert "$" not in told
    model = simulated(otherwise="fine")
    with ChatController(AnswerScreen()).open(wanted, model) as desk:
        desk.turn("hello")
        assert "cache 0 percent" in status_text(status(desk.agent))


# --- how hard a model works


def test_the_choices_are_those_of_the_settings() -> None:
    assert SETTINGS["thinking"].choices == THINKING
    assert SETTINGS["effort"].choices == ("default", *EFFORTS)


def test_flags_for_thinking_effort_and_length_are_sent(
    process: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log.jsonl"
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    with serving(Engine(script(otherwise="Fine."), ledger=Ledger(log))) as url:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        asked = ("-p", "Hello", "--bare", "--model", "claude-sonnet-4-5")
        process(*asked, "--thinking", "budget", "--thinking-tokens", "2048")
        process(*asked, "--max-tokens", "4000")
        process(*asked[:-1], "claude-opus-5-5", "--effort", "low")
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    sent = [str(row["body"]) for row in rows if "messages" in str(row.get("body"))]
    assert '"budget_tokens":2048' in sent[0]
    assert '"max_tokens":4000' in sent[1]
    assert '"effort":"low"' in sent[2]
