"""Learning with the user's agent behind the plugin: after a yes, later, once, and within bounds."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import anyio
import pytest

from reverie.clients.background import background_model, background_name, note_turn, work
from reverie.errors import ImportFailed, InvalidInput, NotAvailable
from reverie.providers.cli_programs import MARK
from reverie.session.transfer import past_in
from reverie.store.project import Project, switch
from reverie.world import complete
from tests.agent_model.place import FakeAgent, Place, request
from tests.api.talks import LEARNED
from tests.plugin.test_events import rows

pytestmark = pytest.mark.spec("B23")
PASSING = "The linter has to be happy here, so I run it before I commit anything at all."
YES = {"REVERIE_BACKGROUND_MODEL": "cli:claude", "REVERIE_CLI_EVERY_TURNS": "1"}


@pytest.fixture
def agent(tmp_path: Path) -> FakeAgent:
    made = FakeAgent(tmp_path, environ={**YES})
    made.plan(result={"result": LEARNED})
    return made


def at(place: Place, **environ: str) -> Project:
    given = {**place.environ, **environ}
    return Project.at(place.repo, home=place.home, environ=given)


def test_nothing_is_noted_started_or_spent_before_a_yes(agent: FakeAgent) -> None:
    talk = agent.transcript("one", PASSING)
    agent.hook("Stop", talk, REVERIE_BACKGROUND_MODEL="")
    agent.hook("SessionEnd", talk, REVERIE_BACKGROUND_MODEL="off")
    agent.rest()
    assert (agent.runs, agent.due) == ([], [])
    assert not (agent.home / "agent").exists()


def test_rules_learn_at_once_and_the_model_once_behind_them(agent: FakeAgent) -> None:
    cue = "From now on, always deploy from the release branch."
    talk = agent.transcript("one", cue, PASSING)
    agent.hook("Stop", talk)
    assert any("release branch" in one.text for one in agent.memory.list())
    agent.rest()
    assert any("linter" in one.text for one in agent.memory.list())
    assert agent.due == []
    assert len(agent.runs) == 1
    assert "release branch" in agent.runs[0]["prompt"]  # what rules saw is not passed over
    agent.hook("SessionEnd", talk)
    agent.rest()
    assert len(agent.runs) == 1  # no turn is new


def test_few_turns_wait_for_more_or_for_the_end(agent: FakeAgent) -> None:
    agent.environ["REVERIE_CLI_EVERY_TURNS"] = "3"
    for _ in range(2):
        agent.hook("Stop", agent.transcript("one", PASSING))
    agent.rest()
    assert (len(agent.due), agent.runs) == (1, [])
    agent.hook("SessionEnd", agent.transcript("one", PASSING))
    agent.rest()
    assert (agent.due, len(agent.runs)) == ([], 1)


def test_turns_that_end_soon_after_each_other_are_one_run(agent: FakeAgent) -> None:
    agent.environ["REVERIE_CLI_WAIT_SECONDS"] = "3"
    said: list[str] = []
    for number in range(3):
        said.append(f"{PASSING} That was number {number}.")
        agent.hook("Stop", agent.transcript("one", *said))
    agent.rest()
    assert len(agent.runs) == 1
    assert "number 2" in agent.runs[0]["prompt"]


def test_what_fails_stays_due_and_the_cursor_where_it_was(agent: FakeAgent) -> None:
    agent.plan(result={"is_error": True, "api_error_status": 500})
    agent.hook("Stop", agent.transcript("one", PASSING))
    agent.rest()
    assert len(agent.runs) == 1
    assert len(agent.due) == 1
    agent.plan(result={"result": LEARNED})
    agent.hook("Stop", agent.transcript("one", PASSING, "And what else is there to be done?"))
    agent.rest()
    assert "linter has to be happy" in agent.runs[1]["prompt"]
    assert agent.due == []
    assert any("linter" in one.text for one in agent.memory.list())


def test_who_is_not_logged_in_gets_rules_and_one_notice(
    agent: FakeAgent, capfd: pytest.CaptureFixture[str]
) -> None:
    agent.plan(logged_in=False, result={"is_error": True, "result": "Please run /login"}, code=1)
    talk = agent.transcript("one", "From now on, always deploy from the release branch.", PASSING)
    for _ in range(3):
        agent.hook("Stop", talk)
        agent.rest()
    assert len(agent.runs) == 1
    assert len(agent.memory.list()) == 1
    capfd.readouterr()
    agent.hook("SessionStart", talk)
    assert "not logged in" in capfd.readouterr().out
    agent.hook("SessionStart", talk)
    assert "not logged in" not in capfd.readouterr().out


def test_a_session_that_two_see_is_learned_from_once(agent: FakeAgent) -> None:
    """The plugin reads the client's transcript, the proxy its own of the same session."""
    agent.hook("Stop", agent.transcript("one", PASSING))
    agent.rest()
    mirrored = agent.transcript("mirrored", PASSING)
    note_turn(at(agent), mirrored, "one", ended=True)
    agent.rest()
    assert len(agent.runs) == 1
    note_turn(at(agent), mirrored, "another", ended=True)
    agent.rest()
    assert len(agent.runs) > 1


