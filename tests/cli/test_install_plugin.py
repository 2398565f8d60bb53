"""`reverie install claude-code --plugin`: files written at a yes, and taken away whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reverie.clients import plugin_files
from tests.cli.conftest import Run

pytestmark = [pytest.mark.spec("18.plugin"), pytest.mark.usefixtures("user")]
INSTALL = ("install", "claude-code", "--plugin")


@pytest.fixture
def folder(user: Path) -> Path:
    return user / ".claude" / "skills" / "reverie"


def files(user: Path) -> list[str]:
    return sorted(str(p.relative_to(user)) for p in user.rglob("*") if p.is_file())


def test_it_is_shown_first_written_at_a_yes_and_taken_back_whole(
    run: Run, user: Path, folder: Path
) -> None:
    asked = run(*INSTALL, input="n\n", code=1)
    assert "reverie hook" in asked.out
    assert not folder.exists()
    run(*INSTALL, input="y\n", code=0)
    assert {name: (folder / name).read_text() for name in plugin_files()} == plugin_files()
    assert (user / ".claude" / "settings.json").read_text() == '{"model": "opus"}\n'
    assert not run(*INSTALL, "--json", "--yes").json()["changed"]
    gone = run("uninstall", "claude-code", "--json", "--yes").json()
    assert [one["plugin"] for one in gone["uninstalled"]] == [str(folder)]
    assert files(user) == [".claude/settings.json"]
    assert not folder.exists()
    assert "Nothing was installed" in run("uninstall", "--yes", code=0).out


def test_files_of_others_are_never_written_over(run: Run, folder: Path) -> None:
    path = folder / ".mcp.json"
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    assert "not as Reverie wrote it" in run(*INSTALL, "--yes", code=2).err
    assert path.read_text() == "mine"


def test_what_was_edited_stays_and_an_old_version_is_replaced(run: Run, folder: Path) -> None:
    run(*INSTALL, "--yes", code=0)
    note = json.loads((folder / ".reverie.json").read_text())
    old = "of an older version\n"
    (folder / "hooks" / "hooks.json").write_text(old)
    assert run(*INSTALL, "--yes").code == 2
    from reverie.store import digest

    note["files"]["hooks/hooks.json"] = digest(old.encode())
    (folder / ".reverie.json").write_text(json.dumps(note))
    run(*INSTALL, "--yes", code=0)
    assert (folder / "hooks" / "hooks.json").read_text() == plugin_files()["hooks/hooks.json"]
    skill = folder / "skills" / "memory" / "SKILL.md"
    skill.write_text("mine\n")
    assert "stays as it is" in run("uninstall", "claude-code", "--yes", code=0).out
    assert [p for p in folder.rglob("*") if p.is_file()] == [skill]


def test_json_wants_a_yes_and_other_clients_have_no_plugin(run: Run) -> None:
    assert "--yes" in run(*INSTALL, "--json", code=2).error["do"]
    assert "Only Claude Code" in run("install", "codex", "--plugin", code=2).err
