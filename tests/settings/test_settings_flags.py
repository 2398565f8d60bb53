"""Kill switches: who may throw them, and that they act at the next look."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.errors import SettingsError
from reverie.settings import FLAGS, Flags, Settings, flag_named, parse_flag, with_flag
from tests.settings.test_settings_load import Place as SettingsPlace

pytestmark = pytest.mark.spec("15")

SPEC_15: dict[str, tuple[object, tuple[str, ...]]] = {
    "session_memory": (True, ("tengu_session_memory",)),
    "session_memory_compaction": (True, ("tengu_sm_compact",)),
    "session_memory_config": ({}, ("tengu_sm_config",)),
    "dream": (True, ("tengu_onyx_plover",)),
    "extract_memories": (True, ("tengu_passport_quail", "EXTRACT_MEMORIES")),
    "extract_noninteractive": (False, ("tengu_slate_thimble",)),
    "extraction_exclusive": (False, ()),
    "skip_index": (False, ()),
    "extract_every": (1, ("tengu_bramble_lintel",)),
    "time_microcompact": (True, ("tengu_slate_heron",)),
    "cache_edit_microcompact": (True, ("CACHED_MICROCOMPACT",)),
    "tool_result_thresholds": ({}, ("tengu_satin_quoll",)),
    "recall": (True, ("tengu_moth_copse",)),
    "search_past": (True, ("tengu_coral_fern",)),
    "team_memory": (False, ("TEAMMEM",)),
    "daily_log": (False, ("KAIROS",)),
    "context_collapse": (True, ("CONTEXT_COLLAPSE",)),
    "rules": (True, ()),
    "history_snip": (True, ("HISTORY_SNIP",)),
}
SWITCHES = [name for name, flag in FLAGS.items() if flag.kind == "switch"]


@dataclass
class Place(SettingsPlace):
    """Flags whose files lie in a folder of their own."""

    environ: dict[str, str] = field(default_factory=dict[str, str])

    def path(self, source: str) -> Path:
        return self.base / "home" / "flags.json" if source == "flags" else super().path(source)

    def write(self, source: str, content: object, *, trust: bool = False) -> Path:
        path = super().write(source, content if source == "flags" else {"flags": content})
        if trust:
            self.trust()
        return path

    def flags(self, **more: Any) -> Flags:
        home, root = self.base / "home", self.base / "repo"
        return Flags(self.environ, home=home, root=root, policy=self.path("policy"), **more)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_all_flags_with_their_defaults_and_aliases(place: Place) -> None:
    assert list(FLAGS) == list(SPEC_15)
    flags = place.flags()
    for name, (default, aliases) in SPEC_15.items():
        assert flags.get(name) == default
        assert FLAGS[name].aliases == aliases
        for alias in aliases:
            assert flag_named(alias) is FLAGS[name]


def test_strongest_source_answers(place: Place) -> None:
    flags = place.flags()
    assert flags.number("extract_every") == 1
    for number, source in enumerate(("user", "local", "flags"), start=2):
        place.write(source, {"extract_every": number}, trust=source == "local")
        assert flags.number("extract_every") == number
    place.environ["REVERIE_FLAG_EXTRACT_EVERY"] = "5"
    assert flags.number("extract_every") == 5
    flags.set("extract_every", 6)
    assert flags.number("extract_every") == 6
    place.write("policy", {"extract_every": 7})
    assert flags.number("extract_every") == 7


def test_snapshot_says_who_gave_what(place: Place) -> None:
    path = place.write("flags", {"dream": False})
    place.environ["KAIROS"] = "on"
    flags = place.flags()
    flags.set("recall", False)
    shown = flags.snapshot()
    assert list(shown) == list(FLAGS)
    assert shown["dream"].value is False
    assert (shown["dream"].origin.source, shown["dream"].origin.place) == ("flags", str(path))
    assert (shown["daily_log"].value, shown["daily_log"].origin.place) == (True, "KAIROS")
    assert shown["recall"].origin.source == "override"
    assert shown["history_snip"].origin.source == "default"


def test_an_override_and_a_variable_act_at_once_and_can_be_taken_back(place: Place) -> None:
    flags = place.flags()
    flags.set("tengu_onyx_plover", False)
    assert flags.on("dream") is False
    flags.clear("dream")
    assert flags.on("dream") is True
    place.environ["REVERIE_FLAG_DREAM"] = "off"
    assert flags.on("dream") is False
    del place.environ["REVERIE_FLAG_DREAM"]
    assert flags.on("dream") is True


def test_a_file_changed_by_others_acts_at_the_next_look(place: Place) -> None:
    flags = place.flags()
    for number in range(2, 9):
        path = place.write("flags", {"extract_every": number})
        assert flags.number("extract_every") == number
        other = path.with_suffix(".new")
        other.write_text(json.dumps({"extract_every": number + 10}))
        other.rename(path)
        assert flags.number("extract_every") == number + 10
    (place.base / "home" / "flags.json").unlink()
    assert flags.number("extract_every") == 1


def test_rewriting_a_file_in_place_at_the_same_size_is_seen(place: Place) -> None:
    flags = place.flags()
    for number in range(100, 400):
        place.write("flags", {"extract_every": number})
        assert flags.number("extract_every") == number


def test_a_settled_file_is_read_again_only_when_its_stamp_changes(place: Place) -> None:
    path = place.write("flags", {"extract_every": 2})
    os.utime(path, (1_000_000_000, 1_000_000_000))
    flags = place.flags()
    assert flags.number("extract_every") == 2
    path.write_text(json.dumps({"extract_every": 3}))
    os.utime(path, (1_000_000_001, 1_000_000_001))
    assert flags.number("extract_every") == 3


@pytest.mark.parametrize("name", FLAGS)
def test_aliases_are_names_everywhere(place: Place, name: str) -> None:
    value: Any = {
        "switch": not FLAGS[name].default,
        "whole": 9,
        "object": {"notes_first_tokens": 9},
    }[FLAGS[name].kind]
    for alias in FLAGS[name].aliases:
        for key in (alias, f"REVERIE_FLAG_{alias.upper()}"):
            assert Place(place.base, {key: json.dumps(value)}).flags().get(name) == value
        assert json.loads(with_flag("", alias, value)) == {name: value}
        place.write("user", {alias: value})
        assert place.flags().get(alias) == value


def test_our_name_goes_before_its_alias(place: Place) -> None:
    place.environ |= {"KAIROS": "1", "REVERIE_FLAG_DAILY_LOG": "0"}
    place.write("user", {"tengu_onyx_plover": True, "dream": False})
    assert place.flags().on("daily_log") is False
    assert place.flags().on("dream") is False


@pytest.mark.parametrize("name", SWITCHES)
@pytest.mark.parametrize("source", ["project", "local"])
def test_a_repository_can_only_switch_off(place: Place, name: str, source: str) -> None:
    flags = place.flags()
    place.write(source, {name: False})
    assert flags.on(name) is (False if FLAGS[name].committed_off else FLAGS[name].default)
    place.write(source, {name: True})
    assert flags.get(name) == FLAGS[name].default
    assert any("can only switch off" in str(problem) for problem in flags.problems())


def test_a_repository_cannot_switch_off_what_saves_money_or_guards(place: Place) -> None:
    dear = {name: False for name, flag in FLAGS.items() if not flag.committed_off}
    assert set(dear) == {
        "session_memory_compaction",
        "time_microcompact",
        "cache_edit_microcompact",
        "rules",
    }
    place.write("project", dear)
    flags = place.flags()
    assert all(flags.on(name) for name in dear)
    assert len(flags.problems()) == len(dear)


@pytest.mark.parametrize(
    "given", [{"extract_every": 50}, {"tool_result_thresholds": {"Bash": 9}}, {"KAIROS": True}]
)
def test_a_repository_cannot_set_values(place: Place, given: dict[str, Any]) -> None:
    place.write("project", given)
    flags = place.flags()
    assert all(state.value == state.flag.default for state in flags.snapshot().values())
    assert flags.problems()


def test_a_local_file_that_the_user_approved_can(place: Place) -> None:
    path = place.write("local", {"team_memory": True})
    flags = place.flags()
    assert flags.on("team_memory") is False
    for file in (path, path.parent):
        os.utime(file, (1_000_000_000, 1_000_000_000))
    assert flags.on("team_memory") is False
    place.write("local", {"team_memory": True}, trust=True)
    assert flags.on("team_memory") is True
    place.write("local", {"team_memory": True, "dream": True})
    assert flags.on("team_memory") is False


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"dream": "no"}, "flags.dream: must be true or false"),
        ({"extract_every": 0}, "must be a whole number from 1 on"),
        ({"extract_every": True}, "must be a whole number from 1 on"),
        ({"tool_result_thresholds": []}, "must be an object"),
        ({"tool_result_thresholds": {"Bash": "x"}}, "Bash must be a whole number"),
        ({"session_memory_config": {"notes_frist_tokens": 1}}, "did you mean notes_first_tokens?"),
        ({"session_memory_config": {"notes_first_tokens": -1}}, "must be a whole number between"),
        ({"draem": False}, "unknown flag; did you mean dream?"),
        ([], "flags: not a JSON object"),
    ],
)
def test_bad_flags_are_reported_and_passed_over(place: Place, given: object, reason: str) -> None:
    path = place.write("user", given)
    flags = place.flags()
    assert all(state.value == state.flag.default for state in flags.snapshot().values())
    (problem,) = flags.problems()
    assert str(path) in str(problem)
    assert reason in str(problem)


@pytest.mark.parametrize(
    ("source", "text", "said"),
    [
        ("flags", '{"dream": false', "not JSON"),
        ("user", '{"flags": {"dream": false, "dream": true}}', "flags.dream: given twice"),
    ],
)
def test_a_broken_file_is_reported(place: Place, source: str, text: str, said: str) -> None:
    place.write(source, {}).write_text(text)
    flags = place.flags()
    assert flags.on("dream") is True
    assert said in str(flags.problems()[0])


def test_bad_variables_are_reported(place: Place) -> None:
    place.environ |= {"REVERIE_FLAG_DREAM": "maybe", "tengu_satin_quoll": "{", "KAIROS": " "}
    flags = place.flags()
    assert flags.on("dream") is True
    assert flags.table("tool_result_thresholds") == {}
    assert {problem.key for problem in flags.problems()} == {
        "REVERIE_FLAG_DREAM",
        "tengu_satin_quoll",
    }


def test_good_parts_of_an_object_are_kept(place: Place) -> None:
    place.write("user", {"tool_result_thresholds": {"Bash": 9, "Grep": "many"}})
    flags = place.flags()
    assert flags.table("tool_result_thresholds") == {"Bash": 9}
    assert len(flags.problems()) == 1


def test_notes_config_knows_three_spellings(place: Place) -> None:
    place.environ["tengu_sm_config"] = json.dumps(
        {"minimumMessageTokensToInit": 1, "notesGrowthTokens": 2, "notes_tool_calls": 4}
    )
    config = place.flags().table("session_memory_config")
    changed = Settings().with_notes(config)
    assert changed.notes_first_tokens == 1
    assert changed.notes_growth_tokens == 2
    assert changed.notes_tool_calls == 4


def test_the_setting_is_the_flags_default(place: Place) -> None:
    assert place.flags(settings=Settings(extract_every=3)).number("extract_every") == 3


def test_asking_for_the_wrong_thing(place: Place) -> None:
    flags = place.flags()
    with pytest.raises(SettingsError, match="Did you mean dream"):
        flags.get("draem")
    with pytest.raises(SettingsError, match="reverie flags"):
        flags.set("qqqqqqqq", True)
    with pytest.raises(SettingsError, match="not a switch"):
        flags.on("extract_every")
    with pytest.raises(SettingsError, match="not a number"):
        flags.number("dream")
    with pytest.raises(SettingsError, match="not a object"):
        flags.table("dream")
    with pytest.raises(SettingsError, match="must be true or false"):
        flags.set("dream", 1)
    with pytest.raises(SettingsError, match="must be a whole number"):
        flags.set("tool_result_thresholds", {"Bash": 0})


def test_flags_from_a_command_line() -> None:
    assert parse_flag("dream", "off") is False
    assert parse_flag("extract_every", "3") == 3
    assert parse_flag("tool_result_thresholds", '{"Bash": 10}') == {"Bash": 10}
    with pytest.raises(SettingsError):
        parse_flag("tool_result_thresholds", '{"Bash": 10, "Grep": 0}')
    with pytest.raises(SettingsError):
        parse_flag("dream", "maybe")


def test_changing_the_text_of_the_flags_file() -> None:
    text = with_flag("", "dream", False)
    assert json.loads(text) == {"dream": False}
    text = with_flag(text, "tool_result_thresholds", {"Bash": 3})
    text = with_flag(text, "tengu_onyx_plover", None)
    assert json.loads(text) == {"tool_result_thresholds": {"Bash": 3}}
    assert json.loads(with_flag('{"KAIROS": true, "other": 1}', "daily_log", False)) == {
        "daily_log": False,
        "other": 1,
    }


@pytest.mark.parametrize("text", ["{", "[]", '{"dream": true, "dream": false}'])
def test_a_text_that_is_no_object_is_not_overwritten(text: str) -> None:
    with pytest.raises(SettingsError, match="cannot be changed"):
        with_flag(text, "dream", False)


values: Mapping[str, st.SearchStrategy[Any]] = {
    "switch": st.booleans(),
    "whole": st.integers(1, 1_000),
    "object": st.just({"notes_first_tokens": 5}),
}
changes = st.sampled_from(list(FLAGS.values())).flatmap(
    lambda flag: st.tuples(
        st.sampled_from((flag.name, *flag.aliases)), st.none() | values[flag.kind]
    )
)


@given(st.lists(changes, max_size=12))
def test_what_is_written_is_what_is_read(steps: list[tuple[str, Any]]) -> None:
    text, expected = "", {name: flag.default for name, flag in FLAGS.items()}
    for name, value in steps:
        text = with_flag(text, name, value)
        flag = flag_named(name)
        expected[flag.name] = flag.default if value is None else value
    with tempfile.TemporaryDirectory() as base:
        home = Path(base)
        (home / "flags.json").write_text(text or "{}")
        flags = Flags({}, home=home, policy=home / "none")
        assert {name: flags.get(name) for name in FLAGS} == expected
        assert flags.problems() == ()
