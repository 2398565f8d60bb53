"""Where settings come from, who is trusted, and that nothing bad ever raises."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.settings import (
    DEFAULTS,
    SETTINGS,
    LoadedSettings,
    camel,
    environment,
    folder_value,
    load,
    variable,
)
from reverie.store import decide

pytestmark = pytest.mark.spec("15")


@dataclass
class Place:
    """Settings files in a folder of their own."""

    base: Path
    environ: dict[str, str] = field(default_factory=lambda: {"HOME": "/home/user"})

    def trust(self) -> None:
        """The user approves the local file as it is."""
        path = self.path("local")
        decide(self.base / "home", path, path.read_bytes(), trusted=True)

    def write(self, source: str, content: object) -> Path:
        path = self.path(source)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def path(self, source: str) -> Path:
        return {
            "policy": self.base / "etc" / "settings.json",
            "local": self.base / "repo" / ".reverie" / "settings.local.json",
            "project": self.base / "repo" / ".reverie" / "settings.json",
            "user": self.base / "home" / "settings.json",
        }[source]

    def load(self) -> LoadedSettings:
        return load(
            self.environ,
            home=self.base / "home",
            root=self.base / "repo",
            policy=self.path("policy"),
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def said(loaded: LoadedSettings) -> str:
    return "\n".join(map(str, loaded.problems))


def test_nothing_given_is_the_defaults(place: Place) -> None:
    loaded = place.load()
    assert loaded.settings == DEFAULTS
    assert loaded.problems == ()
    assert {origin.source for origin in loaded.origins.values()} == {"default"}
    assert set(loaded.origins) == set(SETTINGS)


def test_the_environment_is_live(monkeypatch: pytest.MonkeyPatch) -> None:
    environ = environment()
    monkeypatch.setenv("REVERIE_RECALL_FILES", "3")
    assert environ["REVERIE_RECALL_FILES"] == "3"


def test_strongest_source_answers(place: Place) -> None:
    order = ["user", "project", "local", "environment", "policy"]
    for number, source in enumerate(order):
        if source == "environment":
            place.environ["REVERIE_RECALL_FILES"] = str(9 - number)
        else:
            place.write(source, {"recallFiles": 9 - number})
        if source == "local":
            place.trust()
        loaded = place.load()
        assert loaded.settings.recall_files == 9 - number
        assert loaded.origins["recall_files"].source == source
        assert loaded.problems == ()


def test_origin_names_the_place(place: Place) -> None:
    path = place.write("user", {"recallFiles": 1})
    place.environ["CLAUDE_CODE_SIMPLE"] = "1"
    loaded = place.load()
    assert loaded.origins["recall_files"].place == str(path)
    assert loaded.origins["simple"].place == "CLAUDE_CODE_SIMPLE"


@pytest.mark.parametrize("name", ["collapse_tail", "collapseTail"])
def test_both_spellings_are_read(place: Place, name: str) -> None:
    place.write("project", {name: 9_000})
    assert place.load().settings.collapse_tail == 9_000


def test_both_spellings_at_once_count_as_none(place: Place) -> None:
    place.write("project", {"collapse_tail": 9_000, "collapseTail": 8_000})
    place.write("user", {"collapseTail": 7_000})
    loaded = place.load()
    assert loaded.settings.collapse_tail == 7_000
    assert said(loaded).count("given twice") == 2


def test_without_a_root_there_are_three_sources(place: Place) -> None:
    place.write("user", {"recallFiles": 3})
    loaded = load({}, home=place.base / "home", root=None, policy=place.path("policy"))
    assert loaded.settings.recall_files == 3


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "not JSON"),
        ("", "not JSON"),
        ("[]", "not a JSON object"),
        ("3", "not a JSON object"),
        ('{"recallFiles": NaN}', "NaN is not a JSON number"),
        ('{"recallFiles": 1, "recallFiles": 2}', "recallFiles: given twice"),
        ('{"recallFiles": ' + "9" * 5_000 + "}", "not JSON"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deep"),
        (json.dumps({"x": "y" * 10_000_000}), "too large"),
        ({"recallFiles": "5"}, "recallFiles: must be a number, not '5'"),
        ({"recallFiles": True}, "must be a number, not true"),
        ({"recallFiles": None}, "must be a number, not null"),
        ({"recallFiles": 2.5}, "must be a whole number, not 2.5"),
        ({"recallFiles": -1}, "must lie between 0 and 100,000, not -1"),
        ({"recallFiles": {}}, "not an object"),
        ({"recallFiles": []}, "not a list"),
        ({"cacheBreakShare": 1.5}, "must lie between"),
        ({"autoCompactEnabled": "yes"}, "must be true or false"),
        ({"contextPolicy": "modern"}, "must be collapse or classic, not 'modern'"),
        ({"recalFiles": 3}, "unknown setting; did you mean recallFiles?"),
        ({"qqqqqq": 3}, "qqqqqq: unknown setting"),
    ],
)
def test_bad_settings_are_reported_and_passed_over(
    place: Place, content: object, reason: str
) -> None:
    path = place.write("project", content)
    place.write("user", {"recallFiles": 4, "autoCompactEnabled": False})
    loaded = place.load()
    assert loaded.settings.recall_files == 4
    assert loaded.settings.auto_compact_enabled is False
    assert str(path) in said(loaded)
    assert reason in said(loaded)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "must not be empty"),
        ("a\0b", "must not contain NUL"),
        ("\ud800", "not valid Unicode"),
    ],
)
def test_bad_names_are_reported_and_passed_over(place: Place, name: str, reason: str) -> None:
    path = place.write("user", {"summaryModel": name, "recallFiles": 4})
    loaded = place.load()
    assert (loaded.settings.summary_model, loaded.settings.recall_files) == (None, 4)
    assert f"{path}: summaryModel" in said(loaded)
    assert reason in said(loaded)


def test_unknown_keys_are_warnings(place: Place) -> None:
    place.write("user", {"nope": 1, "flags": {}, "$schema": "x"})
    (problem,) = place.load().problems
    assert (problem.level, problem.key) == ("warning", "nope")


def test_a_byte_order_mark_is_no_problem(place: Place) -> None:
    place.write("user", "\ufeff" + json.dumps({"recallFiles": 2}))
    assert place.load().settings.recall_files == 2


def test_files_that_are_none(place: Place) -> None:
    for source, make in (("user", os.mkdir), ("project", os.mkfifo)):
        path = place.path(source)
        path.parent.mkdir(parents=True, exist_ok=True)
        make(path)
    place.write("local", "x").write_bytes(b"\xff\xfe")
    place.path("policy").parent.mkdir()
    place.path("policy").symlink_to("settings.json")
    text = said(place.load())
    assert text.count("not a regular file") == 2
    assert "not UTF-8" in text
    assert "etc/settings.json: cannot be read" in text


@pytest.mark.parametrize("word", ["1", "true", "YES", " on "])
def test_words_that_switch_on(place: Place, word: str) -> None:
    place.environ["REVERIE_SIMPLE"] = word
    assert place.load().settings.simple is True


@pytest.mark.parametrize("word", ["0", "False", "no", "OFF", "", "  "])
def test_words_that_do_not(place: Place, word: str) -> None:
    place.environ["REVERIE_SIMPLE"] = word
    loaded = place.load()
    assert loaded.settings.simple is False
    assert loaded.problems == ()


ALIASES = {
    "REVERIE_DISABLE_AUTO_MEMORY": ("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1"),
    "REVERIE_SIMPLE": ("CLAUDE_CODE_SIMPLE", "1"),
    "REVERIE_REMOTE": ("CLAUDE_CODE_REMOTE", "1"),
    "REVERIE_REMOTE_MEMORY_DIR": ("CLAUDE_CODE_REMOTE_MEMORY_DIR", "/mnt/memory"),
    "REVERIE_MEMORY_PATH_OVERRIDE": ("CLAUDE_COWORK_MEMORY_PATH_OVERRIDE", "/mnt/memory"),
    "REVERIE_MEMORY_EXTRA_GUIDELINES": ("CLAUDE_COWORK_MEMORY_EXTRA_GUIDELINES", "be brief"),
}


@pytest.mark.parametrize(("ours", "alias", "text"), [(k, *v) for k, v in ALIASES.items()])
def test_aliases_mean_the_same(place: Place, ours: str, alias: str, text: str) -> None:
    place.environ[ours] = text
    named = place.load().settings
    del place.environ[ours]
    place.environ[alias] = text
    assert place.load().settings == named != DEFAULTS


def test_an_alias_never_overrides_our_name(place: Place) -> None:
    place.environ |= {"REVERIE_SIMPLE": "0", "CLAUDE_CODE_SIMPLE": "1"}
    assert place.load().settings.simple is False


@pytest.mark.parametrize("name", [n for n, k in SETTINGS.items() if k.kind in ("whole", "number")])
def test_every_number_has_a_variable(place: Place, name: str) -> None:
    known = SETTINGS[name]
    number = known.low if known.low != getattr(DEFAULTS, name) else known.high
    place.environ[variable(name)] = str(number)
    loaded = place.load()
    assert getattr(loaded.settings, name) == number
    assert loaded.origins[name].source == "environment"


@pytest.mark.parametrize("text", ["many", "nan", "inf", "1e400", "-1", "2.5", "\uff19", "9" * 50])
def test_bad_variables_are_reported(place: Place, text: str) -> None:
    place.environ["REVERIE_RECALL_FILES"] = text
    loaded = place.load()
    assert loaded.settings.recall_files == 5
    assert "environment: REVERIE_RECALL_FILES" in said(loaded)


def test_a_misspelt_variable_is_a_warning(place: Place) -> None:
    place.environ |= {"REVERIE_CONTXT_WINDOW": "1", "REVERIE_HOME": "/x/y", "REVERIE_OTHER": "1"}
    (problem,) = place.load().problems
    assert "did you mean REVERIE_CONTEXT_WINDOW?" in str(problem)


def test_numbers_that_must_stand_in_order(place: Place) -> None:
    place.write("user", {"collapseTail": 900})
    loaded = place.load()
    assert loaded.settings.collapse_kept == 900
    assert "collapseKept: lowered to 900" in said(loaded)


@pytest.mark.parametrize(
    "text",
    [
        "memory",
        "./memory",
        "../x/y",
        "/",
        "//",
        "/etc",
        "/etc/",
        "/etc/..",
        "/a/../b",
        "//server/share",
        "\\\\server\\share",
        "C:\\",
        "C:/Users/x",
        "~",
        "~/",
        "~/.",
        "~/..",
        "~/../..",
        "/home/user",
        "/home/user/",
        "/home/user/x/..",
        "~bob/x",
        "/a/b\0",
        "",
        "  ",
    ],
)
def test_folders_that_are_refused(text: str) -> None:
    value, reason = folder_value(text, {"HOME": "/home/user"})
    assert value is None
    assert reason


def test_folders_that_are_taken() -> None:
    environ = {"HOME": "/home/user"}
    assert folder_value("~/notes", environ) == ("/home/user/notes", "")
    assert folder_value("/mnt/a/../b", environ) == ("/mnt/b", "")
    assert folder_value("/home/user2", environ) == ("/home/user2", "")


@given(
    st.text(max_size=40)
    | st.from_regex(r"(~?/?(\.\./|\./|[a-c]/){0,4}[a-c.]{0,2})", fullmatch=True)
)
def test_a_taken_folder_is_never_wide(text: str) -> None:
    value, _ = folder_value(text, {"HOME": "/home/user"})
    if value is not None:
        assert os.path.isabs(value)
        assert value == os.path.normpath(value)
        assert value.count("/") >= 2
        assert not "/home/user/".startswith(f"{value}/")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
keys = st.sampled_from([*SETTINGS, *map(camel, SETTINGS), "flags"]) | st.text(max_size=12)


@given(st.dictionaries(keys, json_values, max_size=8), st.sampled_from(["policy", "project"]))
def test_any_object_loads_to_values_in_range(content: dict[str, Any], source: str) -> None:
    with tempfile.TemporaryDirectory() as base:
        place = Place(Path(base))
        place.write(source, content)
        settings = place.load().settings
    for name, known in SETTINGS.items():
        value = getattr(settings, name)
        if known.kind in ("whole", "number") and value is not None:
            assert known.low <= value <= known.high
        if source == "project" and known.committed == "never":
            assert value == getattr(DEFAULTS, name)


@given(st.binary(max_size=200))
def test_any_bytes_load(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as base:
        place = Place(Path(base))
        place.write("user", "").write_bytes(data)
        place.load()


@given(
    st.sampled_from(sorted(SETTINGS)), st.text(st.characters(exclude_characters="\0"), max_size=20)
)
def test_any_variable_loads(name: str, text: str) -> None:
    loaded = load({variable(name): text}, home=Path("/nowhere/at/all"), root=None)
    value = getattr(loaded.settings, name)
    assert value == getattr(DEFAULTS, name) or loaded.origins[name].source == "environment"
