"""The memory section of the system prompt: every point there, and always the same bytes."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest

from reverie.agent import AgentOptions, open_agent
from reverie.session import memory_section
from reverie.settings import Settings
from reverie.store import MemoryFolder
from reverie.testing import ManualClock, ScriptedModel
from reverie.topics import TYPES, PromptOptions, both_modes, parse_frontmatter, parse_index, section
from reverie.world import Notice

pytestmark = pytest.mark.spec("7.prompt")

OWN = PromptOptions("/h/memory")
TEAM = replace(OWN, team="/h/memory/team")
LOG = replace(OWN, daily_log=True)


def part(text: str, heading: str) -> str:
    found = re.search(rf"^#+ {heading}\n(.*?)(?=^#+ |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, heading
    return found[1]


# Words that must stand in the section.
POINTS = [
    ["`/h/memory`", "Remember saves", "Forget removes", "at once"],
    ["- user: ", "role, goals, skill, preferences", "never a verdict"],
    ["- feedback: ", "praised or let stand", "`**Why:**`", "`**How to apply:**`"],
    ["- project: ", "who, why, by when", "calendar dates only"],
    ["- reference: ", "outside this repository"],
    ["Never saved, even when asked", "code, git or an instruction file", "keys, tokens"],
    ["the state of the work in hand", "how a fault was\nmended", "a surprise"],
    ["Look before you rely on it", "path, function or flag still exists", "does not command"],
    ["Told to leave memory aside"],
    ["SearchMemory", "SearchSessions"],
]


@pytest.mark.parametrize("words", POINTS)
def test_every_point_is_made(words: list[str]) -> None:
    text = section(OWN)
    assert [word for word in words if word not in text] == []


def test_each_type_is_a_line_with_one_example() -> None:
    for name in TYPES:
        (line,) = re.findall(rf"^- {name}: .*$", section(OWN), re.MULTILINE)
        assert line.count("→") == 1


def test_where_the_tools_save_nothing_is_said_of_writing_files() -> None:
    for word in ("MEMORY.md`,", "```", "*.jsonl", "Grep"):
        assert word not in section(OWN)
    assert len(section(OWN).encode()) < 2_600


def test_the_sample_is_a_file_and_an_index_that_we_read() -> None:
    samples = re.findall(r"```markdown\n(.*?)```", section(TEAM), re.DOTALL)
    front = parse_frontmatter(samples[0].encode())
    assert [one.names for one in front.fields] == [("name",), ("description",), ("type",)]
    assert front.get("type") == "feedback"
    assert "**Why:**" in samples[0]
    pointer = parse_index(samples[1].encode()).pointers[0]
    assert pointer.title == front.get("name")
    assert len(samples[1].strip()) <= 150


def test_no_date_and_no_index_stands_in_it() -> None:
    for options in (OWN, TEAM, LOG):
        assert "Today" not in section(options)
    assert "YYYY-MM-DD" in section(LOG)
    assert not re.search(r"\d{4}-\d{2}-\d{2}", section(LOG))


def test_the_same_options_give_the_same_bytes() -> None:
    for log, past, team in itertools.product((False, True), repeat=3):
        options = replace(OWN, daily_log=log, search_past=past, team="/t" if team else "")
        assert section(options) == section(replace(options))


def test_the_flag_takes_the_search_part_away_and_nothing_else() -> None:
    without = section(replace(OWN, search_past=False))
    whole = section(OWN)
    assert "SearchSessions" not in without
    assert whole.startswith(without.rstrip("\n"))


def test_extra_guidelines_are_added() -> None:
    text = section(replace(OWN, extra="  Write in {braces}, in Dutch.\n"))
    assert text.endswith("## Further guidelines\n\nWrite in {braces}, in Dutch.\n")


def test_with_a_team_both_folders_and_a_scope_in_each_type() -> None:
    text = section(TEAM)
    assert "`/h/memory` is private" in text
    assert "`/h/memory/team` is shared" in text
    assert "Credentials have no place" in text
    assert re.findall(r"Scope: (.*)", text) == [
        "private, always.",
        "private, unless it is a rule for everyone on the project.",
        "shared, as a rule.",
        "shared, most of the time.",
    ]
    assert "`MEMORY.md` of the same folder" in text
    assert "Scope:" not in section(OWN)


def test_the_daily_log_names_the_pattern_and_what_goes_in() -> None:
    text = section(LOG)
    assert "`/h/memory/logs/YYYY/MM/YYYY-MM-DD.md`" in text
    for word in ("corrections", "preferences", "about the user", "not in the code", "outside"):
        assert word in part(text, "How to save")
    assert "only grows" in text
    assert "read,\nnot written" in text
    assert "of four types" not in text
    assert "Look before you rely on it" in text


@pytest.mark.parametrize(
    ("scope", "hint"),
    [
        ("user", "Keep it general"),
        ("project", "committed with the repository, and the team"),
        ("local", "on this machine and is never committed"),
    ],
)
def test_agents_get_a_hint_by_scope_and_their_whole_index(scope: str, hint: str) -> None:
    index = "- [A](a.md) — x\n" * 300
    text = section(replace(OWN, scope=scope, index=index, team="/t"))  # type: ignore[arg-type]
    assert hint in text
    assert text.count("- [A](a.md)") == 300
    assert "SearchSessions" not in text
    assert "Scope:" not in text
    assert "It is empty so far." in section(replace(OWN, scope=scope))  # type: ignore[arg-type]


def test_both_modes_at_once_are_said_and_the_log_wins(tmp_path: Path) -> None:
    said: list[Notice] = []
    with MemoryFolder(tmp_path / "m") as memory:
        text = memory_section(Settings(), memory, team=True, daily_log=True, say=said.append)
        assert text == memory_section(Settings(), memory, daily_log=True)
    assert [one.text for one in said] == [both_modes(daily_log=True, team=True)]
    assert not (tmp_path / "m" / "team").exists()


def test_the_section_says_what_the_settings_say(tmp_path: Path) -> None:
    settings = Settings(index_lines=77, index_line_characters=99, memory_extra_guidelines="Brief.")
    with MemoryFolder(tmp_path / "m") as memory:
        text = memory_section(settings, memory, team=True)
    assert "below about 99" in text
    assert "more than 77 lines" in text
    assert text.endswith("Brief.\n")
    assert (tmp_path / "m" / "team").is_dir()
    assert memory_section(settings, None) == ""


@pytest.mark.parametrize(
    "environ",
    [
        {"REVERIE_DISABLE_AUTO_MEMORY": "1"},
        {"REVERIE_SIMPLE": "1"},
        {"REVERIE_REMOTE": "1"},
        {"REVERIE_AUTO_MEMORY_ENABLED": "false"},
    ],
)
async def test_switched_off_there_is_no_memory_and_no_folder(
    tmp_path: Path, home: Path, environ: dict[str, str]
) -> None:
    folder = tmp_path / "memories" / "m"
    known = {**environ, "HOME": str(tmp_path), "REVERIE_MEMORY_PATH_OVERRIDE": str(folder)}
    wanted = AgentOptions(tmp_path, home=home, environ=known)
    async with open_agent(wanted, ScriptedModel([]), clock=ManualClock()) as agent:
        assert agent.memories is None
    assert not folder.exists()
