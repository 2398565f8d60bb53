"""A compaction makes the context smaller, whatever comes back behind it; or nothing has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie.layers import CompactionFailed
from reverie.testing import reply
from reverie.transcript import INTRO
from reverie.wire import render, user

from .compacts import Stage as TalkStage
from .compacts import Talk, a_summary, boundaries
from .test_restoring import LONG, Stage, restored

pytestmark = pytest.mark.spec("6.smaller")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


async def test_files_that_would_make_it_larger_are_left_out(stage: Stage):
    path = stage.write("grown.py", "one line\n")
    async with stage.open() as agent:
        await agent.turn(f"Read {path}\n{LONG}")
        stage.write("grown.py", "now it has many lines\n" * 900)
        done = await agent.session.summarize()
        assert done.tokens_after < done.tokens_before
        assert restored(agent) == []


async def test_of_two_files_the_one_that_fits_comes_back(stage: Stage):
    small, grown = stage.write("small.py", "small = 1\n"), stage.write("grown.py", "x\n")
    async with stage.open() as agent:
        await agent.turn(f"Read {small} {grown}\n{LONG}")
        stage.write("grown.py", "now it has many lines\n" * 900)
        done = await agent.session.summarize()
        assert done.tokens_after < done.tokens_before
        assert ["small = 1" in text for text in restored(agent)] == [True]


async def test_where_the_head_alone_would_make_it_larger_nothing_is_changed(stage: Stage):
    async with stage.open() as agent:
        await agent.turn(f"Hello.\n{LONG}")
        before = render(agent.session.view).body()
        stage.write("CLAUDE.md", "A rule that was not there before.\n" * 400)
        with pytest.raises(CompactionFailed, match="must free"):
            await agent.session.summarize()
        assert render(agent.session.view).body() == before


@pytest.mark.parametrize("words", [5, 20, 60, 100])
async def test_a_keep_list_never_outweighs_what_went(home: Path, tmp_path: Path, words: int):
    """Names and conditions of a short conversation, most of which the audit would keep."""
    said = " ".join(f"Never touch src/deep/part_{n}.py." for n in range(words))
    stage = TalkStage(home, tmp_path / "work", Talk(lambda _: a_summary(said="Well. " * 12)))
    async with stage.open() as s:
        await s.add(user(said))
        await stage.rounds(s, 1, 2)
        await s.prepare()
        await s.observe(reply("All parts are there."))
        before = s.view.tokens
        try:
            done = await s.summarize()
        except CompactionFailed:
            assert s.view.tokens == before
            assert not boundaries(s)
        else:
            assert done.tokens_after < done.tokens_before == before
            assert s.view.tokens < before


async def test_a_keep_list_gets_the_room_that_is_left(home: Path, tmp_path: Path):
    said = " ".join(f"Never touch src/deep/part_{n}.py." for n in range(60))
    stage = TalkStage(home, tmp_path / "work", Talk(lambda _: a_summary(said="Well. " * 6)))
    async with stage.open() as s:
        await s.add(user(said))
        await stage.rounds(s, 1, 2)
        await s.prepare()
        await s.observe(reply("All parts are there."))
        await s.summarize()
        assert INTRO in render(s.view).body()
