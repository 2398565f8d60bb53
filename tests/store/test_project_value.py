"""`Project`: one frozen value for where something happens and whose it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reverie.errors import InvalidInput, SettingsError
from reverie.store import Project, project_folder


def test_a_folder_is_found_by_its_root(tmp_path: Path) -> None:
    (tmp_path / "shop/.git").mkdir(parents=True)
    (tmp_path / "shop/src").mkdir()
    found = Project.at(tmp_path / "shop/src", home=tmp_path / "home", environ={"HOME": "/h"})
    assert (found.root, found.cwd) == (tmp_path / "shop", tmp_path / "shop/src")
    assert (found.worktree, found.user_home) == (tmp_path / "shop", "/h")
    assert found.home == tmp_path / "home"
    assert found.environ["REVERIE_HOME"] == str(found.home)
    assert not found.has_memory
    assert not found.home.exists()


def test_parts_lead_outwards(tmp_path: Path) -> None:
    home = tmp_path / "home"
    narrow = Project.at(tmp_path, home=home, user="ada", agent="reviewer")
    scopes = [(one.scope, one.user, one.agent) for one in narrow.outwards()]
    assert scopes == [("agent", "ada", "reviewer"), ("user", "ada", ""), ("project", "", "")]
    assert narrow.cwd == tmp_path
    assert str(narrow) == f"{tmp_path} / ada / reviewer"
    agents = [one.scope for one in Project.at(tmp_path, home=home, agent="a").outwards()]
    assert agents == ["agent", "project"]
    narrow.claim()
    assert narrow.root.is_dir()


def test_a_name_has_a_folder_of_its_own(tmp_path: Path) -> None:
    found = Project.at("shop/../.. of names", home=tmp_path)
    assert found.root.parent == tmp_path.resolve() / "projects"
    assert (found.scope, found.is_address, found.cwd) == ("project", True, found.root)
    assert Project.personal(home=tmp_path).scope == "personal"
    with pytest.raises(InvalidInput):
        Project.at(tmp_path, home=tmp_path, user=None)  # pyright: ignore[reportArgumentType]


def test_settings_are_read_once_and_again_by_reload(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    found = Project.at(tmp_path, home=home, environ={})
    (home / "settings.json").write_text('{"dreamHours": 7, "noSuch": 1}', encoding="utf-8")
    assert found.settings.dream_hours != 7
    again = found.reload()
    assert again.settings.dream_hours == 7
    assert again.problems
    local = tmp_path / ".reverie/settings.json"
    local.parent.mkdir()
    local.write_text('{"dreamHours": 30}', encoding="utf-8")
    assert found.part("ada").reload().settings.dream_hours == 30
    assert Project.personal(home=home, environ={}).reload().settings.dream_hours == 7
    own = Project.at(tmp_path, home=home, environ={}, settings={"dream_hours": 9})
    assert own.settings.dream_hours == 9
    with pytest.raises(SettingsError):
        Project.at(tmp_path, home=home, environ={}, settings={"nothing": 9})


def test_an_address_is_not_moved_by_settings(tmp_path: Path) -> None:
    elsewhere = {"auto_memory_directory": str(tmp_path / "else/where")}
    wide = Project.at(tmp_path, home=tmp_path / "home", settings=elsewhere)
    assert wide.memory_folder == tmp_path / "else/where"
    assert wide.part("ada").memory_folder.is_relative_to(tmp_path / "home")
    project_folder(wide.home, wide.root, environ=os.environ)
    assert wide.folder().is_dir()
