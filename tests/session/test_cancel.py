"""Cancelled by the event loop at any point where a session waits: what it shows is its file."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from reverie.session import Session, SessionLibrary, start_session
from reverie.store import Journal, Project, canonical_root
from reverie.testing import ManualClock, ScriptedModel, call, ids, reply
from reverie.transcript import Failed, View
from reverie.wire import render, tool_result
from tests.cancels import Hit, cancelled_at
from tests.conftest import Scale
from tests.faults import quick_folder

from .compacts import a_summary
from .doors import LARGE, TOOLS

pytestmark = pytest.mark.spec("1.cancel")


@dataclass
class Stage:
    """A session, the steps it takes, and what those that returned have acknowledged."""

    base: Path
    acked: list[str] = field(default_factory=list)

    async def started(self, **more: Any) -> Session:
        project = self.base / "work"
        project.mkdir(parents=True, exist_ok=True)
        known: dict[str, Any] = {
            "model": ScriptedModel([a_summary()] * 9),
            "system": "You help.",
            "tools": TOOLS,
            "home": self.base / "home",
            "environ": {"HOME": str(self.base)},
            "clock": ManualClock(),
        }
        return await start_session(project, **{**known, **more})

    def steps(self, s: Session) -> list[tuple[Callable[[], Awaitable[Any]], str]]:
        """What is done, and a word that must be found again once it has returned."""
        answer = reply("word-1", call("Bash", "t1"), call("Bash", "t2"))
        return [
            (lambda: s.add("word-0"), "word-0"),
            (s.prepare, ""),
            (lambda: s.observe(answer), "word-1"),
            (lambda: s.add(tool_result("t1", LARGE), tool_result("t2", "word-2")), "word-2"),
            (s.prepare, ""),
            (lambda: s.observe(reply("word-3")), "word-3"),
            (s.end_turn, ""),
            (lambda: s.rewind(s.view.leaf), ""),
            (s.summarize, ""),
            (s.sync, ""),
            (s.aclose, ""),
        ]

    def on_disk(self, session: str) -> View:
        root = canonical_root(self.base / "work")
        library = SessionLibrary.of(
            Project.at(root, home=self.base / "home", environ={"HOME": str(self.base)})
        )
        return library.read(session).view


def same(live: View, kept: View) -> None:
    assert [e.id for e in live.entries] == [e.id for e in kept.entries]
    assert live.leaf == kept.leaf
    assert live.open_calls == kept.open_calls
    assert render(live).body() == render(kept).body()


async def one_run(base: Path, step: int, at: int, hops: int) -> Hit:
    """All steps, one of them cancelled; then the session goes on, and is opened again."""
    stage = Stage(base)
    s = await stage.started(new_id=ids("id"))
    hit: Hit = ""
    for n, (work, word) in enumerate(stage.steps(s)):
        if n == step:
            before = len(s.view.entries)
            hit = await cancelled_at(work, at, hops)
            same(s.view, stage.on_disk(s.id))
            assert len(s.view.entries) >= before
            break
        await work()
        stage.acked.append(word)
    if step < len(stage.steps(s)) - 1:
        await s.add("after-0")
        await s.prepare()
        await s.observe(reply("after-1"))
        stage.acked += ["after-0", "after-1"]
        await s.aclose()
    same(s.view, stage.on_disk(s.id))
    again = await stage.started(resume=s.id, new_id=ids("again"))
    same(s.view, again.view)
    said = "\n".join(b.raw for e in again.view.entries for b in getattr(e.record, "blocks", ()))
    for word in stage.acked:
        assert word in said
    await again.aclose()
    return hit


def test_cancelled_at_every_wait(scale: Scale) -> None:
    points = 0
    for hops in range(scale.pick(7, 110)):
        with quick_folder() as base:
            for step in range(11):
                at = 1
                while anyio.run(one_run, base / f"{step}-{at}", step, at, hops) == "in time":
                    at += 1
                    points += 1
    print(f"{points} native cancels")
    assert points >= scale.pick(100, 1_000)


def test_cancelled_twice_somewhere(scale: Scale) -> None:
    """By chance: any two steps of a life, each after any number of turns of the loop."""
    chance = random.Random(scale.seed)
    runs = scale.pick(20, 1_000)
    with quick_folder() as base:
        for n in range(runs):
            seed = chance.randrange(2**32)
            anyio.run(_life, base / str(n), seed)


async def _life(base: Path, seed: int) -> None:
    chance = random.Random(seed)
    stage = Stage(base)
    s = await stage.started(new_id=ids("id"))
    for _ in range(6):
        word = f"word-{chance.randrange(10**9)}"
        at, hops = chance.randint(1, 2), int(chance.expovariate(0.25))  # it waits twice
        await cancelled_at(lambda w=word: s.add(w), at, hops, drawn=True)
        same(s.view, stage.on_disk(s.id))
        await s.add(f"{word}-acked")
        stage.acked.append(f"{word}-acked")
        at, hops = chance.randint(1, 4), int(chance.expovariate(0.25))
        await cancelled_at(s.prepare, at, hops, drawn=True)
        same(s.view, stage.on_disk(s.id))
        await s.prepare()
        await s.observe(reply(word))
    await s.aclose()
    kept = stage.on_disk(s.id)
    same(s.view, kept)
    body = render(kept).body()
    assert all(word in body for word in stage.acked)


async def test_a_cancelled_message_never_takes_the_place_of_an_acknowledged_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The thread that writes goes on after its task was cancelled: here, for a while."""
    stage = Stage(tmp_path)
    s = await stage.started(new_id=ids("id"))
    gate, write = threading.Event(), Journal.append

    def slow(journal: Journal, texts: Sequence[str]) -> None:
        if "cancelled" in texts[-1][:1_000]:
            gate.wait(10)
        write(journal, texts)

    monkeypatch.setattr(Journal, "append", slow)
    asyncio.get_running_loop().call_later(0.1, gate.set)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(s.add("cancelled " * 20_000), 0.02)  # too long to write at once
    await s.add("acknowledged")
    assert "acknowledged" in (await s.prepare()).body()
    await asyncio.to_thread(gate.wait, 10)
    await s.observe(reply("heard"))
    await s.aclose()
    same(s.view, stage.on_disk(s.id))
    assert "acknowledged" in render(stage.on_disk(s.id)).body()


async def test_what_was_handed_in_outlives_a_cancelled_flush(tmp_path: Path):
    stage = Stage(tmp_path)
    s = await stage.started(new_id=ids("id"))
    at = 1
    while True:
        s.hand(Failed("job", f"number {at}"))
        if not await cancelled_at(s.flush, at):
            break
        at += 1
    await s.flush()
    kept = [e.record.error for e in s.view.entries if isinstance(e.record, Failed)]
    assert kept == [f"number {n}" for n in range(1, at + 1)]
    same(s.view, stage.on_disk(s.id))
    await s.aclose()


async def test_a_cancelled_start_gives_the_lock_back(tmp_path: Path):
    stage = Stage(tmp_path)
    s = await stage.started()
    await s.aclose()
    at = 1
    while await cancelled_at(lambda: stage.started(resume=s.id, model="another"), at):
        again = await stage.started(resume=s.id)
        await again.aclose()
        at += 1


async def test_a_time_limit_on_closing_leaves_nothing_locked(tmp_path: Path):
    stage = Stage(tmp_path)
    s = await stage.started()
    s.jobs.start("job", anyio.sleep_forever)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(s.aclose(), 0.05)
    again = await stage.started(resume=s.id)
    await again.aclose()
