"""The page about settings is the one the code makes."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from reverie.settings import FLAGS, SETTINGS, camel, page, variable

pytestmark = pytest.mark.spec("17")

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "run: python -m scripts.generate"


def test_page_names_everything() -> None:
    text = page()
    for name in SETTINGS:
        assert text.count(f"| `{camel(name)}`<br>`{variable(name)}`") == 1
    for name in FLAGS:
        assert text.count(f"| `{name}`<br>") == 1
    for flag in FLAGS.values():
        assert all(f"`{alias}`" in text for alias in flag.aliases)


def test_the_command_prints_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_module("reverie.settings", run_name="__main__")
    assert capsys.readouterr().out == page()