def test_off_stops_it_within_a_call(agent: FakeAgent) -> None:
    project = at(agent)
    model = background_model(project)
    assert model is not None
    note_turn(project, agent.transcript("one", PASSING), "one", ended=True)
    agent.rest()
    switch(project, on=False)
    agent.hook("Stop", agent.transcript("two", PASSING))
    note_turn(project, agent.transcript("three", PASSING), "three", ended=True)
    work(Project.personal(home=agent.home, environ=agent.environ))
    agent.rest()
    assert len(agent.runs) == 1
    with pytest.raises(NotAvailable, match="switched off"):  # also one that was made before
        anyio.run(complete, model, request("hello"))


def test_row_95_forty_sessions_that_end_at_once_are_run_one_by_one_within_the_limit(
    agent: FakeAgent,
) -> None:
    agent.plan()
    agent.environ["REVERIE_CLI_DAILY_CALLS"] = "5"
    talks = [agent.transcript(f"s{n}", f"{PASSING} That is for part {n}.") for n in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda talk: note_turn(at(agent), talk, talk.stem, ended=True), talks))
    agent.rest()
    runs = sorted(agent.runs, key=lambda run: run["from"])
    assert (len(runs), len(agent.due)) == (5, 35)
    assert all(one["to"] <= two["from"] for one, two in pairwise(runs))


@pytest.mark.parametrize("event", ["Stop", "PreCompact", "SessionEnd", "SessionStart"])
def test_inside_an_agent_that_is_asked_nothing_answers(agent: FakeAgent, event: str) -> None:
    cue = "From now on, always deploy from the release branch."
    agent.hook(event, agent.transcript("one", cue), REVERIE_INSIDE="1")
    assert agent.alive() == []
    assert not (agent.home / "agent").exists()
    assert agent.memory.list() == []


def test_a_session_with_nobody_there_is_not_learned_from(agent: FakeAgent) -> None:
    talk = agent.transcript("one", PASSING)
    agent.hook("Stop", talk, CLAUDE_CODE_ENTRYPOINT="sdk-cli")
    agent.rest()
    assert agent.runs == []
    flag = {"REVERIE_FLAG_EXTRACT_NONINTERACTIVE": "1"}
    agent.hook("Stop", talk, CLAUDE_CODE_ENTRYPOINT="sdk-cli", **flag)
    agent.rest()
    assert len(agent.runs) == 1


def test_a_recording_of_our_own_work_teaches_nothing(tmp_path: Path) -> None:
    said = rows(("user", f"{MARK}\n\nFrom now on, always use tabs."), ("assistant", "x"))
    path = tmp_path / "own.jsonl"
    path.write_text(said.replace('"type": "user"', '"entrypoint":"sdk-cli","type":"user"'))
    with pytest.raises(ImportFailed, match="background work"):
        past_in(path, print)
    path.write_text(said.replace('"type": "user"', '"entrypoint":"cli","type":"user"'))
    assert past_in(path, print).entries


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({}, ""),
        ({"REVERIE_BACKGROUND_MODEL": "off", "ANTHROPIC_API_KEY": "k"}, ""),
        ({"REVERIE_BACKGROUND_MODEL": "auto", "ANTHROPIC_API_KEY": "k"}, "cli:claude"),
        (
            {
                "REVERIE_BACKGROUND_MODEL": "auto",
                "REVERIE_BACKGROUND_KEY": "ANTHROPIC_OWN",
                "ANTHROPIC_OWN": "k",
            },
            "anthropic:claude-haiku-4-5",
        ),
        ({"REVERIE_BACKGROUND_MODEL": "auto", "REVERIE_CLI_PATH": "/no/such"}, ""),
        ({"REVERIE_BACKGROUND_MODEL": "auto", "REVERIE_INSIDE": "1"}, ""),
    ],
)
def test_auto_takes_a_key_that_our_settings_name_then_the_agent_then_rules(
    tmp_path: Path, environ: dict[str, str], name: str
) -> None:
    agent = FakeAgent(tmp_path, environ={"PATH": "/usr/bin:/bin"})
    assert background_name(at(agent, **environ)) == name


def test_a_key_that_only_lies_in_the_clients_environment_is_not_used(agent: FakeAgent) -> None:
    given = {"REVERIE_BACKGROUND_MODEL": "anthropic:claude-haiku-4-5", "ANTHROPIC_API_KEY": "k"}
    with pytest.raises(InvalidInput, match="no key is named"):
        background_model(at(agent, **given))
    named = background_model(at(agent, **given, REVERIE_BACKGROUND_KEY="ANTHROPIC_API_KEY"))
    assert named is not None
    assert named.name == "claude-haiku-4-5"


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGKILL])
def test_with_the_worker_its_agent_ends_and_the_next_goes_on(
    agent: FakeAgent, sign: signal.Signals
) -> None:
    agent.plan(seconds=60, deaf=True)
    talk = agent.transcript("one", PASSING)
    agent.hook("Stop", talk)
    until = time.monotonic() + 30
    while not any(str(agent.program) in line for line in agent.alive()):
        assert time.monotonic() < until
        time.sleep(0.05)
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        if b"reverie.clients.background" in path.read_bytes() and is_of(agent, path.parent):
            os.kill(int(path.parent.name), sign)
    agent.rest(10)
    assert len(agent.due) == 1
    agent.plan(result={"result": LEARNED})
    agent.hook("SessionEnd", talk)
    agent.rest()
    assert agent.due == []
    assert any("linter" in one.text for one in agent.memory.list())


def is_of(agent: Place, process: Path) -> bool:
    return f"REVERIE_HOME={agent.home}\0".encode() in (process / "environ").read_bytes()
