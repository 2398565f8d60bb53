"""Savings: the figures of `replay`, worked out beside the page, kept, and worked out again."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from reverie.apps.web import share, work
from reverie.reports import Savings, stack_chart
from reverie.text import number, short_number
from tests.cli.conftest import Run
from tests.web.conftest import Page, talk
from tests.web.test_screens import words

pytestmark = pytest.mark.spec("18.web")


def replays(page: Page) -> list[list[str]]:
    asked = page.desk.commands.asked  # type: ignore[attr-defined]
    return [list(line) for line in asked if line[0] == "replay"]


def test_savings_say_what_replay_says(page: Page, run: Run) -> None:
    text = page.settled("/savings?policy=collapse").text
    (file,) = page.desk.library.sessions()
    (told,) = run("replay", file.id, "--policy", "collapse", "--json").json()
    spent = told["billed"]
    shown = words(text)
    assert f"{short_number(told['naive_cost'])} units" in shown
    assert f"{short_number(spent)} units" in shown
    assert f"Still in view {told['facts_here']} of {told['facts']} names" in shown
    assert f"Cache breaks {told['breaks']} in {told['requests']} request" in shown
    assert f"Largest request {number(told['peak'])} tokens" in shown
    assert "Find out why the tests fail" in shown
    assert "A replay follows the recorded course." in shown
    given = page.visitor.get("/savings/all.json?policy=collapse")
    assert given.headers["content-type"].startswith("application/json")
    assert json.loads(given.body) == [told]


def test_nothing_is_replayed_on_a_request_nor_before_somebody_looks(page: Page) -> None:
    page.settled("/sessions")
    page.look()
    assert replays(page) == []
    with page.desk.commands._turn:
        assert "Replaying sessions" in words(page.visitor.get("/savings").text)
    page.desk.settle(60)


def test_a_session_is_replayed_once_until_it_or_the_settings_change(
    page: Page, project: Path
) -> None:
    for _ in range(3):
        page.settled("/savings?policy=collapse")
    assert len(replays(page)) == 1
    anyio.run(talk, project, "A second one")
    page.look()
    page.settled("/savings?policy=collapse")
    (first, second) = replays(page)
    assert first[1] not in second
    page.settled("/savings?policy=classic")
    assert [line[line.index("--policy") + 1] for line in replays(page)[2:]] == ["classic"] * 2
    changed = replace(page.desk.settings, collapse_tail=page.desk.settings.collapse_tail + 1)
    page.desk.savings = Savings(page.desk.base, changed)
    assert len(page.desk.savings.stale("collapse", 50, time.time() + 999)) == 2
    (file, _) = page.desk.library.sessions()
    page.desk.library.remove(file.id)
    page.look()
    assert page.desk.savings.sums("collapse")["sessions"] == 1


def test_a_session_that_cannot_be_replayed_is_left_out_and_counted(page: Page) -> None:
    asked = page.desk.savings.stale("collapse", 9, time.time())
    page.desk.savings.take("collapse", asked, [])
    work(page.desk, "collapse")
    assert replays(page) == []
    sums = page.desk.savings.sums("collapse")
    assert (sums["sessions"], sums["failed"], sums["whole"]) == (0, 1, 1)
    assert "Replaying" not in page.visitor.get("/savings?policy=collapse").text
    page.desk.savings.take(page.desk.settings.context_policy, asked, [])
    assert page.visitor.get(f"/sessions/{asked[0][0]}").status == 200
    assert page.visitor.get("/sessions").status == 200


def test_sums_and_sorting_over_several(page: Page) -> None:
    figures = json.loads(page.settled("/savings/all.json").body) or None
    page.settled("/savings?policy=collapse")
    (figures,) = page.desk.savings.every("collapse")
    (row,) = (dict(one) for one in page.desk.base.rows("SELECT * FROM session LIMIT 1"))
    names = ", ".join(row)
    with page.desk.base.writing() as base:
        for n in range(1, 4):
            made = {**row, "id": f"{n:08x}", "title": f"Session {n}", "stamp": f"s{n}"}
            marks = ", ".join("?" * len(made))
            base.execute(f"INSERT INTO session ({names}) VALUES ({marks})", list(made.values()))
    asked = page.desk.savings.stale("collapse", 9, time.time())
    assert [name for name, _ in asked] == ["00000001", "00000002", "00000003"]
    found = [
        {
            **figures,
            "session": name,
            "naive_cost": 1_000,
            "billed": cost,
            "recovery": 0,
            "refind": 0,
        }
        for (name, _), cost in zip(asked, (100, 500, 1_200), strict=True)
    ]
    page.desk.savings.take("collapse", asked, found)
    sums = page.desk.savings.sums("collapse")
    assert (sums["dearer"], round(sums["worst"], 2)) == (1, 1.2)
    shown = words(page.visitor.get("/savings?policy=collapse&sort=-share").text)
    assert shown.index("Session 1") < shown.index("Session 2") < shown.index("Session 3")
    shown = words(page.visitor.get("/savings?policy=collapse&sort=share").text)
    assert shown.index("Session 3") < shown.index("Session 2") < shown.index("Session 1")
    assert "Dearer sessions 1 by 20% at most" in shown
    assert "at $3 a million input tokens" in words(
        page.visitor.get("/savings?policy=collapse&price=3").text
    )


def test_the_list_and_the_timeline_say_what_was_saved(page: Page) -> None:
    column = f"{page.desk.settings.context_policy.capitalize()} saves"
    assert column not in page.visitor.get("/sessions").text
    page.settled(f"/savings?policy={page.desk.settings.context_policy}")
    (file,) = page.desk.library.sessions()
    (row, _) = page.desk.sessions.session(file.id)
    assert row["naive"]
    saved = share(1 - row["with_policy"] / row["naive"])
    listed = words(page.visitor.get("/sessions?sort=-saved").text)
    assert column in listed
    assert f" {saved}" in listed
    shown = words(page.visitor.get(f"/sessions/{file.id}").text)
    assert f"If nothing were done {short_number(row['naive'])} units" in shown
    assert f"if nothing were done, up to {short_number(max(row['untouched']))}" in shown
    assert len(row["untouched"]) == 4
    assert 'class="naive"' in page.visitor.get(f"/sessions/{file.id}").text


def test_the_line_of_a_replay_is_drawn_by_stretches_and_ends_at_the_top() -> None:
    rows = [{"k-user": 10.0}] * 10_000
    over = [float(n) for n in range(10_000)]
    drawn = str(stack_chart(rows, {"k-user": "you"}, "x", over=over)).partition("</svg>")[0]
    found = re.search(r'class="naive" points="([^"]*)"', drawn)
    assert found
    heights = [float(point.split(",")[1]) for point in found[1].split()]
    assert len(heights) <= 600
    assert min(heights) == heights[-1] == 32.0


def test_a_price_that_is_none_is_passed_over(page: Page) -> None:
    page.settled("/savings")
    for price in ("x", "-1", "1e999", "nan", "%3Cscript%3E"):
        answer = page.visitor.get(f"/savings?price={price}")
        assert answer.status == 200
        assert "<script>document" not in answer.text


def test_a_session_that_runs_is_not_replayed_at_its_every_step(page: Page) -> None:
    page.settled("/savings?policy=collapse")
    with page.desk.base.writing() as base:
        base.execute("UPDATE session SET stamp = 'grown'")
    now = time.time()
    assert page.desk.savings.stale("collapse", 9, now) == []
    assert len(page.desk.savings.stale("collapse", 9, now + 301)) == 1
