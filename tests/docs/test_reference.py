"""The reference says what the code says, and nothing in it is silent."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

import reverie
from reverie.settings import FLAGS, SETTINGS
from scripts import reference

pytestmark = pytest.mark.spec("project.docs-reference")


def test_every_page_is_what_the_code_says(root: Path) -> None:
    assert list(reference.stale(root / reference.FOLDER)) == []
    assert list(reference.silent(reference.commands())) == []
    assert list(reference.library_problems()) == []


def test_a_page_that_is_not_is_found(root: Path, tmp_path: Path) -> None:
    for name in reference.PAGES:
        (tmp_path / name).write_bytes((root / reference.FOLDER / name).read_bytes())
    assert list(reference.stale(tmp_path)) == []
    path = tmp_path / "settings.md"
    path.write_text(path.read_text().replace("50,000", "60,000", 1))
    (tmp_path / "cli.md").unlink()
    assert [one.partition(":")[0] for one in reference.stale(tmp_path)] == [
        "docs/reference/settings.md",
        "docs/reference/cli.md",
    ]


def test_an_option_an_argument_or_a_command_without_help_is_found() -> None:
    @click.command()
    @click.argument("what")
    @click.option("--loud", is_flag=True)
    def shout(what: str, loud: bool) -> None: ...

    assert list(reference.silent(iter([("reverie shout", shout)]))) == [
        "`reverie shout` says nothing of itself",
        "`reverie shout`: what has no help",
        "`reverie shout`: --loud has no help",
    ]


def test_a_public_name_without_a_place_or_a_docstring_is_found() -> None:
    class Quiet:
        def whisper(self) -> None: ...
        @property
        def tone(self) -> str:
            """How it sounds."""
            return ""

    assert list(reference.misplaced([*reverie.__all__, "Quiet"])) == [
        "reverie.Quiet: it must stand in __all__ and in one chapter of the reference",
    ]
    assert list(reference.undocumented("reverie.Quiet", Quiet)) == [
        "reverie.Quiet: it has no docstring",
        "reverie.Quiet.whisper: it has no docstring",
    ]


def test_everything_public_has_its_heading(root: Path) -> None:
    """Counted by the names themselves, not by the code that writes the pages."""
    folder = root / reference.FOLDER
    told = (folder / "api.md").read_text()
    for name in reverie.__all__:
        assert f"\n### {name}\n" in told
    for name in ("Memory.add", "Session.prepare", "Agent.stream", "Fitter.fit", "Toolset.handle"):
        assert f"\n#### {name}\n" in told
    commands = (folder / "cli.md").read_text()
    for words in ("chat", "sessions export", "memory review accept", "team token revoke"):
        assert f"# reverie {words}\n" in commands
    settings = (folder / "settings.md").read_text()
    assert settings.count("\n| `") == len(SETTINGS) + len(FLAGS)
