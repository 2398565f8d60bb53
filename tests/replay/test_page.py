"""The page: one document that loads and runs nothing, and shows every policy."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from xml.etree import ElementTree

import anyio
import pytest

from reverie.apps.replay import (
    CAVEAT,
    POLICIES,
    MeasuredSession,
    ReplayedRound,
    ReplayPolicy,
    measure_session,
    page_text,
)
from reverie.reports import (
    PlotMark,
    Series,
    areas,
    lines,
    ratios,
    shares,
    short,
    steps,
    thin_values,
)

from .courses import course, session

pytestmark = pytest.mark.spec("B14")
VOID = {"meta", "br", "img", "link", "input"}


class Tags(HTMLParser):
    """What a document is made of; every tag that opens must close."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag, attrs) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag) -> None:
        assert self.open
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def sessions() -> list[MeasuredSession]:
    policy = ReplayPolicy.of("collapse", tail=4_000)

    async def one(rounds: int) -> MeasuredSession:
        found = course(*session(rounds, size=3_000, far=True))
        return await measure_session(found, policy, also=POLICIES)

    return [anyio.run(one, rounds) for rounds in (3, 40)]


def test_it_loads_and_runs_nothing(sessions: list[MeasuredSession]):
    text = page_text(sessions)
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    assert {tag for tag, _ in tags.seen}.isdisjoint({"script", "link", "img", "iframe", "object"})
    for _, attributes in tags.seen:
        assert not any(name.startswith("on") for name in attributes)
        assert {"src", "href", "style"}.isdisjoint(attributes)
    assert "://" not in text
    assert "@import" not in text
    assert "url(" not in text
    assert "default-src 'none'" in text


def test_every_plot_is_whole_and_every_policy_is_in_it(sessions: list[MeasuredSession]):
    text = page_text(sessions)
    plots = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(plots) == 1 + 4 * len(sessions)
    for plot in plots:
        ElementTree.fromstring(plot)
        assert "nan" not in plot.lower()
    for name in POLICIES:
        assert f'<polyline class="{name}"' in text
    assert '<g class="announced">' in text
    assert '<g class="unannounced">' not in text
    assert CAVEAT in text
    assert "prefers-color-scheme:dark" in text


def test_a_name_cannot_leave_its_place(sessions: list[MeasuredSession]):
    evil = '</title><script>alert("1")</script>'
    first = replace(sessions[0], figures=replace(sessions[0].figures, session=evil, notes=(evil,)))
    assert "<script" not in page_text([first])


EVIL = "<b>\"']]>&x"  # short enough to be shown whole where ids are shortened


def named(sessions: list[MeasuredSession], name: str) -> list[MeasuredSession]:
    """Sessions with a text in every place that a recorded file or a caller can fill."""
    found: list[MeasuredSession] = []
    for one in sessions:
        rounds = [replace(r, moved="announced", why=name) for r in one.played["collapse"].rounds]
        played = {**one.played, "collapse": replace(one.played["collapse"], rounds=rounds)}
        thinking = replace(one.figures.thinking, blocks=3, refused=1)
        figures = replace(
            one.figures,
            session=name,
            program=name,
            file=name,
            policy=name,  # type: ignore[arg-type]
            notes=(name, name),
            thinking=thinking,
            over_window=1,
        )
        found.append(replace(one, figures=figures, played={**played, name: played["collapse"]}))
    return found


def built(text: str) -> list[tuple[str, tuple[str, ...]]]:
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    return [(tag, tuple(attributes)) for tag, attributes in tags.seen]


@pytest.mark.spec("B14.page")
def test_row_68_no_text_of_a_session_becomes_part_of_the_page(sessions: list[MeasuredSession]):
    text = page_text(named(sessions, EVIL))
    assert built(text) == built(page_text(named(sessions, "harmless")))
    assert '<b>"' not in text
    assert "]]>" not in text
    assert text.count(escape(EVIL)) == text.count(escape(EVIL, quote=False).split('"')[0])
    for plot in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ElementTree.fromstring(plot)


@pytest.mark.spec("B14.page")
def test_row_68_no_name_of_a_line_or_a_mark_becomes_part_of_a_plot():
    series = [Series(EVIL, "read", [1.0, 2.0])]
    plots = [
        lines(EVIL, series),
        areas(EVIL, series, [PlotMark(0, "announced", EVIL)]),
        shares(EVIL, [(EVIL, [(EVIL, "here", 2)])]),
        ratios(EVIL, [(EVIL, [(EVIL, "collapse", 0.5)])]),
    ]
    for plot in plots:
        found = ElementTree.fromstring(plot)
        assert not list(found.iter("b"))
        assert found.get("aria-label") == EVIL
        texts = [one.text or "" for one in found.iter() if EVIL in (one.text or "")]
        assert texts


def test_a_break_that_nothing_announced_is_marked(sessions: list[MeasuredSession]):
    one = sessions[1]
    rounds = list(one.played["collapse"].rounds)
    rounds[5] = replace(rounds[5], moved="unannounced")
    broken = replace(one.played["collapse"], rounds=rounds)
    text = page_text([replace(one, played={**one.played, "collapse": broken})])
    assert '<g class="unannounced">' in text
    assert "prefix moved unannounced" in text


def test_one_session_of_one_round_has_a_page():
    assert ReplayedRound(0, 0, 0, 0, 0, 0.0).moved == ""
    assert "<svg" in lines("x", [Series("a", "naive", [1.0])])
    assert "<svg" in lines("x", [Series("a", "naive", [])])
    assert "<svg" in areas("x", [Series("a", "read", [0.0])], [PlotMark(0, "announced", "<why>")])


def test_long_rows_are_thinned_and_keep_their_peaks():
    values = [float(n % 7) for n in range(5_000)]
    values[4_321] = 99.0
    found = thin_values(values)
    assert len(found) <= 600
    assert (4_321, 99.0) in found
    assert thin_values([]) == []


@pytest.mark.parametrize(
    ("value", "said"), [(0, "0"), (950, "950"), (1_500, "1.5K"), (2_340_000, "2.34M"), (5e9, "5G")]
)
def test_numbers_are_short(value: float, said: str):
    assert short(value) == said


@pytest.mark.parametrize("top", [0.3, 1, 7, 99, 12_345, 9e6])
def test_axes_have_a_few_round_numbers(top: float):
    found = steps(top)
    assert found[0] == 0
    assert found[-1] <= top * 1.0001
    assert 2 <= len(found) <= 6
    assert steps(0) == [0.0]
