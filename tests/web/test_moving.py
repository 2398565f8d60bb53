"""Memories in and out on the page, all of one origin taken back, and where each was recalled."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path

import pytest

from reverie.apps.web import cut
from reverie.reports import place_value, stack_chart
from reverie.topics import Origin, Trust
from reverie.wire import ChangedPart, Difference
from tests.cli.conftest import Run, injecting, one_turn
from tests.web.conftest import HOSTILE, Page
from tests.web.test_screens import value_in, words

pytestmark = pytest.mark.spec("18.web")
THEIRS = Origin("extract", Trust.AGENT, agent="extraction", session="5e55105e-0000")


def test_an_export_is_what_the_command_writes(page: Page, run: Run, tmp_path: Path) -> None:
    run("memory", "export", tmp_path / "out")
    there = {
        str(one.relative_to(tmp_path / "out")): one.read_bytes()
        for one in (tmp_path / "out").rglob("*")
        if one.is_file()
    }
    answer = page.visitor.get("/memories/export.zip")
    assert "attachment" in answer.headers["content-disposition"]
    with zipfile.ZipFile(io.BytesIO(answer.body)) as made:
        assert {name: made.read(name) for name in made.namelist()} == there


def test_an_import_is_shown_before_it_is_made(page: Page, project: Path) -> None:
    (project / "AGENTS.md").write_text("Always run the linter before a commit.\n")
    shown = words(page.visitor.get("/memories/moving").text)
    assert "would be imported" in shown
    assert page.visitor.post("/memories/moving", {"program": "agents"}).status == 303
    again = words(page.visitor.get("/memories/moving").text)
    assert "would be imported" not in again
    assert "waits for review" in again
    assert "2 to review" in words(page.visitor.get("/memories").text)
    assert page.visitor.post("/memories/moving", {"program": HOSTILE}).status == 400


def test_all_of_one_origin_is_taken_back_and_brought_back(page: Page) -> None:
    with page.desk.changing() as memories:
        for n in range(3):
            memories.remember(
                f"Learned {n}: a quite distinct fact {n * 7919}.",
                THEIRS,
                name=f"Learned {n}",
                type="project",
            )
        key = next(one for one in memories.folder.keys() if "learned_1" in one)  # noqa: SIM118
    shown = page.visitor.get(f"/memories/{key}").text
    link = re.search(r'href="(/memories/origin\?by=session[^"]*)"', shown)
    assert link
    listed = words(page.visitor.get(link[1].replace("&amp;", "&")).text)
    assert "learned_0" in listed
    assert "learned_2" in listed
    form = {"by": "session", "value": "5e55105e-0000"}
    done = page.visitor.post("/memories/origin", form)
    assert done.status == 303
    with page.desk.memory_there() as memories:
        assert not [one for one in memories.folder.keys() if "learned" in one]  # noqa: SIM118
    version = value_in(page.visitor.get(done.headers["location"]).text, "version")
    page.visitor.post("/memories/undo", {"version": version})
    with page.desk.memory_there() as memories:
        assert len([one for one in memories.folder.keys() if "learned" in one]) == 3  # noqa: SIM118
    assert page.visitor.get("/memories/origin?by=evil&value=x").status == 400
    assert page.visitor.get("/memories/origin?by=session&value=none").status == 404


def test_a_memory_says_where_it_was_recalled(page: Page, project: Path, run: Run) -> None:
    recall = injecting("feedback_port_of_service_1.md", "On port_eight_thousand_one.", 4)
    asked = "On which port does service 1 listen?"
    name = one_turn(project, asked, "It is port_eight_thousand_one.", recall)
    page.look()
    turns = run("recall", "--ledger", name, "--json").json()["turns"]
    rows = [(turn["said"], one) for turn in turns for one in turn["candidates"]]
    assert rows
    for said, one in rows:
        shown = words(page.visitor.get(f"/memories/{one['file']}?view=recalled").text)
        assert f"{one['outcome']}, cited" in shown
        assert one["cited"]
        assert f"{one['score']:.2f}" in shown
        assert cut(said, 90)[:40] in shown
    page.desk.library.remove(name)
    page.look()
    assert (
        "It has not come to mind"
        in page.visitor.get(f"/memories/{rows[0][1]['file']}?view=recalled").text
    )


def test_a_difference_is_shown_by_words_or_by_lines(page: Page) -> None:
    mine = Origin("edit", Trust.USER, agent="user")
    with page.desk.changing() as memories:
        key = "project_p.md"
        memories.save(key, b"---\nname: P\ntype: project\n---\n\nThe port is 8080 here.\n", mine)
        memories.save(key, b"---\nname: P\ntype: project\n---\n\nThe port is 9090 here.\n", mine)
    by_words = page.visitor.get(f"/memories/{key}").text
    assert "<del>8080</del>" in by_words
    link = re.search(r'href="([^"]*diff=lines#diff)"', by_words)
    assert link
    by_lines = page.visitor.get(link[1].replace("&amp;", "&").partition("#")[0]).text
    assert "<del>" not in by_lines
    assert "The port is 8080 here." in by_lines
    assert "diff=words" in by_lines


def test_a_break_names_its_first_changed_byte() -> None:
    place = Difference("messages", 3, 17, "old", "new")
    told = place_value(ChangedPart("messages", "block 3", place))
    assert told == {"block": "block 3", "byte": 17, "before": "old", "after": "new"}
    assert place_value(ChangedPart("system")) is None
    assert place_value(None) is None


@pytest.mark.parametrize(
    ("requests", "ticks"),
    [
        (6, ["1", "2", "3", "4", "5", "6"]),
        (12, [str(n) for n in range(1, 13)]),
        (13, ["1", "5", "10"]),
        (34, ["1", "10", "20", "30"]),
        (110, ["1", "20", "40", "60", "80", "100"]),
    ],
)
def test_requests_are_numbered_as_people_count(requests: int, ticks: list[str]) -> None:
    drawn = str(stack_chart([{"k-user": 1.0}] * requests, {"k-user": "you"}, "x"))
    wide = drawn.partition("</svg>")[0]
    assert re.findall(r'class="mid"[^>]*>(\d+)<', wide) == ticks
