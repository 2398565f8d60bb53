"""A long session: each round costs what the first ones cost, and nothing piles up."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import reverie
from reverie.session import ToolEnded, TurnEvent, TurnLimits, TurnUsage, run_turn
from reverie.simulator import Engine, Ledger, SimulatedModel
from reverie.wire import Request
from reverie.world import Event
from tests.conftest import Scale
from tests.faults import open_files, quick_folder
from tests.loop.stage import SimpleTools, calls, echo, opened

pytestmark = pytest.mark.spec("13.flat")
OURS = os.path.dirname(os.path.abspath(reverie.__file__))
LOOKED_AT = 20  # rounds counted early and as many at the end


class Counting:
    """The simulated model; outside of it, and in some rounds, our own calls are counted."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.windows = (range(40, 40 + LOOKED_AT), range(most - LOOKED_AT, most))
        engine = Engine(ledger=Ledger(bodies=False))
        self.inner = SimulatedModel(engine, window=10_000_000)
        self.name, self.capabilities = self.inner.name, self.inner.capabilities
        self.inner.engine.answerer = self.answer
        self.rounds = 0
        self.calls: list[Counter[str]] = [Counter(), Counter()]
        self.seen: list[tuple[int, int, int]] = []

    def answer(self, body: Any) -> Any:
        if self.rounds >= self.most:
            return "done"
        return calls(*(("echo", {"text": f"{self.rounds} {n}"}) for n in range(3)))

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        self._watch(None)
        self.rounds += 1
        async for event in self.inner.stream(request):
            yield event
        self.seen.append((len(asyncio.all_tasks()), threading.active_count(), open_files() or 0))
        found = next((n for n, w in enumerate(self.windows) if self.rounds in w), None)
        self._watch(None if found is None else self.calls[found])

    def _watch(self, counter: Counter[str] | None) -> None:
        def seen(frame: FrameType, event: str, given: Any) -> None:
            code = frame.f_code
            if counter is not None and event in ("call", "c_call") and OURS in code.co_filename:
                name = code.co_qualname if event == "call" else f"{code.co_qualname}: C"
                counter[f"{os.path.basename(code.co_filename)} {name}"] += 1

        sys.setprofile(seen if counter is not None else None)


async def test_the_work_of_a_round_does_not_grow_and_nothing_leaks(scale: Scale) -> None:
    rounds = scale.pick(160, 500)
    model = Counting(rounds)
    ended = 0

    def watch(event: TurnEvent) -> None:
        nonlocal ended
        ended += isinstance(event, ToolEnded)

    with quick_folder() as folder:
        async with opened(folder, model) as session:
            limits, spend = TurnLimits(rounds=rounds + 1), TurnUsage()
            try:
                given: Any = {"limits": limits, "spend": spend, "on_event": watch}
                result = await run_turn(session, model, SimpleTools(echo=echo), "go", **given)
            finally:
                sys.setprofile(None)
            journal = next((Path(folder) / "home").rglob(f"{session.id}.jsonl"))
            lines = [len(line) for line in journal.read_bytes().splitlines()]
    assert (result.outcome, result.rounds, ended) == ("completed", rounds, 3 * (rounds - 1))
    assert spend.requests == rounds
    early, late = (sum(c.values()) for c in model.calls)
    grown = {
        name: (model.calls[0][name], count)
        for name, count in model.calls[1].most_common()
        if count > model.calls[0][name] * 1.2 + 40
    }
    assert early > 1_000
    assert grown == {}
    assert late <= early * 1.02
    assert len(lines) < 9 * rounds
    third = len(lines) // 3
    assert sum(lines[-third:]) < sum(lines[third : 2 * third]) * 1.1
    middle, last = model.seen[50], model.seen[-1]
    assert last[0] == middle[0]
    assert last[1] <= middle[1] + 1
    assert last[2] <= middle[2]
