"""A dream with the user's agent: due by the gates, once a day, within its price, and undone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reverie import errors
from reverie.settings import Settings
from reverie.store.agent_ledger import DREAM_USD, HOUR, AgentLedger
from reverie.transcript.records import Usage
from tests.agent_model.place import FakeAgent, Place
from tests.agent_model.test_learning import PASSING, YES
from tests.agent_model.test_shown import run
from tests.api.talks import LEARNED

pytestmark = pytest.mark.spec("B23")
PARSER = "The parser is written by hand. The freeze ends on 2021-01-05."
DUE = {**YES, "REVERIE_DREAM_SESSIONS": "2"}


@pytest.fixture
def agent(tmp_path: Path) -> FakeAgent:
    return FakeAgent(tmp_path, environ={**DUE})


def shorter(place: Place, file: str, *, mail: str = "") -> str:
    """A whole file without its last sentence."""
    path = next(place.home.glob(f"projects/*/memory/{file}"))
    text = path.read_text().replace(" The freeze ends on 2021-01-05.", mail)
    return f'<memory file="{file}">\n{text}</memory>'


def reason(file: str) -> str:
    gone = {"file": file, "fact": "The freeze ends on 2021-01-05.", "reason": "expired"}
    return f"```reasons\n{json.dumps(gone)}\n```"


def learn(agent: FakeAgent, *names: str) -> None:
    for name in names:
        agent.hook("SessionEnd", agent.transcript(name, f"{PASSING} That is for {name}."))
        agent.rest()


def dreams(agent: FakeAgent) -> list[dict[str, Any]]:
    return [one for one in agent.runs if "## The files as they are" in one["prompt"]]


def test_a_dream_that_is_due_follows_what_was_learned_and_can_be_undone(agent: FakeAgent) -> None:
    kept = agent.memory.add(PARSER, name="Parser")
    short = shorter(agent, kept.file)
    agent.plan(answers=[LEARNED, "nothing to keep", short, f"{short}\n{reason(kept.file)}"])
    learn(agent, "one")
    assert dreams(agent) == []  # one session is too few
    learn(agent, "two")
    first, second = dreams(agent)
    assert len(agent.runs) == 4
    assert "The freeze ends on 2021-01-05." in second["prompt"].partition("cannot be used")[2]
    assert agent.memory.get(kept.file).text.strip() == "The parser is written by hand."
    state = agent.ledger.state()
    assert (state.dreams, round(state.dream_usd, 3)) == (1, 0.002)
    assert [words(one) for one in (first, second)] == ["0.05", "0.049"]
    learn(agent, "three", "four")
    assert len(dreams(agent)) == 2  # once a day
    assert run(agent, "dream", "undo", "--project", str(agent.repo)).exit_code == 0
    assert "freeze" in agent.memory.get(kept.file).text


def words(one: dict[str, Any]) -> str:
    line = one["words"]
    return str(line[line.index("--max-budget-usd") + 1])


@pytest.mark.parametrize(
    "environ",
    [
        {"REVERIE_FLAG_DREAM": "0"},
        {"REVERIE_DREAM_SESSIONS": "9"},
        {"REVERIE_CLI_DAILY_CALLS": "2"},
        {"REVERIE_CLI_DAILY_USD": "0.0515"},
    ],
    ids=str,
)
def test_what_is_not_due_or_over_the_days_limit_is_not_started(
    agent: FakeAgent, environ: dict[str, str]
) -> None:
    agent.memory.add(PARSER, name="Parser")
    agent.environ |= environ
    learn(agent, "one", "two")
    assert len(agent.runs) == 2
    assert dreams(agent) == []


def test_a_dream_that_fails_is_not_tried_again_on_that_day(agent: FakeAgent) -> None:
    agent.memory.add(PARSER, name="Parser")
    agent.plan(answers=["nothing to keep", "nothing to keep", ""])
    learn(agent, "one", "two", "three")
    assert len(dreams(agent)) == 1
    assert agent.memory.list()[0].text.strip() == PARSER


def test_all_rounds_of_a_days_dream_have_one_price(tmp_path: Path) -> None:
    now = [1_790_000_000.0]
    ledger = AgentLedger(tmp_path, lambda: now[0], dream=True)
    assert ledger.begin(Settings(), 0.05) == DREAM_USD
    ledger.end(0.03, Usage(uncached=10), None)
    assert ledger.begin(Settings(), 0.05) == pytest.approx(0.02)
    ledger.end(None, Usage(), None)  # what it cost is not known
    with pytest.raises(errors.BudgetExceeded):
        ledger.begin(Settings(), 0.05)
    with pytest.raises(errors.BudgetExceeded):
        AgentLedger(tmp_path, lambda: now[0], dream=True).begin(Settings(), 0.05)
    assert AgentLedger(tmp_path, lambda: now[0]).begin(Settings(), 0.05) == 0.05
    now[0] += 24 * HOUR
    assert AgentLedger(tmp_path, lambda: now[0]).state().dreams == 0


def test_a_person_may_name_it_for_a_dream_and_no_break_is_saved(agent: FakeAgent) -> None:
    """`reverie dream run --model cli:claude`; every `@` is broken on its way out alone."""
    kept = agent.memory.add(PARSER, name="Parser")
    broken = shorter(
        agent, kept.file, mail=" The freeze ends on 2021-01-05. Ask ops@\u200bx.example."
    )
    agent.plan(answers=[broken])
    done = run(agent, "dream", "run", "--model", "cli:claude", "--project", str(agent.repo))
    assert done.exit_code == 0, done.output
    assert agent.memory.get(kept.file).text.strip() == f"{PARSER} Ask ops@x.example."
    assert "\u200b" not in "".join(p.read_text() for p in agent.home.glob("projects/**/*.md"))
