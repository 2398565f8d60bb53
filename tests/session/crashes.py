"""A session's work, killed or failed at every call in turn, each time in a place of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import anyio

from reverie.errors import ReverieError
from tests.faults import Ack, Death, Outcome, every_error, every_kill, quick_folder

Work = Callable[[Path, Path, Ack], Awaitable[None]]
"""Works in a home and a project, and says what it has acknowledged."""
Check = Callable[[Path, Path, list[str]], None]
"""Looks at what is left there, knowing what was acknowledged."""


class Places:
    """A new home and project for each attempt."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.count = 0

    def new(self) -> None:
        self.count += 1
        self.project.mkdir(parents=True)

    @property
    def home(self) -> Path:
        return self.base / f"run{self.count}" / "home"

    @property
    def project(self) -> Path:
        return self.base / f"run{self.count}" / "work"


def killed_anywhere(work: Work, check: Check, *, stride: int) -> int:
    """Kill the work at every call, or every `stride`th; how many points there were."""
    with quick_folder() as base:
        at = Places(base)

        def attempt() -> Callable[[Ack], None]:
            at.new()
            return lambda ack: anyio.run(work, at.home, at.project, ack)

        def look(death: Death) -> None:
            check(at.home, at.project, death.acked)

        return every_kill(attempt, look, stride=stride)


def failed_anywhere(work: Work, check: Check, *, codes: Sequence[int], calls: Sequence[str]) -> int:
    """Fail each of these calls of the work in turn; how many points there were."""
    with quick_folder() as base:
        at = Places(base)
        acked: list[str] = []

        def attempt() -> Callable[[], None]:
            at.new()
            acked.clear()
            return lambda: anyio.run(work, at.home, at.project, acked.append)

        def look(outcome: Outcome) -> None:
            error = outcome.error
            assert error is None or isinstance(error, ReverieError), repr(error)
            check(at.home, at.project, acked)

        return every_error(attempt, look, codes=codes, calls=calls)
