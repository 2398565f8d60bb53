"""The walls around a background agent's files, without the agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie.toolbox import (
    READING,
    ConfinedFiles,
    Guard,
    GuardLimits,
    Sandbox,
    WritableRoot,
    standard,
)
from tests.tools.kit import Place, use

pytestmark = pytest.mark.spec("7")


def test_the_innermost_folder_decides_also_where_the_project_is_the_whole_machine(
    tmp_path: Path,
) -> None:
    home, inner = tmp_path / "home", tmp_path / "home" / "memory"
    files = ConfinedFiles(tmp_path, (Path("/"), inner), (), (home,))
    assert files.allows(Path("/srv/notes.txt"))
    assert not files.allows(home / "settings.json")
    assert files.allows(inner / "MEMORY.md")
    assert not ConfinedFiles(tmp_path, (inner,), ()).allows(Path("/srv/notes.txt"))


def test_a_search_is_told_of_the_folders_below_that_are_not_to_be_read(tmp_path: Path) -> None:
    files = ConfinedFiles(tmp_path, (tmp_path,), (), (tmp_path / "a[b]", tmp_path.parent / "other"))
    assert "/a\\[b\\]" in files.hidden_below(tmp_path)
    assert not any("other" in one for one in files.hidden_below(tmp_path))
    assert "/." not in files.hidden_below(tmp_path / "a[b]")


def test_a_note_is_found_by_its_bare_name_and_any_other_file_in_the_working_folder(
    tmp_path: Path,
) -> None:
    work, memory = tmp_path / "work", tmp_path / "memory"
    for folder in (work, memory):
        folder.mkdir()
    (memory / "note.md").write_text("kept")
    files = ConfinedFiles(work, (work,), [WritableRoot.of(str(memory))])
    assert files.find("note.md") == memory / "note.md"
    assert files.find("other.md") == work / "other.md"
    assert files.find("note.txt") == work / "note.txt"
    files.close()


async def test_a_path_that_is_refused_is_told_with_the_tool_that_asked_for_it(place: Place) -> None:
    limits = GuardLimits(READING, (place.root,), (), ())
    agent = Guard(standard(), place.context(), limits, Sandbox(), "extract_memories")
    secret = place.outside / "outside.txt"
    secret.write_text("not for you")
    assert (await use(agent, "Read", file_path=str(secret))).is_error
    (denial,) = agent.denials
    assert (denial.tool, denial.subject) == ("Read", str(secret))
    assert "Read was denied" in place.notices[-1].text
