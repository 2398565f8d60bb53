"""What a repository's own settings say can neither weaken a guard nor spend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reverie.settings import DEFAULTS, SETTINGS, LoadedSettings, camel
from tests.settings.test_settings_load import Place, said

pytestmark = pytest.mark.spec("15.committed")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def outcomes(place: Place, **given: object) -> LoadedSettings:
    place.write("project", {camel(name): value for name, value in given.items()})
    return place.load()


def weakening(name: str) -> Any:
    """A value that a committed file must not be able to give; None where there is no other."""
    known, default = SETTINGS[name], getattr(DEFAULTS, name)
    if known.kind == "switch":
        return not default if known.committed == "never" else True
    others: dict[str, Any] = {"text": "words", "folder": "/srv/some/where"}
    if known.kind in others:
        return others[known.kind]
    if known.kind == "choice":
        return next(one for one in known.choices if one != default)
    if known.committed == "more":
        return known.low if known.low < default else None
    if known.committed == "less" and known.high == default:
        return None
    value = known.high if default is None or known.high > default else known.low
    value = int(value) if known.kind == "whole" else value
    return value if value != default else None


def allowed(name: str) -> Any:
    """A value in the direction that a committed file may go."""
    known, default = SETTINGS[name], getattr(DEFAULTS, name)
    if known.kind == "switch":
        return False
    value = (default + known.low) / 2 if known.committed == "less" else default * 2 + 1
    return int(value) if known.kind == "whole" else value


BOUND = [name for name, known in SETTINGS.items() if known.committed != "free"]
ONE_WAY = [name for name in BOUND if SETTINGS[name].committed != "never"]


@pytest.mark.parametrize("name", BOUND)
def test_a_committed_value_that_weakens_or_spends_is_not_taken_and_told(
    place: Place, name: str
) -> None:
    value = weakening(name)
    if value is None or (SETTINGS[name].kind == "switch" and value == getattr(DEFAULTS, name)):
        assert SETTINGS[name].low == SETTINGS[name].high or SETTINGS[name].committed != "never"
        return
    loaded = outcomes(place, **{name: value})
    assert loaded.settings == DEFAULTS
    assert f"{camel(name)}: ignored: a file that the repository may have brought" in said(loaded)


@pytest.mark.parametrize("name", BOUND)
@pytest.mark.parametrize("source", ["policy", "local", "user"])
def test_trusted_files_can(place: Place, name: str, source: str) -> None:
    value = weakening(name)
    if value is None:
        return
    place.write(source, {camel(name): value})
    if source == "local":
        place.trust()
    loaded = place.load()
    assert getattr(loaded.settings, name) == value or "lowered to" in said(loaded)
    assert "ignored" not in said(loaded)


@pytest.mark.parametrize("name", ONE_WAY)
def test_the_stricter_way_stands_open(place: Place, name: str) -> None:
    loaded = outcomes(place, **{name: allowed(name)})
    assert getattr(loaded.settings, name) == allowed(name)
    assert "ignored" not in said(loaded)


@pytest.mark.parametrize("name", ONE_WAY)
def test_what_the_user_made_stricter_a_repository_cannot_loosen(place: Place, name: str) -> None:
    """A committed value is compared with the one that holds without it, not with the default."""
    value = allowed(name)
    place.write("user", {camel(name): value})
    loaded = outcomes(place, **{name: getattr(DEFAULTS, name)})
    assert getattr(loaded.settings, name) == value or value == getattr(DEFAULTS, name)
    assert loaded.origins[name].source == "user" or value == getattr(DEFAULTS, name)


def test_what_guards_writes_and_spending_is_never_the_repositorys() -> None:
    never = {name for name, known in SETTINGS.items() if known.committed == "never"}
    assert {
        "auto_memory_directory",
        "auto_memory_enabled",
        "background_tokens_per_day",
        "context_window",
        "default_window",
        "hook_seconds",
        "memory_path_override",
        "remote_memory_dir",
        "retention_days",
        "selector_model",
        "simple",
        "summary_model",
    } <= never
    assert {name for name, known in SETTINGS.items() if known.committed == "free"} == {
        "context_policy"
    }
    assert {name for name, known in SETTINGS.items() if known.committed == "more"} == {
        "agent_summary_seconds",
        "dream_hours",
        "dream_scan_minutes",
        "dream_sessions",
        "extract_every",
        "notes_first_tokens",
        "notes_growth_tokens",
        "notes_tool_calls",
        "recall_min_words",
    }


def test_two_committed_files_only_tighten_each_other(place: Place) -> None:
    place.write("project", {"toolSeconds": 10})
    place.write("local", {"toolSeconds": 60})
    loaded = place.load()
    assert loaded.settings.tool_seconds == 10
    assert "can only lower this; it is 10" in said(loaded)


def test_policy_and_environment_stand_above_all_of_it(place: Place) -> None:
    place.write("project", {"toolSeconds": 10})
    place.environ["REVERIE_TOOL_SECONDS"] = "500"
    assert place.load().settings.tool_seconds == 500
