"""The memory section of the system prompt: every point there, and always the same bytes."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest

from reverie.agent.agent import AgentOptions, open_agent
from reverie.memory.format import frontmatter
from reverie.memory.format.entry import TYPES
from reverie.memory.format.index import parse
from reverie.memory.prompt import Options, both_modes, section
from reverie.session.context import memory_section
from reverie.settings import Settings
from reverie.store.memory import MemoryFolder
from reverie.testing import ManualClock, ScriptedModel
from reverie.world import Notice

pytestmark = pytest.mark.spec("7.prompt")

OWN = Options("/h/memory", transcripts="/h/project")
TEAM = replace(OWN, team="/h/memory/team")
LOG = replace(OWN, daily_log=True)


def part(text: str, heading: str) -> str:
    found = re.search(rf"^#+ {heading}\n(.*?)(?=^#+ |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, heading
    return found[1]


# Each point of the section, and words that must stand in it.
POINTS = [
    ("Long-term memory", ["`/h/memory`", "has been\nmade", '"Remember this"', "at once"]),
    ("Long-term memory", ['"Forget this"', "the file goes", "index line"]),
    ("user", ["role, goals, skill, preferences", "Never a verdict", "depth", "analogies"]),
    ("feedback", ["Approval counts as much", "timid", "unusual", "without a word against"]),
    ("feedback", ["`**Why:**`", "`**How to apply:**`", "a second time"]),
    ("project", ["who does what, why, by when", "calendar date", "fade fast", "`**Why:**`"]),
    ("reference", ["outside this repository"]),
    ("What is never saved", ["conventions", "history", "authorship", "debugging"]),
    ("What is never saved", ["instruction file", "work in hand", "Being asked", "surprise"]),
    ("How to save", ["First the file", "Then its pointer", "below about 150", "beyond 200 lines"]),
    ("How to save", ["by topic, never by date", "no twin", "put right or removed"]),
    ("When to look", ["seems to bear", "earlier work", "asked to recall", "index were empty"]),
    ("Before recommending from memory", ["path exist", "function or the flag"]),
    ("Memory, plans and tasks", ["plan", "tasks"]),
    ("Searching the past", ["search tool at hand", "`*.md` in `/h/memory` first", "last"]),
    ("Searching the past", ["`*.jsonl` in `/h/project`", "error, a path or a function's name"]),
]


@pytest.mark.parametrize(("heading", "words"), POINTS)
def test_every_point_is_made(heading: str, words: list[str]) -> None:
    text = part(section(OWN), heading)
    assert [word for word in words if word not in text] == []


def test_each_type_has_examples_when_how_and_body() -> None:
    for name in TYPES:
        text = part(section(OWN), name)
        assert text.count("- Example: ") >= 2
        for start in ("- Save ", "- Use it ", "- Body: "):
            assert text.count(start) == 1


def test_the_sample_is_a_file_and_an_index_that_we_read() -> None:
    samples = re.findall(r"```markdown\n(.*?)```", section(OWN), re.DOTALL)
    front = frontmatter.parse(samples[0].encode())
    assert [one.names for one in front.fields] == [("name",), ("description",), ("type",)]
    assert front.get("type") == "feedback"
    assert "**Why:**" in samples[0]
    pointer = parse(samples[1].encode()).pointers[0]
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
    assert "Searching the past" not in without
    assert whole.startswith(without.rstrip("\n"))


def test_extra_guidelines_are_added() -> None:
    text = section(replace(OWN, extra="  Write in {braces}, in Dutch.\n"))
    assert text.endswith("## Further guidelines\n\nWrite in {braces}, in Dutch.\n")


def test_with_a_team_both_folders_and_a_scope_in_each_type() -> None:
    text = section(TEAM)
    assert "`/h/memory` is private" in text
    assert "`/h/memory/team` is shared" in text
    assert "Credentials have no place" in text
    scopes = {name: re.findall(r"- Scope: (.*)", part(text, name)) for name in TYPES}
    assert scopes == {
        "user": ["private, always."],
        "feedback": ["private, unless it is a rule for everyone on the project."],
        "project": ["shared, as a rule."],
        "reference": ["shared, most of the time."],
    }
    assert "`MEMORY.md` of the same folder" in text
    assert "- Scope:" not in section(OWN)


def test_the_daily_log_names_the_pattern_and_what_goes_in() -> None:
    text = section(LOG)
    assert "`/h/memory/logs/YYYY/MM/YYYY-MM-DD.md`" in text
    for word in ("corrections", "preferences", "about the user", "not in the code", "outside"):
        assert word in part(text, "How to save")
    assert "only grows" in text
    assert "read,\nnot written" in text
    assert "## Types" not in text
    assert "## Before recommending from memory" in text


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
    assert "Searching the past" not in text
    assert "- Scope:" not in text
    assert "It is empty so far." in section(replace(OWN, scope=scope))  # type: ignore[arg-type]


def test_both_modes_at_once_are_said_and_the_log_wins(tmp_path: Path) -> None:
    said: list[Notice] = []
    with MemoryFolder(tmp_path / "m") as memory:
        text = memory_section(
            Settings(), memory, transcripts=tmp_path, team=True, daily_log=True, say=said.append
        )
        assert text == memory_section(Settings(), memory, transcripts=tmp_path, daily_log=True)
    assert [one.text for one in said] == [both_modes(daily_log=True, team=True)]
    assert not (tmp_path / "m" / "team").exists()


def test_the_section_says_what_the_settings_say(tmp_path: Path) -> None:
    settings = Settings(index_lines=77, index_line_characters=99, memory_extra_guidelines="Brief.")
    with MemoryFolder(tmp_path / "m") as memory:
        text = memory_section(settings, memory, transcripts=tmp_path, team=True)
    assert "below about 99" in text
    assert "beyond 77 lines" in text
    assert text.endswith("Brief.\n")
    assert (tmp_path / "m" / "team").is_dir()
    assert memory_section(settings, None, transcripts=tmp_path) == ""


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
