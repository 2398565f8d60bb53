"""What a page says was measured is what was measured, by a command that exists."""

from __future__ import annotations

import re

import pytest

from bench.cited import faults
from bench.figures import known
from bench.parts import BY_NAME
from tests.docs.lines import ROOT, own_pages

pytestmark = pytest.mark.spec("project.docs-figures")
PAGES = [page for page in own_pages() if page != "bench/RESULTS.md"]  # the report itself
COMMANDS = {"run", "report", "keys", "live"}


@pytest.mark.parametrize("page", PAGES)
def test_a_cited_figure_is_the_measured_one(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert faults(text, known()) == []
    for command, part in re.findall(r"python -m bench (\w+)(?: ([a-z_]+))?", text):
        assert command in COMMANDS, f"{page}: python -m bench {command}"
        assert command != "run" or not part or part in BY_NAME, f"{page}: {part}"
