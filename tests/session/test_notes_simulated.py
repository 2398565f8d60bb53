"""Notes and what stands on them, over a long session against the simulated provider."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from reverie.errors import ProviderError
from reverie.session import Session
from reverie.settings import DEFAULTS
from reverie.simulator import Engine, SimulatedModel, from_model, thinking_block
from reverie.testing import ManualClock, ScriptedAnswer, ScriptedModel, call, reply
from reverie.toolbox import standard
from reverie.transcript import SUMMARY as TITLES
from reverie.transcript import Block, Failed, ForkEnded, NotesTaken, NotesTask, Replaced, sections
from reverie.wire import Reply, Request, tool_result, user
from reverie.world import Notice, complete
from tests.conftest import Scale
from tests.transcript.test_fold import pairs_up

from .doors import opened

pytestmark = [pytest.mark.spec("5")]
SUMMARY = "<analysis>thinking it over</analysis>\n<summary>\n{}\n</summary>"


@dataclass
class Course:
    """A made-up session: a turn of ten calls, then the next; notes that fail now and then."""

    seed: int
    failing: float
    made: int = 0
    notes: int = 0
    failed: int = 0
    summaries: int = 0
    forks: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    def answer(self, request: Request) -> ScriptedAnswer:
        if isinstance(request.task, NotesTask):
            return self._notes(request.task)
        if request.task.kind == "compact":
            self.summaries += 1
            return SUMMARY.format("\n".join(f"{n}. {s}:\nx" for n, s in enumerate(TITLES, 1)))
        self.made += 1
        thinking = thinking_block(f"what about part {self.made}? " * 4)
        if self.made % 11 == 0:
            return reply(thinking, f"Part {self.made // 11} is done.")
        path = f"src/shop/part_{self.made % 40}.py"
        return reply(thinking, "Looking.", call("Read", f"t{self.made}", file_path=path))

    def _notes(self, task: NotesTask) -> ScriptedAnswer:
        self.notes += 1
        if self.chance.random() < self.failing:
            self.failed += 1
            bad = reply(call("Edit", f"b{self.notes}", file_path="/etc/x", old_string="a"))
            return self.chance.choice([ProviderError("overloaded"), "No.", bad])
        return reply(*self._edits(task))

    def _edits(self, task: NotesTask) -> Iterator[Block]:
        for n, section in enumerate(sections(task.notes)):
            if section.name in ("Current State", "Worklog"):
                body = f"{section.body.strip()}\n- up to call {self.made}".strip()[-6_000:]
                new = f"{section.heading}{section.description}{body}\n\n"
                yield call(
                    "Edit",
                    f"e{self.notes}-{n}",
                    file_path=task.path,
                    old_string=section.text,
                    new_string=new,
                )


async def round_of(s: Session, model: SimulatedModel, course: Course) -> Reply:
    """One request and its answer, and the notes behind it."""
    request = await s.prepare()
    pairs_up(request)
    found = await complete(model, request)
    assert found.usage is not None
    known = len(records(s, ForkEnded, "session_memory"))
    await s.observe(found)
    await s.jobs.wait("session_memory", 20)
    await s.flush()
    for ended in records(s, ForkEnded, "session_memory")[known:]:
        if ended.usage.input:
            course.forks.append((ended.usage.read // max(1, ended.requests), found.usage.input))
    return found


def records(s: Session, kind: type, source: str = "") -> list[Any]:
    found: list[Any] = [e.record for e in s.view.entries if isinstance(e.record, kind)]
    return [r for r in found if not source or r.source == source]


async def play(
    home: Path, project: Path, course: Course, rounds: int, window: int
) -> tuple[Session, list[Notice]]:
    clock, told = ManualClock(), list[Notice]()
    engine = Engine(answerer=from_model(ScriptedModel(course.answer)))
    engine.clock = clock.now
    model = SimulatedModel(engine, window=window, cache_edits=False)
    parts: dict[str, Any] = {"model": model, "tools": standard().definitions(), "clock": clock}
    # a day's work in two hours: notes on each 5,000 tokens of it cost more than a day allows
    parts["settings"] = replace(DEFAULTS, context_policy="classic", background_tokens_per_day=10**9)
    async with opened(home, project, say=told.append, options={}, **parts) as s:
        await s.add(user("Go through all parts of the shop. Never change src/shop/legacy.py."))
        for n in range(rounds):
            found = await round_of(s, model, course)
            clock.time += 5
            if not found.tool_calls:
                await s.add(user(f"Good. Now part {n}."))
            for one in found.tool_calls:
                size = course.chance.randint(300, 5_000)
                await s.add(tool_result(one.id, f"line of part {n}\n" * (size // 16)))
    return s, told


@pytest.mark.timeout(900)
async def test_a_long_session_lives_on_its_notes(home: Path, tmp_path: Path, scale: Scale):
    """Three in ten notes forks fail; the provider binds thinking and refuses what is too long."""
    course = Course(7, 0.3)
    rounds, window = scale.pick((260, 40_000), (1_500, 200_000))
    s, told = await play(home, tmp_path, course, rounds, window)
    boundaries = [r for r in records(s, Replaced) if r.boundary]
    by_notes = [r for r in boundaries if r.reason == "session_memory"]
    assert len(boundaries) >= scale.pick(5, 4)
    assert len(by_notes) >= 0.9 * len(boundaries), [n.text for n in told][-20:]
    assert course.failed >= 0.2 * course.notes
    assert len(records(s, Failed)) >= course.failed * 0.25  # a "No." is no failure
    assert len(records(s, NotesTaken)) >= 10
    assert all(r.boundary.calls == 0 for r in by_notes)
    assert min(read / parent for read, parent in course.forks) >= 0.99
    assert len(course.forks) >= 10
    assert "Never change src/shop/legacy.py" in _everything(s)


def _everything(s: Session) -> str:
    return "\n".join(p.block.text for i in s.view.items for p in i.pieces)


async def test_a_resumed_session_sends_the_same_bytes(home: Path, tmp_path: Path):
    course = Course(3, 0.3)
    s, _ = await play(home, tmp_path, course, 90, 40_000)
    assert any(r.boundary for r in records(s, Replaced))
    tools = standard().definitions()
    async with opened(home, tmp_path, resume=s.id, tools=tools, model="", prefix="r") as later:
        assert later.view.tokens == s.view.tokens
        assert [i.pieces for i in later.view.items] == [i.pieces for i in s.view.items]
