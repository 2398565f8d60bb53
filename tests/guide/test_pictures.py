"""The pictures are what their scripts make of real runs, and load nothing."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from scripts import pictures

pytestmark = pytest.mark.spec("18.examples")
ROOT = Path(__file__).resolve().parents[2]


def test_the_plot_is_drawn_from_the_figures_beside_it() -> None:
    rows = json.loads(pictures.FIGURES.read_text(encoding="utf-8"))["rows"]
    assert pictures.drawn(rows) == pictures.PLOT.read_text(encoding="utf-8")
    assert {row["name"] for row in rows} >= {pictures.OURS, pictures.NAIVE}


def test_no_label_of_the_plot_lies_over_another() -> None:
    heights = pictures.apart([60.0, 61.0, 200.0, 352.0, 354.0, 355.0, 356.0])
    assert all(below - above >= 16.9 for above, below in pairwise(heights))
    assert heights[-1] <= pictures.HIGH - pictures.BOTTOM


@pytest.mark.parametrize("path", sorted(pictures.PICTURES.glob("*.svg")), ids=lambda p: p.name)
def test_a_picture_loads_nothing_and_says_what_it_shows(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"(?:href|src|url)\s*[=(]\s*[\"']?\s*(?:https?:|//)", text)
    assert "<script" not in text
    told = re.findall(
        rf"!\[([^\]]+)\]\(docs/pictures/{path.name}\)", (ROOT / "README.md").read_text()
    )
    assert told
    assert len(told[0]) > 40


def test_the_terminal_shows_the_commands_of_its_script() -> None:
    text = pictures.TERMINAL.read_text(encoding="utf-8").replace("&#160;", " ")
    for line in pictures.COMMANDS:
        assert line.partition('"')[0].strip() in text, line
