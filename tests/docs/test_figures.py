"""What a page says was measured is what was measured, by a command that exists."""

from __future__ import annotations

import re

import pytest

from bench.figures import BY_NAME, known
from bench.report import faults
from tests.docs.lines import ROOT, own_pages

pytestmark = pytest.mark.spec("project.docs-figures")
PAGES = [page for page in own_pages() if page != "bench/RESULTS.md"]  # the report itself
COMMANDS = {"run", "report", "keys", "live"}
COSTS = re.compile(r"figure: context\.(?:long|middle|score|collapse|classic) |bench run context")
SAID = ("recorded", "background", "collapse|classic")  # which data, what is left out, which policy
NOT_SO = r"cost a third|everything in none|no session costs\s+more|nothing\s(?:is\s|was\s)?lost"


@pytest.mark.parametrize("page", PAGES)
def test_a_cited_figure_is_the_measured_one(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert faults(text, known()) == []
    for command, part in re.findall(r"python -m bench (\w+)(?: ([a-z_]+))?", text):
        assert command in COMMANDS, f"{page}: python -m bench {command}"
        assert command != "run" or not part or part in BY_NAME, f"{page}: {part}"


@pytest.mark.parametrize("page", ["README.md", *PAGES])
def test_a_page_says_of_a_sessions_cost_what_it_is_of(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    if COSTS.search(text):
        assert [words for words in SAID if not re.search(words, text, re.IGNORECASE)] == []
    if COSTS.search(text) or page == "docs/index.md":
        assert not re.search(NOT_SO, text, re.IGNORECASE)
