"""After each turn a session asks the gates; a dream that is due runs as its job."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from reverie.session import ALLOWED, Session, list_dreams
from reverie.testing import ScriptedModel
from reverie.wire import Request, user
from reverie.world import Capabilities, Notice
from tests.session.doors import opened
from tests.session.dream.stage import NOW, Stage

pytestmark = pytest.mark.spec("9")
OFF = {"REVERIE_FLAG_EXTRACT_MEMORIES": "0", "REVERIE_FLAG_SESSION_MEMORY": "0"}


class Counting(ScriptedModel):
    """Answers anything, and counts what dreams asked."""

    def __init__(self, *, free: bool = True, fails: bool = False) -> None:
        super().__init__(self._answer, capabilities=Capabilities(free=free))
        self.dreams = 0
        self.fails = fails

    def _answer(self, request: Request) -> Any:
        if request.task.kind != "dream":
            return "fine"
        self.dreams += 1
        return RuntimeError("no") if self.fails else "All is in order."


@asynccontextmanager
async def session(
    stage: Stage,
    model: ScriptedModel,
    said: list[Notice] | None = None,
    interactive: bool = True,
    **environ: str,
) -> AsyncGenerator[Session]:
    heard: list[Notice] = [] if said is None else said
    parts: dict[str, Any] = {
        "environ": {"HOME": str(stage.base), **OFF, **environ},
        "memories": stage.memories,
        "clock": stage.clock,
        "say": heard.append,
        "interactive": interactive,
    }
    async with opened(stage.home, stage.base / "project", model=model, **parts) as s:
        yield s


async def turn(s: Session) -> None:
    await s.add(user("hello there"))
    await s.prepare()
    await s.observe({"role": "assistant", "content": [{"type": "text", "text": "fine"}]})
    await s.end_turn()
    await s.jobs.wait("dream", 20)


def sessions(stage: Stage, count: int) -> None:
    for n in range(count):
        path = stage.library.path / f"00000000-0000-4000-8000-00000000000{n}.jsonl"
        path.write_text("")
        os.utime(path, (NOW - 60, NOW - 60))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage.of(tmp_path)


async def test_five_sessions_and_no_dream_yet(stage: Stage) -> None:
    sessions(stage, 5)
    model = Counting()
    async with session(stage, model) as s:
        await turn(s)
        assert model.dreams == 1
        await turn(s)
    assert model.dreams == 1
    assert list_dreams(stage.memories)[0].trigger == "auto"


async def test_the_current_session_does_not_count(stage: Stage) -> None:
    sessions(stage, 4)
    model = Counting()
    async with session(stage, model) as s:
        await turn(s)
    assert model.dreams == 0


async def test_after_24_hours_and_five_more_sessions_again(stage: Stage) -> None:
    sessions(stage, 5)
    model = Counting()
    async with session(stage, model) as s:
        await turn(s)
        stage.clock.time += 24 * 3600
        await turn(s)
        assert model.dreams == 1  # no session since
        for path in stage.library.path.glob("0000*.jsonl"):
            os.utime(path, (stage.clock.time, stage.clock.time))
        await turn(s)
        assert model.dreams == 1  # sessions were counted a moment ago
        stage.clock.time += 601
        await turn(s)
    assert model.dreams == 2


async def test_the_flag_switches_it_off_at_run_time(stage: Stage) -> None:
    sessions(stage, 5)
    model = Counting()
    async with session(stage, model, REVERIE_FLAG_DREAM="0") as s:
        await turn(s)
    assert model.dreams == 0


async def test_after_a_failure_this_session_does_not_try_again(stage: Stage) -> None:
    sessions(stage, 5)
    model = Counting(fails=True)
    async with session(stage, model) as s:
        await turn(s)
        stage.clock.time += 700
        await turn(s)
        assert model.dreams == 1
    async with session(stage, model) as s:
        await turn(s)
    assert model.dreams == 2


async def test_with_a_paid_model_the_first_dream_is_asked_for_once(stage: Stage) -> None:
    sessions(stage, 5)
    model, said = Counting(free=False), list[Notice]()
    async with session(stage, model, said) as s:
        await turn(s)
        stage.clock.time += 700
        await turn(s)
        assert model.dreams == 0
        assert sum("a dream is due" in notice.text for notice in said) == 1
        assert "begun" in await s.dreams.start(s)
        await s.jobs.wait("dream", 20)
    assert model.dreams == 1
    assert (stage.home / ALLOWED).exists()
    stage.clock.time += 25 * 3600
    for path in stage.library.path.glob("0000*.jsonl"):
        os.utime(path, (stage.clock.time, stage.clock.time))
    async with session(stage, model) as s:
        await turn(s)
    assert model.dreams == 2


async def test_a_person_skips_the_gates_but_not_the_lock(stage: Stage) -> None:
    model, said = Counting(), list[Notice]()
    async with session(stage, model, said) as s:
        await s.dreams.start(s)
        await s.jobs.wait("dream", 20)
        assert model.dreams == 1
        stage.dreamer(["x"]).lock.take()
        await s.dreams.start(s)
        await s.jobs.wait("dream", 20)
    assert model.dreams == 1
    assert any("under way in process" in notice.text for notice in said)


@pytest.mark.spec("9.switch")
async def test_with_the_flag_off_a_person_gets_a_sentence_and_no_dream(stage: Stage) -> None:
    model = Counting()
    async with session(stage, model, REVERIE_FLAG_DREAM="0") as s:
        assert "reverie flags set dream on" in await s.dreams.start(s)
        assert not s.jobs.running
    assert model.dreams == 0


@pytest.mark.spec("9.switch")
async def test_where_no_person_is_there_a_due_dream_is_left_to_the_next_session(
    stage: Stage,
) -> None:
    """`-p` ends with its answer: a dream begun behind it would die at exit."""
    model = Counting()
    sessions(stage, 5)
    async with session(stage, model, interactive=False) as s:
        await turn(s)
    assert (model.dreams, list_dreams(stage.memories)) == (0, [])
    async with session(stage, model) as s:
        await turn(s)
    assert model.dreams == 1


def day(stage: Stage, name: str, at: float) -> None:
    """A day of the daily log, written to at a time."""
    path = stage.memories.root / "logs" / "2026" / "11" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"# {name}\n\n- 09:00 [user] Rosa moved the ledger.\n", encoding="utf-8")
    os.utime(path, (at, at))


async def test_with_a_daily_log_a_day_that_is_not_distilled_makes_a_dream_due(stage: Stage) -> None:
    """However few sessions there were; a day that a dream has seen counts no more."""
    model = Counting()
    async with session(stage, model, REVERIE_FLAG_DAILY_LOG="1") as s:
        await turn(s)
        assert model.dreams == 0  # no day yet
        day(stage, "2026-11-16", NOW - 60)
        await turn(s)
        assert model.dreams == 1
        stage.clock.time += 25 * 3600
        await turn(s)
        assert model.dreams == 1  # that day is distilled
        day(stage, "2026-11-17", stage.clock.time - 60)
        await turn(s)
    assert model.dreams == 2


async def test_without_a_daily_log_its_days_make_no_dream_due(stage: Stage) -> None:
    day(stage, "2026-11-16", NOW - 60)
    model = Counting()
    async with session(stage, model) as s:
        await turn(s)
    assert model.dreams == 0
