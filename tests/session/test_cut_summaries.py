"""A summary that is asked for beside the conversation and comes cut off: the loop's rules hold
there too."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reverie.session import Session
from reverie.testing import ScriptedModel, reply
from reverie.wire import Reply, Request, render, user
from reverie.world import Capabilities

from .compacts import Stage, a_summary, boundaries

pytestmark = pytest.mark.spec("6.cut")
WHOLE = a_summary(said="Parts 1 to 40 are built.")
HALF = len(WHOLE) // 2


@pytest.fixture
def stage(home: Path, tmp_path: Path) -> Stage:
    return Stage(home, tmp_path / "work")


def cut(text: str, why: str = "max_tokens") -> Reply:
    return replace(reply(text), stop_reason=why)


def another(*answers: Any) -> ScriptedModel:
    known = Capabilities(window=50_000, max_output=4_000)
    return ScriptedModel(answers, name="another", capabilities=known)


async def filled(stage: Stage, s: Session) -> None:
    await s.add(user("Build all parts."))
    await stage.rounds(s, 40)


def texts(request: Request) -> list[str]:
    return [p.block.text for m in request.messages() for p in m.pieces]


async def test_a_summary_that_was_cut_off_goes_on_where_it_was_cut(stage: Stage):
    model = another(cut(WHOLE[:HALF]), WHOLE[HALF:])
    async with stage.open(summariser=model) as s:
        await filled(stage, s)
        assert "Parts 1 to 40 are built." in "\n".join(texts(render(s.view)))
        assert stage.talk.asked == 0
    first, second = model.requests
    assert texts(second)[: len(texts(first))] == texts(first)
    assert texts(second)[-2] == WHOLE[:HALF]
    assert "Go on where you were cut off" in texts(second)[-1]
    assert [m.role for m in second.messages()][-2:] == ["assistant", "user"]


async def test_one_that_stays_cut_off_is_none_and_the_sessions_own_model_writes(stage: Stage):
    model = another(*(cut(WHOLE[:HALF]) for _ in range(9)))
    async with stage.open(summariser=model) as s:
        await filled(stage, s)
        assert len(boundaries(s)) == 1
        assert stage.talk.asked == 1
    assert len(model.requests) == 3
    assert any("cut off by the output limit 3 times" in n.text for n in stage.notices)


async def test_a_pause_is_sent_again_as_it_is(stage: Stage):
    model = another(cut(WHOLE[:HALF], "pause_turn"), WHOLE[HALF:])
    async with stage.open(summariser=model) as s:
        await filled(stage, s)
        assert "Parts 1 to 40 are built." in "\n".join(texts(render(s.view)))
    assert texts(model.requests[1])[-1] == WHOLE[:HALF]


async def test_a_refusal_is_no_summary(stage: Stage):
    model = another(cut(WHOLE, "refusal"))
    async with stage.open(summariser=model) as s:
        await filled(stage, s)
        assert stage.talk.asked == 1
        assert "Parts 1 to 40 are built." not in "\n".join(texts(render(s.view)))
    assert any("refused" in n.text for n in stage.notices)


async def test_an_answer_that_no_window_has_room_for_is_asked_for_with_less(stage: Stage):
    full = "model_context_window_exceeded"
    model = another(cut(WHOLE[:HALF], full), WHOLE)
    async with stage.open(summariser=model) as s:
        await filled(stage, s)
        assert stage.talk.asked == 0
    assert len(texts(model.requests[1])) < len(texts(model.requests[0]))
