"""A rule that had to be said three times: a person is asked whether it may do more."""

from __future__ import annotations

import builtins
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from reverie.agent import AgentOptions
from reverie.apps.cli import ChatController, ExitChat, InteractiveSession, LineScreen, standard
from reverie.settings import DEFAULTS
from reverie.store import MemoryStore, Project, RuleCounts, list_rules, offer_of, offers
from tests.loop.stage import simulated
from tests.rules.stage import push_rule

pytestmark = pytest.mark.spec("B20.said-again")
LATER = "enter later"


def memories_of(tmp: Path) -> MemoryStore:
    environ = {"HOME": str(tmp)}
    return MemoryStore.of(
        Project.at(tmp / "project", home=tmp / "home", environ=environ, settings=DEFAULTS),
        now=lambda: 1.0,
    )


@pytest.fixture
def tmp(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    with memories_of(tmp_path) as memories:
        push_rule(memories, 'remind\nsaid: "2026-05-29, 2026-05-31"')
    return tmp_path


def typed(
    tmp: Path, lines: Iterable[str], monkeypatch: pytest.MonkeyPatch, **flags: str
) -> list[str]:
    """A conversation in which a person types these lines; the prompts they were shown."""
    prompts: list[str] = []
    waiting = iter(lines)

    def read(prompt: str = "") -> str:
        prompts.append(prompt)
        try:
            return next(waiting)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr(builtins, "input", read)
    environ = {"HOME": str(tmp), **flags}
    wanted = AgentOptions(tmp / "project", home=tmp / "home", environ=environ)
    screen = LineScreen()
    with (
        ChatController(screen).open(wanted, simulated(otherwise="fine")) as desk,
        pytest.raises(ExitChat),
    ):
        InteractiveSession(desk, screen, standard()).run()
    return prompts


def level(tmp: Path) -> str:
    with memories_of(tmp) as memories:
        (row,) = list_rules(memories, tmp / "project")
    return row.rule.get("level", "")


def asked(prompts: list[str]) -> int:
    return sum(LATER in one for one in prompts)


def test_a_yes_at_the_end_of_a_turn_raises_the_level(
    tmp: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prompts = typed(tmp, ["hello", "y", "more"], monkeypatch)
    assert [LATER in one for one in prompts] == [False, True, False, False]
    shown = " ".join(capsys.readouterr().out.split())
    assert "Said 3 times: Never push to main: it deploys. Be asked before calls that break" in shown
    assert level(tmp) == "ask"
    assert asked(typed(tmp, ["hello"], monkeypatch)) == 1  # now to block them: another question
    assert level(tmp) == "ask"


def test_a_no_is_kept_and_what_waits_is_asked_in_the_next_session(
    tmp: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked(typed(tmp, ["hello", "", "more", "again"], monkeypatch)) == 1
    prompts = typed(tmp, ["hello", "say something else"], monkeypatch)
    assert [LATER in one for one in prompts] == [False, True, False]
    assert capsys.readouterr().out.count("fine") == 3 + 2  # typed ahead, it was a turn of its own
    assert asked(typed(tmp, ["hello", "n", "more"], monkeypatch)) == 1
    assert asked(typed(tmp, ["hello", "more"], monkeypatch)) == 0
    assert level(tmp) == "remind"


def test_with_a_prompt_on_the_command_line_or_rules_off_nothing_is_asked(
    tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asked(typed(tmp, ["hello"], monkeypatch, REVERIE_FLAG_RULES="0")) == 0
    monkeypatch.setenv("REVERIE_HOME", str(tmp / "home"))
    monkeypatch.chdir(tmp / "project")
    line = [sys.executable, "-m", "reverie.apps.cli", "-p", "hello", "--model", "embedded"]
    done = subprocess.run(line, input="y\n", capture_output=True, text=True, check=True)
    assert done.stdout.strip()
    assert "Said 3 times" not in done.stdout + done.stderr
    assert level(tmp) == "remind"


def test_only_the_users_own_rules_are_offered_more() -> None:
    rule = {"file": "a.md", "level": "remind", "source": "user", "said": 3, "text": "Never"}
    offer = offer_of(rule, None)  # pyright: ignore[reportArgumentType]
    assert offer is not None
    assert (offer.level, offer.question.partition(":")[0]) == ("ask", "Said 3 times")
    for other in ({"source": "team"}, {"said": 2}, {"level": "block"}, {"level": "off"}):
        assert offer_of({**rule, **other}, None) is None  # pyright: ignore[reportArgumentType]
    declined = {"a.md": RuleCounts("a.md", {"declined": 1}, {})}
    assert offers([rule], declined) == []  # pyright: ignore[reportArgumentType]
    more = {**rule, "file": "b.md", "said": 5}
    assert [one.file for one in offers([rule, more], {})] == ["b.md", "a.md"]  # pyright: ignore[reportArgumentType]
    assert json.dumps(offer.text) == '"Never."'
