"""`reverie memory rules`."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from reverie.rules import FOLDER

from .conftest import Run

DAY = 86_400.0
PUSH = json.dumps({"command": "git push -f"})


@pytest.mark.spec("B20.cli")
def test_the_command_line_lists_tests_and_sets_rules(run: Run) -> None:
    assert "No rules yet" in run("memory", "rules", code=0).out
    run("memory", "add", "Never git push --force.", "--type", "feedback", "--name", "push")
    (row,) = run("memory", "rules", "--json").json()["rules"]
    assert (row["level"], row["read_from"], row["source"]) == ("remind", "sentence", "user")
    assert row["applies_to"] == {"commands": ["git push"], "has": ["--force or -f"]}
    test = ("memory", "rules", "test", "--tool", "Bash", "--input")
    found = run(*test, PUSH, "--json").json()["matched"]
    assert [(one["name"], one["level"]) for one in found] == [("push", "remind")]
    assert run(*test, '{"command": "ls"}', "--json").json() == {"matched": []}
    assert "No rule" in run(*test, '{"command": "ls"}', code=0).out
    run("memory", "rules", "level", "push", "block", code=0)
    (row,) = run("memory", "rules", "--json").json()["rules"]
    assert (row["level"], row["notes"]) == ("block", [])
    assert "push" in run("memory", "rules", code=0).out
    assert run(*test, "{").code == 2
    assert run("memory", "rules", "level", "push", "shout").code == 2


@pytest.mark.spec("B20.cli")
def test_a_level_that_an_agent_wrote_is_told_until_the_user_says_so(run: Run, home: Path) -> None:
    run("memory", "add", "Never git push --force.", "--type", "feedback", "--name", "push")
    (file,) = home.rglob("feedback_push.md")
    file.write_text(file.read_text().replace("type: feedback", "type: feedback\nlevel: block"))
    (row,) = run("memory", "rules", "--json").json()["rules"]
    assert row["level"] == "remind"
    assert "`reverie memory rules level feedback_push.md block`" in row["notes"][0]
    run("memory", "rules", "level", "push", "block", code=0)
    (row,) = run("memory", "rules", "--json").json()["rules"]
    assert (row["level"], row["notes"]) == ("block", [])


@pytest.mark.spec("B20.cli")
def test_what_is_forgotten_is_not_left_in_the_compiled_rules(run: Run, home: Path) -> None:
    run("memory", "add", "Never run `make zanzibar`.", "--type", "feedback", "--name", "rule")
    assert list((home / FOLDER).glob("*.rules"))
    run("memory", "forget", "zanzibar", "--yes")
    assert not [p for p in home.rglob("*") if p.is_file() and b"zanzibar" in p.read_bytes()]


@pytest.mark.spec("B20.cli")
def test_stats_sum_up_what_rules_did(run: Run, home: Path, project: Path) -> None:
    run("memory", "add", "Never git push --force.", "--type", "feedback", "--name", "push")
    (rules,) = (home / FOLDER).glob("*.rules")
    row = {"at": 1_800_000_000, "rule": "feedback_push.md", "event": "held"}
    torn = '{"at": 1'
    rules.with_suffix(".ledger").write_text(f"{json.dumps(row)}\n{torn}\n{json.dumps(row)}\n")
    assert run("stats", "--all", "--json").json()["rules"] == {"held": 2}
    assert "what rules did" in run("stats", "--all", code=0).out
    (row,) = run("memory", "rules", "--json").json()["rules"]
    assert row["counts"]["held"] == 2
    assert row["counts"]["days"] == {"2027-01-15": {"held": 2}}


@pytest.mark.spec("B20.cli")
@pytest.mark.spec("B20.check")
def test_a_rule_that_no_call_went_against_for_long_is_told(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.time()
    run("memory", "add", "Never git push --force.", "--type", "feedback", "--name", "push")
    assert run("memory", "check", "--json").json()["idle_rules"] == []
    monkeypatch.setattr(time, "time", lambda: began + 91 * DAY)
    (row,) = run("memory", "rules", "--json").json()["rules"]
    assert "no call has gone against it since" in row["notes"][0]
    found = run("memory", "check", "--json").json()
    assert (found["idle_rules"], found["score"]) == (["feedback_push.md"], 100)  # no fault
    assert "no call has gone against it" in run("memory", "check", code=0).err
    (rules,) = (home / FOLDER).glob("*.rules")
    matched = {"at": began + 80 * DAY, "rule": "feedback_push.md", "event": "matched"}
    rules.with_suffix(".ledger").write_text(f"{json.dumps(matched)}\n")
    assert run("memory", "check", "--json").json()["idle_rules"] == []
    run("memory", "rules", "level", "push", "off", code=0)
    rules.with_suffix(".ledger").unlink()
    assert run("memory", "check", "--json").json()["idle_rules"] == []
