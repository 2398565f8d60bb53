"""The ledger read back: what each turn considered, injected and left, and what was cited later."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reverie.session import in_a_row, injected_memories, ledgers
from reverie.testing import call, reply
from reverie.transcript import Attached, Entry, Recalled, UserMessage, text_block
from reverie.wire import tool_result

from .recall_stage import Fixed, Stage, hit, stage, write

pytestmark = [pytest.mark.spec("B2")]

QUESTION = "How do we release the billing service?"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tmp_path / "work"


def filled(s: Stage) -> None:
    write(s.memories, "release.md", "Run `scripts/ship_it.sh` after the freeze has been lifted.",
          name="Releasing billing")  # fmt: skip
    write(s.memories, "tulips.md", "Water the tulips near the eastern wall at dawn.", name="Tulips")


FINDS = [hit("release.md"), hit("tulips.md"), hit("weak.md", 0.1)]


async def test_each_turn_says_what_became_of_every_candidate(home: Path, project: Path):
    async with stage(home, project, finder=Fixed(FINDS)) as s:
        filled(s)
        await s.turn(QUESTION, reply("I do not know how."))
        await s.turn("ok", reply("Good."))
        first, second = ledgers(s.session.view.entries)
        value = json.loads(json.dumps(first.value()))
    assert (first.said, value["considered"], value["selector"]) == (QUESTION, 3, "embedded")
    told = {c["file"]: (c["outcome"], c["cited"]) for c in value["candidates"]}
    assert told == {
        "release.md": ("injected", False),
        "tulips.md": ("injected", False),
        "weak.md": ("left", False),
    }
    assert [c["why"] for c in value["candidates"] if c["file"] == "weak.md"] == [
        "not clearly about it"
    ]
    assert (second.rows, second.record.why) == ((), "the message has fewer than 2 words")


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (reply("As release.md says, ship."), "release.md"),
        (reply("See the note “Releasing  billing” for it."), "releasing billing"),
        (reply("Run `scripts/ship_it.sh` now."), "scripts/ship_it.sh"),
        (reply("Go, but only after the freeze has been lifted."), "after the freeze has been"),
        (
            reply("Running.", call("Bash", "t1", command="sh scripts/ship_it.sh")),
            "scripts/ship_it.sh",
        ),
        (reply("Reading.", call("Read", "t1", file_path="/m/release.md")), "release.md"),
    ],
)
async def test_a_memory_is_cited_by_file_name_or_telling_words(
    home: Path, project: Path, answer: object, what: str
):
    async with stage(home, project, finder=Fixed(FINDS)) as s:
        filled(s)
        await s.say(QUESTION)
        await s.prepare()
        await s.session.observe(answer)  # type: ignore[arg-type]
        message = s.session.view.leaf
        (turn,) = ledgers(s.session.view.entries)
    rows = {row.candidate.file: row.cited for row in turn.rows}
    cited = rows["release.md"]
    assert cited is not None
    assert (cited.what, cited.message) == (what, message)
    assert rows["tulips.md"] is None
    assert rows["weak.md"] is None


async def test_words_that_somebody_said_before_are_no_citation(home: Path, project: Path):
    async with stage(home, project, finder=Fixed(FINDS)) as s:
        filled(s)
        await s.say(f"{QUESTION} Is it scripts/ship_it.sh after the freeze has been lifted?")
        await s.prepare()
        await s.session.observe(reply("Yes, scripts/ship_it.sh after the freeze has been lifted."))
        (turn,) = ledgers(s.session.view.entries)
    assert all(row.cited is None for row in turn.rows)


async def test_a_plain_word_is_no_name(home: Path, project: Path):
    async with stage(home, project, finder=Fixed(FINDS)) as s:
        filled(s)
        await s.say(f"{QUESTION} And what of “Releasing billing”?")
        await s.prepare()
        await s.session.observe(reply("A release of tulips; releasing billing is hard."))
        (turn,) = ledgers(s.session.view.entries)
    assert all(row.cited is None for row in turn.rows)


async def test_a_citation_may_come_turns_later(home: Path, project: Path):
    async with stage(home, project, finder=Fixed(FINDS)) as s:
        filled(s)
        await s.turn(QUESTION, reply("Let me think.", call("Bash", "t1", command="ls")))
        await s.session.add(tool_result("t1", "nothing about tulips"))
        await s.session.prepare()
        await s.session.observe(reply("Hm."))
        await s.turn("And the flowers outside?", reply("Water the tulips near the eastern wall."))
        first = ledgers(s.session.view.entries)[0]
    cited = {row.candidate.file: bool(row.cited) for row in first.rows}
    assert cited == {"release.md": False, "tulips.md": True, "weak.md": False}


def test_chinese_needs_more_signs_in_a_row():
    text = "账单服务每周五下午三点部署到生产环境"
    assert "账 单 服 务 每 周 五 下 午 三" in set(in_a_row(text))
    assert list(in_a_row("太短了")) == []


def test_a_ledger_without_its_attachment_or_message_is_still_one():
    entries = [
        Entry("a", "", 1.0, UserMessage((text_block("Hello there"),))),
        Entry("b", "a", 2.0, Attached((text_block("no frame at all"),), "recall")),
        Entry("c", "b", 3.0, Recalled("gone", 1)),
    ]
    (turn,) = ledgers(entries)
    assert (turn.said, turn.at, turn.rows) == ("", 3.0, ())
    assert list(injected_memories(Attached((text_block("x"),), "recall"))) == []
