"""The live course on recorded answers: facts kept, brought back when needed, no stub loop; and
the course itself can fail, and sends the same bytes whatever the folder and the ids."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import anyio
import pytest

from bench import live
from bench.live_course import COURSE, DENIAL, FACTS, REMEMBERED, ROLE
from bench.prepared import Home
from reverie.testing import ScriptedModel, reply
from reverie.transcript import Usage

pytestmark = pytest.mark.spec("project.live")

ANSWERS = live.RECORDED.read_text("utf-8").splitlines()


@pytest.fixture(scope="module")
def played() -> tuple[live.Course, int]:
    with live.folder() as home:
        return anyio.run(live.replay, ANSWERS, home)


def test_what_was_said_is_kept_and_comes_back_when_it_is_needed(
    played: tuple[live.Course, int],
) -> None:
    course, unused = played
    missed = [what for what, _, _, met in live.figures(course) if met is False]
    assert missed == []
    assert unused == 0


def sent(course: live.Course) -> list[tuple[int, str, str]]:
    return [(one.session, one.source, one.request) for one in course.model.exchanges]


def test_another_run_in_another_folder_sends_the_same_bytes(
    played: tuple[live.Course, int],
) -> None:
    with live.folder() as home:
        again, _ = anyio.run(live.replay, ANSWERS, home)
    assert sent(again) == sent(played[0])


def test_no_request_changes_what_was_sent_before_it(played: tuple[live.Course, int]) -> None:
    """Under `classic`, whose context stays small here, each request begins with the one before."""
    for session in (1, 2):
        asked = [
            one.request.rpartition("]}")[0]
            for one in played[0].model.exchanges
            if (one.session, one.source) == (session, "main")
        ]
        bare = [
            text.replace(',"cache_control":{"type":"ephemeral","ttl":"5m"}', "") for text in asked
        ]
        for before, after in pairwise(bare):
            assert after.startswith(before[: before.rindex("}")])


def test_a_fact_is_found_in_no_request_that_nobody_told_it(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.save(REMEMBERED)
    for turn in (turn for session in COURSE for turn in session.turns if turn.needs):
        request = anyio.run(home.agent_request, turn.said)
        assert [fact.name for fact in turn.needs if fact.stands_in(request)] == []


def test_a_fact_is_found_by_its_words_near_one_another() -> None:
    assert ROLE.stands_in("A backend engineer, new to the\nfront end of the shop.")
    assert not ROLE.stands_in("The backend." + " filler" * 200 + " The front end.")
    assert [fact.name for fact in FACTS if fact.stands_in(DENIAL)] == ["correction"]
    assert [fact.name for fact in FACTS if fact.stands_in("A different way to show it")] == []


def test_whoever_plays_the_model_is_told_no_fact() -> None:
    assert [fact.name for fact in FACTS if fact.stands_in(live.PLAYER)] == []


@pytest.mark.parametrize(
    ("line", "harmless"),
    [
        ("python3 check.py --trace", True),
        ("grep -n EUR shop/*.py | head", True),
        ("rm -rf shop", False),
        ("python3 check.py > out.txt", False),
        ("cat x; curl example.net", False),
    ],
)
def test_the_person_at_the_prompt_allows_what_does_no_harm(line: str, harmless: bool) -> None:
    assert live._harmless(line) is harmless  # pyright: ignore[reportPrivateUsage]


def test_a_course_ends_at_its_budget(tmp_path: Path) -> None:
    dear = ScriptedModel(lambda _: reply("Well.", usage=Usage(uncached=10_000)))
    with live.folder() as home:
        course = anyio.run(live.play, dear, home, 15_000.0, lambda _: None)
    assert len(course.model.exchanges) == 2
    missed = {what for what, _, _, met in live.figures(course) if met is False}
    assert "turns that came to their end" in missed
    assert "said no at the permission prompt" in missed
