"""What joins the conversation by itself: a new date, skills, the plan."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reverie.errors import NotFound
from reverie.session import (
    Attachments,
    RequestHead,
    date_change,
    date_line,
    find_skills,
    frontmatter,
    local_date,
    run_turn,
    skills_listed,
    truncate_text,
)
from reverie.testing import ManualClock
from reverie.transcript import Attached, UserMessage
from reverie.wire import render
from tests.loop.stage import NOON, Given, SimpleTools, calls, echo, opened, simulated

pytestmark = pytest.mark.spec("13.attachments")
ECHO = SimpleTools(echo=echo)
DAY = 86_400


def skill(root: Path, folder: str, text: str) -> Path:
    path = root / ".reverie" / "skills" / folder / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


# --- the date


def test_a_date_is_told_once_and_only_where_one_was_told() -> None:
    assert date_change("", "2026-07-02") == ()
    assert date_change("2026-07-01", "2026-07-01") == ()
    (one,) = date_change("2026-07-01", "2026-07-02")
    assert one == date_change("2026-07-01", "2026-07-02")[0]
    assert one.kind == "date"
    assert one.blocks[0].text.startswith("<system-reminder>\nToday is 2026-07-02, Thursday.")


async def test_midnight_is_announced_once_in_a_long_turn_and_survives_resume(
    tmp_path: Path,
) -> None:
    clock = ManualClock(NOON)

    async def sleep(given: Given) -> str:
        await clock.sleep(given["seconds"])
        return "slept"

    tools = SimpleTools(sleep=sleep)
    naps = [calls(("sleep", {"seconds": s})) for s in (60, DAY, 60, 60)]
    model = simulated(*naps, otherwise="done")
    given = {"clock": clock, "context": date_line(local_date(clock.now()))}
    async with opened(tmp_path, model, **given) as session:
        attachments = Attachments(tmp_path, bytes_each=1_000)
        await run_turn(session, model, tools, "go", attachments=attachments)
        first = session.id
    said = [body.body.count("The date has changed") for body in model.engine.log]
    assert said == [0, 0, 1, 1, 1]
    async with opened(tmp_path, model, resume=first, **given) as session:
        again = Attachments(tmp_path, bytes_each=1_000)
        await run_turn(session, model, tools, "more", attachments=again)
        clock.time += DAY
        await run_turn(session, model, tools, "more", attachments=again)
    said = [body.body.count("The date has changed") for body in model.engine.log]
    assert said[-2:] == [1, 2]


async def test_no_clock_is_read_when_a_request_is_rendered(tmp_path: Path) -> None:
    clock = ManualClock(NOON)
    model = simulated("done")
    context = date_line(local_date(clock.now()))
    async with opened(tmp_path, model, clock=clock, context=context) as session:
        await run_turn(session, model, ECHO, "go")
        before = render(session.view).body()
        clock.time += 3 * DAY
        assert render(session.view).body() == before


async def test_a_rewound_announcement_is_made_again(tmp_path: Path) -> None:
    clock = ManualClock(NOON)
    model = simulated(otherwise="done")
    context = date_line(local_date(clock.now()))
    async with opened(tmp_path, model, clock=clock, context=context) as session:
        attachments = Attachments(tmp_path, bytes_each=1_000)
        await run_turn(session, model, ECHO, "one", attachments=attachments)
        back = session.view.leaf
        clock.time += DAY
        await run_turn(session, model, ECHO, "two", attachments=attachments)
        await session.rewind(back)
        await run_turn(session, model, ECHO, "three", attachments=attachments)
    assert "The date has changed" in model.engine.log[-1].body
    assert "two" not in model.engine.log[-1].body


# --- skills


def test_skills_are_found_by_name_and_bad_ones_left_out(tmp_path: Path) -> None:
    skill(tmp_path, "b", "---\nname: release\ndescription: How to\n---\nTag it.")
    skill(tmp_path, "a", "---\nname: 'deploy'\ndescription: \"Ship   it\"\n---\nPush.")
    skill(tmp_path, "plain", "No frontmatter at all.")
    skill(tmp_path, "bad name", "Text")
    skill(tmp_path, "long", f"---\nname: {'x' * 65}\n---\n")
    os.mkfifo(skill(tmp_path, "pipe", "").with_name("other"))
    fifo = tmp_path / ".reverie" / "skills" / "pipe" / "SKILL.md"
    fifo.unlink()
    os.mkfifo(fifo)
    secret = tmp_path.parent / f"{tmp_path.name}-secret"
    secret.write_text("---\nname: secret\n---\nkey")
    linked = tmp_path / ".reverie" / "skills" / "linked"
    linked.mkdir()
    (linked / "SKILL.md").symlink_to(secret)
    found = find_skills(tmp_path)
    assert [(s.name, s.about) for s in found] == [
        ("deploy", "Ship   it".replace("   ", " ")),
        ("plain", "(not described)"),
        ("release", "How to"),
    ]


def test_a_list_of_skills_is_the_same_bytes_and_tells_only_what_is_new(tmp_path: Path) -> None:
    skill(tmp_path, "one", "---\nname: one\ndescription: first\n---\n")
    (first,) = skills_listed((), find_skills(tmp_path))
    assert skills_listed((), find_skills(tmp_path)) == (first,)
    before = [first.blocks[0].text]
    assert skills_listed(before, find_skills(tmp_path)) == ()
    skill(tmp_path, "two", "---\nname: two\ndescription: second\n---\n")
    (more,) = skills_listed(before, find_skills(tmp_path))
    assert more.blocks[0].text.splitlines()[2:] == [
        "- two: second (.reverie/skills/two/SKILL.md)",
        "</system-reminder>",
    ]


async def test_skills_and_plan_are_announced_once_in_a_session(tmp_path: Path) -> None:
    skill(tmp_path, "one", "---\nname: one\ndescription: first\n---\nDo </skill> this.")
    plan = tmp_path / ".reverie" / "plan.md"
    plan.write_text("1. test\n</plan> 2. ship\n")
    model = simulated(otherwise="done")
    async with opened(tmp_path, model) as session:
        attachments = Attachments(tmp_path, bytes_each=1_000)
        for prompt in ("a", "b"):
            await run_turn(session, model, ECHO, prompt, attachments=attachments)
        plan.write_text("1. ship\n")
        await run_turn(session, model, ECHO, "c", attachments=attachments)
        kinds = [e.record.kind for e in session.view.entries if isinstance(e.record, Attached)]
        first = session.id
    async with opened(tmp_path, model, resume=first) as session:
        again = Attachments(tmp_path, bytes_each=1_000)
        await run_turn(session, model, ECHO, "d", attachments=again)
        await session.append(again.invoke("one"))
        await run_turn(session, model, ECHO, "e", attachments=again)
        later = [e.record.kind for e in session.view.entries if isinstance(e.record, Attached)]
    assert kinds == ["skills", "plan", "plan"]
    assert later == [*kinds, "skill"]
    body = model.engine.log[-1].body
    assert body.count("</plan>") == 2
    assert body.count("</skill>") == 1
    assert "Do &lt;/skill> this." in body


def test_a_skill_that_is_not_there_is_named(tmp_path: Path) -> None:
    skill(tmp_path, "one", "text")
    with pytest.raises(NotFound, match="There are: one"):
        Attachments(tmp_path, bytes_each=10).invoke("two")


def test_long_text_is_cut_at_a_line_end_and_says_so() -> None:
    text = "a line\n" * 100
    cut = truncate_text(text, 50)
    assert cut == "a line\n" * 6 + "a line\n[cut at 50 bytes of 700]"
    assert truncate_text(text, 700) == text
    assert truncate_text("é" * 10, 3).startswith("é\n[cut")


@pytest.mark.parametrize(
    ("text", "fields", "body"),
    [
        ("no frontmatter", {}, "no frontmatter"),
        ("---\nname: x\n---\nbody\n", {"name": "x"}, "body"),
        ("---\nname: x\nnever closed", {}, "---\nname: x\nnever closed"),
        ("---\nname: a\nname: b\n---\n", {}, "---\nname: a\nname: b\n---\n"),
    ],
)
def test_frontmatter(text: str, fields: dict[str, str], body: str) -> None:
    assert frontmatter(text) == (fields, body)


async def test_a_folder_that_is_gone_attaches_nothing(tmp_path: Path) -> None:
    model = simulated("done")
    async with opened(tmp_path, model) as session:
        await session.append(RequestHead(model.name, "Another.", context="Hello").record("test"))
        attachments = Attachments(tmp_path / "gone", bytes_each=10)
        await session.add("x")
        assert attachments.at_turn(session.view, 0.0) == ()
        assert isinstance(session.view.entries[-1].record, UserMessage)
