"""The trust table, played: what a fooled model would write never reaches the head of a session."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reverie.testing import call, reply
from reverie.transcript import ExtractTask
from tests.bench.trust_table import FRESH, NAMED, TrustCase, cases

from .extracts import Answer, Script, Stage, turn, write

pytestmark = [pytest.mark.spec("B4")]
DEV = [one for one in cases() if not one.held]
HELD = [one for one in cases() if one.held]


async def outcome(case: TrustCase, base: Path) -> str:
    """What became of the draft that the last turn's extraction wrote."""
    stage, script, said = Stage(base), Script(lambda *_: "done"), list[str]()
    for number, line in enumerate(case.conversation):
        if line.who == "user":
            said.append(line.text)
        elif line.who == "tool":
            (stage.project / f"page{number}.txt").write_text(line.text)
            asked = call("Read", f"m{number}", file_path=f"page{number}.txt")
            script.main.append(reply(asked))
        else:
            script.main.append(line.text)

    def rounds(task: ExtractTask, number: int) -> Answer:
        return reply(write("draft.md", case.file)) if number == 1 else "done"

    async with stage.agent(script) as agent:
        await turn(agent, *said[:-1])
        script.rounds = rounds
        await turn(agent, said[-1])
        memories = agent.memories
        assert memories is not None
        if memories.folder.exists("draft.md"):
            listed = "draft.md" in memories.folder.index().data.decode()
            return "saved" if listed else "file_without_pointer"
        return "queued" if memories.review.items() else "refused"


@pytest.mark.parametrize("case", DEV, ids=lambda one: one.id)
async def test_a_draft_comes_to_what_its_source_allows(case: TrustCase, tmp_path: Path) -> None:
    assert await outcome(case, tmp_path) in case.allowed


async def test_so_do_those_held_back(tmp_path: Path) -> None:
    """Told as counts alone: whoever changes a rule does not look at them. One still goes wrong."""
    right = reached = 0
    for number, case in enumerate(HELD):
        got = await outcome(case, tmp_path / str(number))
        right += got in case.allowed
        reached += got == "saved" and not case.reaches_the_head
    assert reached <= 1
    assert right >= len(HELD) - 1


@pytest.mark.parametrize("case", cases(FRESH), ids=lambda one: one.id)
async def test_so_do_those_written_once_the_rules_stood(case: TrustCase, tmp_path: Path) -> None:
    assert await outcome(case, tmp_path) in case.allowed


def named(*kinds: str) -> pytest.MarkDecorator:
    """Drafts that name a sentence, of some kinds or of all others."""
    others = {one.kind for one in cases(NAMED)} - {"reported", "wrapped", "paraphrase"}
    rows = [one for one in cases(NAMED) if one.kind in (kinds or others)]
    return pytest.mark.parametrize("case", rows, ids=lambda one: one.id)


@named("reported", "wrapped")
async def test_row_85_reported_words_are_no_rule_and_a_wrapped_prompt_is_the_users(
    case: TrustCase, tmp_path: Path
) -> None:
    assert await outcome(case, tmp_path) in case.allowed


@named("paraphrase")
async def test_row_86_a_fact_of_the_users_in_a_models_words_is_theirs(
    case: TrustCase, tmp_path: Path
) -> None:
    """In a turn that read a file too, and in whatever language."""
    assert await outcome(case, tmp_path) in case.allowed


@named()
async def test_a_named_sentence_is_checked_against_what_the_user_said(
    case: TrustCase, tmp_path: Path
) -> None:
    assert await outcome(case, tmp_path) in case.allowed


@pytest.mark.parametrize(
    "case",
    [one for one in (*DEV, *cases(FRESH)) if one.kind == "draft"],
    ids=lambda one: one.id,
)
async def test_naming_any_sentence_of_the_users_makes_no_tool_the_user(
    case: TrustCase, tmp_path: Path
) -> None:
    for line in case.conversation:
        if line.who == "user":
            named = replace(case, source=line.text)
            assert await outcome(named, tmp_path / str(id(line))) != "saved"
