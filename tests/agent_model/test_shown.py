"""What a person is asked and told of their agent as a model."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner, Result

from reverie.apps.cli import build
from reverie.errors import ReverieError
from reverie.reports.doctor import DoctorRun
from reverie.store.project import Project
from reverie.world import complete
from tests.agent_model.place import FakeAgent, request
from tests.agent_model.test_learning import YES, at

pytestmark = pytest.mark.spec("B23")


@pytest.fixture
def agent(tmp_path: Path) -> FakeAgent:
    return FakeAgent(tmp_path)


def run(agent: FakeAgent, *words: str, said: str = "", **environ: str) -> Result:
    given = {**agent.environ, **environ, "CLAUDE_CONFIG_DIR": str(agent.user / ".claude")}
    return CliRunner().invoke(build(), list(words), input=said, env=given)


def choice(agent: FakeAgent) -> str | None:
    return Project.personal(home=agent.home, environ={}).settings.background_model


def test_the_plugin_asks_once_and_only_a_yes_switches_it_on(agent: FakeAgent) -> None:
    assert run(agent, "install", "claude-code", "--plugin", "--yes").exit_code == 0
    assert choice(agent) is None  # not asking is no yes
    assert run(agent, "install", "claude-code", "--plugin").exit_code == 0
    assert choice(agent) is None  # nobody answered
    asked = run(agent, "install", "claude-code", "--plugin", said="n\n")
    assert "at most $0.25 a day by list price" in asked.output
    assert choice(agent) == "off"
    assert "Learn with" not in run(agent, "install", "claude-code", "--plugin").output
    run(agent, "config", "unset", "background_model")
    run(agent, "install", "claude-code", "--plugin", said="y\n")
    assert choice(agent) == "cli:claude"


def test_a_choice_by_config_says_what_it_means(agent: FakeAgent) -> None:
    told = run(agent, "config", "set", "background_model", "auto").output
    assert "goes to the provider" in told
    assert "$0.25 a day" in told
    assert "provider" not in run(agent, "config", "set", "background_model", "off").output


def test_stats_name_the_choice_and_what_it_cost(agent: FakeAgent) -> None:
    plain = run(agent, "stats", "--project", str(agent.repo)).output
    assert "Rules learn behind plugin and proxy" in plain
    assert "`claude -p`, SDK) are not learned from" in plain
    anyio.run(complete, agent.model(), request("hello"))
    found = json.loads(run(agent, "stats", "--json", "--project", str(agent.repo), **YES).output)
    known = found["background"]
    assert (known["model"], known["calls"], known["tokens"]) == ("cli:claude", 1, 1_010)
    told = run(agent, "stats", "--project", str(agent.repo), **YES).output
    assert "1 of 100 runs, 1,010 tokens, $0.0010 of $0.25" in told


def checks(agent: FakeAgent, *, fix: bool = False) -> dict[str, str]:
    found = DoctorRun(at(agent, **YES), fix).checks()
    return {one.what: one.state for one in found if one.name == "background"}


def test_the_doctor_names_version_flags_login_and_pause(agent: FakeAgent) -> None:
    agent.plan(version="3.1.4 (Fake)")
    (line,) = (what for what in checks(agent) if "3.1.4" in what)
    assert line.endswith(", logged in")
    agent.plan(unknown="--safe-mode", logged_in=False)
    with pytest.raises(ReverieError):
        anyio.run(complete, agent.model(), request("hello"))
    found = checks(agent, fix=True)
    assert any("does not know --safe-mode, not logged in" in what for what in found)
    assert any("paused until" in what for what, state in found.items() if state == "problem")
    agent.plan()
    assert "fixed" in checks(agent, fix=True).values()
    assert agent.ledger.paused() == ""
