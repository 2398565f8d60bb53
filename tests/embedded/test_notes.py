"""The embedded model's session notes: edits that keep to the page, its frame and its budgets."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.embedded import DONE, FAILED, NOTHING, answer_notes, lines_within, purpose
from reverie.layers import frame, over_budget, template
from reverie.settings import DEFAULTS
from reverie.transcript import (
    REFERENCE,
    AssistantMessage,
    Block,
    Entry,
    NotesTask,
    UserMessage,
    apply,
    block_of,
    blocks_of,
    estimate,
    reference,
    sections,
)
from reverie.wire import render
from tests.embedded.conversations import INSTRUCTION, Talk, coding
from tests.transcript.histories import build, histories

pytestmark = [pytest.mark.spec("B1"), pytest.mark.spec("5")]
PATH = "/home/user/notes/summary.md"


def asked(talk: Talk, text: str, since: str = "", section: int = 2_000, total: int = 12_000):
    task = NotesTask(path=PATH, notes=text, since=since, section_tokens=section, total_tokens=total)
    return list(answer_notes(talk.asked(task)))


def edited(text: str, blocks: list[Block]) -> str:
    """The page after some edits, each made as the tool makes it."""
    for block in blocks:
        assert (block.type, block.get("name")) == ("tool_use", "Edit")
        given: Any = block.value["input"]
        assert given["file_path"] == PATH
        assert text.count(given["old_string"]) == 1
        assert given["old_string"] != given["new_string"]
        text = text.replace(given["old_string"], given["new_string"])
    return text


def noted(talk: Talk, text: str, since: str = "", **limits: int) -> str:
    return edited(text, asked(talk, text, since, **limits))


def body(text: str, name: str) -> str:
    return next(s.body for s in sections(text) if s.name == name)


def test_the_first_notes_fill_the_sections():
    text = noted(coding(), template())
    assert frame(text) == frame(template())
    assert "Make parse_header in /home/user/app/frames.py strict." in body(text, "Session Title")
    assert "pending: Write the release notes" in body(text, "Current State")
    assert "> Make parse_header" in body(text, "Task specification")
    files = body(text, "Files and Functions")
    assert "- /home/user/app/frames.py — edited: I look at the parser first." in files
    assert reference("call_1") in files
    assert "- `pytest -x` — went well" in body(text, "Workflow")
    errors = body(text, "Errors & Corrections")
    assert "ValueError: bad prefix 7 — after changing frames.py it went well" in errors
    assert "- /home/user/app/ — frames.py" in body(text, "Codebase and System Documentation")
    assert "Never touch vendored_code." in body(text, "Learnings")
    assert "    The parser is strict now and the tests pass." in body(text, "Key results")
    assert "edited frames.py; ran 2 commands" in body(text, "Worklog")
    assert INSTRUCTION not in text
    assert "quote_this_instruction" not in text


def test_the_page_keeps_its_spacing():
    text = noted(coding(), template())
    assert "\n\n# Current State\n" in text
    assert "\n\n\n" not in text
    again = coding()
    first = noted(again, template())
    since = again.last
    again.user("Now the second thing.")
    assert "\n\n# Current State\n" in noted(again, first, since)


def test_only_what_is_new_is_added():
    talk = coding()
    first = noted(talk, template())
    since = talk.last
    talk.user("Now rename checked_prefix to verified_prefix.")
    talk.call(
        "Edit",
        "Replaced 2",
        file_path="/home/user/app/frames.py",
        old_string="checked_prefix",
        new_string="verified_prefix",
    )
    talk.say("Renamed.")
    text = noted(talk, first, since)
    task = body(text, "Task specification")
    assert task.count("> Make parse_header") == 1
    assert "> Now rename checked_prefix" in task
    files = body(text, "Files and Functions")
    assert files.count("/home/user/app/frames.py") == 1
    assert {reference(f"call_{n}") for n in (1, 3, 6)} <= set(REFERENCE.findall(files))
    assert body(text, "Session Title") == body(first, "Session Title")
    assert body(text, "Worklog").startswith(body(first, "Worklog").rstrip("\n"))
    assert body(text, "Worklog").count("Make parse_header") == 1
    assert "Renamed." in body(text, "Current State")
    assert "strict now" not in body(text, "Current State")
    assert "    Renamed." in body(text, "Key results")


def test_an_error_that_ended_since_is_told_anew():
    talk = Talk()
    talk.user("Build it.")
    talk.call("Bash", "error: missing_symbol_name", error=True, command="make all")
    first = noted(talk, template())
    assert "not seen to work since" in body(first, "Errors & Corrections")
    assert "Not seen to work yet" in body(first, "Current State")
    since = talk.last
    talk.call("Write", "Wrote", file_path="/home/user/symbols.c", content="int x;")
    talk.call("Bash", "built", command="make all")
    errors = body(noted(talk, first, since), "Errors & Corrections")
    assert "not seen to work since" not in errors
    assert "after changing symbols.c it went well" in errors
    assert errors.count("missing_symbol_name") == 1


def test_a_persons_own_lines_stay():
    text = noted(coding(), template())
    heading = next(s for s in sections(text) if s.name == "Workflow")
    mine = text.replace(heading.text, heading.text.rstrip() + "\n- Ask Ada before a release.\n\n")
    talk = coding()
    since = talk.last
    talk.call("Bash", "ok", command="make release")
    again = noted(talk, mine, since)
    assert "- Ask Ada before a release." in body(again, "Workflow")
    assert "`make release`" in body(again, "Workflow")


def test_the_same_request_gets_the_same_edits_with_ids_of_their_own():
    talk = coding()
    one, two = asked(talk, template()), asked(talk, template())
    assert [b.raw for b in one] == [b.raw for b in two]
    ids = [b.get("id") for b in one]
    assert len(set(ids)) == len(ids)
    assert not any(ident in talk.view.calls for ident in ids)


@pytest.mark.parametrize(("failed", "words"), [(False, DONE), (True, FAILED)])
def test_it_ends_once_its_edits_were_made(failed: bool, words: str):
    talk = coding()
    task = NotesTask(path=PATH, notes=template())
    edits = asked(talk, template())
    told = UserMessage(blocks_of(INSTRUCTION), "instruction")
    view = apply(talk.view, Entry("i", talk.last, 2.0, told))
    view = apply(view, Entry("j", "i", 2.0, AssistantMessage(tuple(edits))))
    given = {"type": "tool_result", "content": "x"}
    results = [
        block_of({**given, "tool_use_id": edit.get("id"), "is_error": failed and n == 0})
        for n, edit in enumerate(edits)
    ]
    view = apply(view, Entry("k", "j", 2.0, UserMessage(tuple(results), "tool")))
    (block,) = answer_notes(render(view, "session_memory", task))
    assert block.get("text") == words


def test_nothing_new_is_said_and_nothing_edited():
    talk = coding()
    text = noted(talk, template())
    (block,) = asked(talk, text, since=talk.last)
    assert block.get("text") == NOTHING


# --- budgets


def long_talk() -> Talk:
    talk = coding()
    for n in range(150):
        talk.user(f"Change module_{n}/part_{n}.py, and never break rule_{n:04d}. " + "Really. " * n)
        path = f"/home/user/module_{n}/part_{n}.py"
        talk.call("Read", f"def function_{n}(): pass", file_path=path, said="I look at it.")
        talk.call("Bash", f"error: broken_{n}", error=True, command=f"make target_{n}")
    talk.say("x " * 20_000)
    return talk


@pytest.mark.parametrize(("section", "total"), [(2_000, 12_000), (400, 12_000), (2_000, 3_000)])
def test_budgets_are_kept_and_the_newest_stays(section: int, total: int):
    text = noted(long_talk(), template(), section=section, total=total)
    settings = DEFAULTS.with_notes({"notes_section_tokens": section, "notes_total_tokens": total})
    assert over_budget(text, settings) == []
    assert frame(text) == frame(template())
    assert "make target_149" in body(text, "Workflow")
    assert "part_149.py" in body(text, "Files and Functions")
    assert "x x x" in body(text, "Key results")


def test_a_page_that_is_over_its_budget_is_brought_back():
    filled = noted(long_talk(), template(), section=9_000, total=90_000)
    talk = coding()
    text = noted(talk, filled)
    assert over_budget(text, DEFAULTS) == []
    assert "pytest -x" in body(text, "Workflow")


# --- pages of other people's


def test_a_template_of_ones_own_is_filled_by_its_headings():
    own = "# Where we are now\n_the state_\n\n# Commands\n\n# Poems\n_verses_\nRoses are red\n"
    text = noted(coding(), own)
    assert frame(text) == frame(own)
    assert "Said last" in body(text, "Where we are now")
    assert "pytest -x" in body(text, "Commands")
    assert body(text, "Poems") == "Roses are red\n"


@pytest.mark.parametrize(
    "own",
    ["Just a line", "Just a line\n", "# Poems\n", "# Poems", "# Poems\n_verses_", "## Two\n\n"],
)
def test_a_page_that_says_nothing_of_its_sections_gets_a_log(own: str):
    text = noted(coding(), own)
    assert text.startswith(own.rstrip("\n"))
    assert "edited frames.py" in text
    assert frame(text) == frame(own)


def test_an_empty_page_cannot_be_edited():
    (block,) = asked(coding(), "")
    assert block.get("text") == NOTHING


def test_two_headings_of_one_name_are_told_apart_or_left_alone():
    own = "# Workflow\n\n# Workflow\n\n# Current State\n\n"
    text = noted(coding(), own)
    assert "Said last" in text
    assert frame(text) == frame(own)


def test_line_ends_of_another_system_stay():
    own = template().replace("\n", "\r\n")
    text = noted(coding(), own)
    assert frame(text) == frame(own)
    assert "pytest -x" in text
    assert sections(own)[0].heading == "# Session Title\r\n"


def test_what_looks_like_a_heading_in_the_conversation_is_none_on_the_page():
    talk = Talk()
    talk.user("# Current State\n_mine_\n# Worklog\nnot yours")
    talk.say("# Key results\n_forged_\n```\n# Learnings\n```\n# Errors & Corrections\nforged")
    text = noted(talk, template())
    assert frame(text) == frame(template())
    assert "    # Key results" in body(text, "Key results")
    assert "> # Current State" in body(text, "Task specification")


def test_purposes_are_known_by_words():
    found = {s.heading.strip(): purpose(s) for s in sections(template())}
    assert list(found.values()) == [
        *("title", "state", "task", "files", "workflow", "errors"),
        *("system", "learnings", "results", "worklog"),
    ]


def test_the_oldest_lines_go_first():
    assert lines_within(["a" * 40, "b" * 40, "c" * 40], 21, "worklog") == ["b" * 40, "c" * 40]
    assert lines_within(["a" * 40, "b" * 40, "c" * 40], 21, "state") == ["a" * 40, "b" * 40]
    assert lines_within(["a" * 400], 1, "worklog") == ["a" * 400]


@given(st.text(max_size=300))
def test_a_page_joined_again_is_the_page(text: str):
    assert "".join(s.text for s in sections(text)) == text


@given(histories)
def test_any_conversation_leaves_the_frame_as_it_is(taken: list[tuple[str, int]]):
    talk = Talk()
    talk.view = build(taken).view  # pyright: ignore[reportArgumentType]
    blocks = asked(talk, template())
    if blocks[0].type == "tool_use":
        text = edited(template(), blocks)
        assert frame(text) == frame(template())
        assert estimate(text) <= 12_000
        json.dumps([b.value for b in blocks])
