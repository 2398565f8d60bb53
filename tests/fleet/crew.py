"""Worker processes of a fleet, for tests that kill, stop and replace them.

They are hired by the fixture `hire`, which ends every one of them, also where the test failed and
also those that were stopped.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from tests.conftest import ROOT
from tests.fleet.trial_worker import reading_mark

LEASE = 3.0
Hire: TypeAlias = "Callable[[str, Path, int, str], Crew]"


class Crew:
    """Worker processes with the same body; one that was killed is replaced."""

    def __init__(self, url: str, home: Path, count: int, body: str) -> None:
        self.home = home
        self.line = [sys.executable, "-m", "tests.fleet.trial_worker", url, str(home)]
        self.line += [str(LEASE), body]
        self.log = home.parent / "workers.log"
        self.all: list[subprocess.Popen[bytes]] = []
        for _ in range(count):
            self.hire()

    def hire(self) -> None:
        with self.log.open("ab") as log:
            self.all.append(subprocess.Popen(self.line, cwd=ROOT, stderr=log, stdout=log))

    def kill_one(self, chance: random.Random) -> None:
        chosen = chance.choice([one for one in self.all if one.poll() is None] or self.all)
        chosen.kill()
        chosen.wait()
        self.hire()

    def reads(self) -> bool:
        """Whether the first of them has read a memory and will land later; it holds no lock."""
        return reading_mark(self.home, self.all[0].pid).exists()

    def said(self) -> str:
        return self.log.read_text()[-4000:]

    def end(self) -> None:
        """End all of them; that reaches those too that were stopped."""
        for one in self.all:
            one.kill()
            one.wait()


def until(holds: Callable[[], bool], crew: Crew, seconds: float = 120.0) -> None:
    """Wait for something that workers do; their words are in the failure."""
    last = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < last, crew.said()
        time.sleep(0.05)
