"""Conversations that get compacted: a simulated model, its summaries, and what befalls them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from reverie.session import Session, open_session
from reverie.simulator import Engine, Given, SimulatedModel, call, last_text, thinking_block
from reverie.testing import ManualClock, ids, tool_definition
from reverie.transcript import SUMMARY, Object, Replaced
from reverie.wire import Reply, tool_result
from reverie.world import Capabilities, Notice, complete

NOTES = "REVERIE_FLAG_SESSION_MEMORY"
ASKED = "is about to give way to a summary"  # words of the summariser's instruction
TOOLS = [tool_definition("Read"), tool_definition("Bash")]
RESULT = "src/part_{n}.py:12: result line {n} of the build\n"


def a_summary(*, without: str = "", said: str = "", draft: str = "secret drafting") -> str:
    """An answer as the summariser should give it."""
    sections = [f"## {n}. {s}\n{said or 'None.'}" for n, s in enumerate(SUMMARY, 1) if s != without]
    return f"<analysis>\n{draft}\n</analysis>\n<summary>\n" + "\n\n".join(sections) + "\n</summary>"


@dataclass
class Talk:
    """A model that works and thinks, and summarises when it is asked to."""

    summaries: Callable[[int], Given] = lambda _: a_summary()
    thinks: bool = True
    asked: int = 0
    numbers: Any = field(default_factory=lambda: itertools.count(1))
    bodies: list[Object] = field(default_factory=list)

    def __call__(self, body: Object) -> Given:
        if ASKED in last_text(body):
            self.asked += 1
            self.bodies.append(body)
            return self.summaries(self.asked)
        n = next(self.numbers)
        thinking = [thinking_block(f"I look at part {n}.")] if self.thinks else []
        return [*thinking, call("Bash", {"command": f"make part_{n}"}, f"toolu_{n}")]


class Claiming(SimulatedModel):
    """A provider whose window is smaller than it is said to be."""

    claimed = 0

    @property
    def capabilities(self) -> Capabilities:
        known = super().capabilities
        return replace(known, window=self.claimed or known.window)


@dataclass
class Stage:
    """A session with a simulated model behind it, driven as a caller's own loop would."""

    home: Path
    project: Path
    talk: Talk = field(default_factory=Talk)
    window: int = 20_000
    notes: bool = False  # whether session notes are taken
    claims: int = 0  # the window that the provider's table names, where it is wrong
    notices: list[Notice] = field(default_factory=list)
    clock: ManualClock = field(default_factory=ManualClock)

    def __post_init__(self) -> None:
        self.project.mkdir(parents=True, exist_ok=True)
        self.engine = Engine(answerer=self.talk, clock=self.clock.now)
        self.model = Claiming(self.engine, window=self.window, minimum=1, cache_edits=False)
        self.model.claimed = self.claims

    def open(self, **parts: Any) -> AbstractAsyncContextManager[Session]:
        known: dict[str, Any] = {
            "home": self.home,
            "environ": {"HOME": str(self.home.parent), NOTES: "1" if self.notes else "0"},
            "model": self.model,
            "system": "You help.",
            "tools": TOOLS,
            "context": "# notes",
            "options": {"max_tokens": 2_000},
            "clock": self.clock,
            "say": self.notices.append,
            "new_id": ids(parts.pop("prefix", "id")),
        }
        return open_session(self.project, **{**known, **parts})

    async def round(self, s: Session, size: int = 40) -> Reply:
        """One request, its answer, and a result of `size` lines."""
        self.clock.time += 1
        request = await s.prepare()
        reply = await s.observe(await complete(self.model, request))
        for one in reply.tool_calls:
            n = int(one.id.rpartition("_")[2])
            await s.add(tool_result(one.id, RESULT.format(n=n) * size))
        return reply

    async def rounds(self, s: Session, count: int, size: int = 40) -> None:
        for _ in range(count):
            await self.round(s, size)

    def refused(self) -> list[str]:
        return [logged.error for logged in self.engine.log if logged.error]

    def heard(self, layer: str = "compaction") -> list[str]:
        return [n.text for n in self.notices if n.layer == layer]


def boundaries(s: Session) -> list[Replaced]:
    records = (e.record for e in s.view.entries)
    return [r for r in records if isinstance(r, Replaced) and r.boundary is not None]
