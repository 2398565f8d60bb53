from __future__ import annotations

import json
from pathlib import Path

import pytest

from reverie.settings import SETTINGS
from tests.cli.conftest import Run, assert_private

pytestmark = [pytest.mark.spec("18"), pytest.mark.spec("15")]

KEYS = {
    "name",
    "key",
    "variable",
    "value",
    "default",
    "source",
    "place",
    "trusted",
    "committed",
    "section",
    "about",
}


def test_every_setting_with_its_source(run: Run, home: Path, project: Path) -> None:
    found = run("config", "--json").json()
    assert set(found) == {"home", "root", "settings", "problems"}
    assert (found["home"], found["root"]) == (str(home), str(project))
    assert [row["name"] for row in found["settings"]] == list(SETTINGS)
    assert all(set(row) == KEYS for row in found["settings"])
    assert {row["source"] for row in found["settings"]} == {"default"}
    assert run("config", "list", "--json").json() == found
    assert run("config", "--json", "list").json() == found
    assert not home.exists()


def test_a_value_names_who_gave_it(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.mkdir(0o700)
    (home / "settings.json").write_text('{"retentionDays": 7}')
    monkeypatch.setenv("REVERIE_RESULT_CHARACTERS", "123456")
    found = run("config", "get", "retentionDays", "--json").json()
    assert (found["value"], found["source"]) == (7, "user")
    assert found["place"] == str(home / "settings.json")
    assert run("config", "get", "REVERIE_RESULT_CHARACTERS").out == "123456\n"
    changed = run("config", "--changed", "--json").json()["settings"]
    assert {row["name"] for row in changed} == {"retention_days", "result_characters"}


def test_a_bad_setting_names_file_key_and_reason(run: Run, home: Path, project: Path) -> None:
    (project / ".reverie").mkdir()
    place = project / ".reverie" / "settings.json"
    place.write_text('{"retentionDays": 1, "indexLines": "many", "colour": 1}')
    problems = run("config", "--json").json()["problems"]
    assert {p["key"] for p in problems} == {"retentionDays", "indexLines", "colour"}
    assert {p["place"] for p in problems} == {str(place)}
    assert {p["level"] for p in problems} == {"error", "warning"}
    human = run("config", code=0)
    assert "3 values were rejected or changed" in human.err
    assert str(place) in human.err
    assert run("config", "get", "indexLines", "--json").json()["problems"][0]["reason"]


def test_an_unknown_setting_is_refused_with_the_nearest(run: Run) -> None:
    done = run("config", "get", "retentionDay", code=2)
    assert "Did you mean retentionDays?" in done.err


def test_the_files_strongest_first(run: Run, project: Path) -> None:
    (project / ".reverie").mkdir()
    (project / ".reverie" / "settings.local.json").write_text('{"recallFiles": 2}')
    files = run("config", "path", "--json").json()["files"]
    assert [file["source"] for file in files] == ["policy", "local", "project", "user"]
    assert [file["exists"] for file in files] == [False, True, False, False]
    assert [file["trusted"] for file in files] == [True, False, False, True]
    assert "nobody has approved it" in files[1]["problems"][0]
    human = run("config", "path")
    assert ".reverie/settings.local.json" in human.out
    assert "not trusted: nobody has approved it" in human.err


def test_another_project(run: Run, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / ".reverie").mkdir(parents=True)
    (other / ".reverie" / "settings.json").write_text(json.dumps({"indexLines": 11}))
    assert run("config", "get", "indexLines", "--project", other).out == "11\n"


def test_the_page_for_people(run: Run) -> None:
    lines = run("config").out.splitlines()
    assert lines[0].split() == ["setting", "value", "source", "place", "what", "for"]
    assert len(lines) == len(SETTINGS) + 1
    assert all(text == text.rstrip() for text in lines)


def test_set_and_unset_keep_what_else_the_file_holds(run: Run, home: Path) -> None:
    assert run("config", "unset", "retentionDays").out == "retentionDays is 90 (default)\n"
    assert not home.exists()
    assert run("config", "set", "retention_days", "30").out == "retentionDays is 30 (user)\n"
    assert_private(home)
    file = home / "settings.json"
    file.write_text('{"hooks": {"x": []}, "retention_days": 30}')
    found = run("config", "set", "REVERIE_RETENTION_DAYS", "31", "--json").json()
    assert (found["value"], found["source"], found["problems"]) == (31, "user", [])
    assert json.loads(file.read_text()) == {"hooks": {"x": []}, "retentionDays": 31}
    run("config", "unset", "retentionDays", code=0)
    assert json.loads(file.read_text()) == {"hooks": {"x": []}}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("retentionDay", "5", "Did you mean retentionDays?"),
        ("retentionDays", "soon", "must be a number"),
        ("retentionDays", "0", "must lie between"),
    ],
)
def test_what_cannot_be_set_is_refused(
    run: Run, home: Path, name: str, value: str, said: str
) -> None:
    assert said in run("config", "set", name, value, code=2).err
    assert not home.exists()


def test_a_settings_file_that_cannot_be_read_is_left_alone(run: Run, home: Path) -> None:
    home.mkdir(mode=0o700)
    file = home / "settings.json"
    file.write_text("{ // mine\n}")
    assert "cannot be changed" in run("config", "set", "retentionDays", "30", code=2).err
    assert file.read_text() == "{ // mine\n}"


def test_a_stronger_source_is_named(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REVERIE_RETENTION_DAYS", "3")
    done = run("config", "set", "retentionDays", "30")
    assert done.out == "retentionDays is 3 (environment)\n"
    assert "takes precedence over settings.json" in done.err
