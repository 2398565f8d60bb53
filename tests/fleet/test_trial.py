"""The trial: jobs on few memories, several workers, and a kill again and again.

Nothing is lost, doubled or stuck, and no night lands twice in a memory.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reverie.fleet.ledger import FleetLedger
from reverie.fleet.local import open_local
from tests.conftest import ROOT, Scale
from tests.fleet.stage import jobs_for, make_memories, wrong
from tests.tally import counted

pytestmark = [pytest.mark.spec("9.fleet-trial")]
LEASE = 3.0


class Crew:
    """Worker processes; one that was killed is replaced."""

    def __init__(self, url: str, home: Path, count: int, seconds: float) -> None:
        self.line = [sys.executable, "-m", "tests.fleet.trial_worker", url, str(home)]
        self.line += [str(LEASE), str(seconds)]
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

    def end(self) -> None:
        for one in self.all:
            one.kill()
            one.wait()


def kept_killing(ledger: FleetLedger, crew: Crew, kills: int, seed: int, pause: float) -> None:
    """Kill until it was done often enough, then wait until no job is open."""
    chance = random.Random(seed)
    until = time.monotonic() + 1_200
    try:
        while ledger.open_jobs() and time.monotonic() < until:
            time.sleep(pause)
            if kills and ledger.open_jobs():
                crew.kill_one(chance)
                kills -= 1
            elif not any(one.poll() is None for one in crew.all):
                crew.hire()
    finally:
        crew.end()
    assert not kills, "the jobs were over before all kills were made"


def states(ledger: FleetLedger) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in ledger.counts():
        found[row["state"]] = found.get(row["state"], 0) + row["jobs"]
    return found


@dataclass(frozen=True, slots=True)
class Trial:
    """How much of it: nights and memories, processes, kills and the seconds between them."""

    nights: int
    memories: int
    processes: int
    kills: int
    body: float
    pause: float


SMALL = Trial(6, 10, 4, 10, body=1.0, pause=0.8)
FULL = Trial(40, 50, 16, 200, body=3.0, pause=0.5)
HERE = Trial(6, 10, 2, 5, body=0.5, pause=0.9)
HERE_IN_FULL = Trial(20, 50, 4, 100, body=0.5, pause=0.6)


def tried(url: str, base: Path, trial: Trial, seed: int) -> None:
    from reverie.fleet.engine import enqueue, init, open_fleet

    init(url)
    ledger = open_fleet(url)
    ledger.check()
    _tried(ledger, url, base, trial, seed, lambda: enqueue(ledger))


def tried_here(base: Path, trial: Trial, seed: int) -> None:
    _tried(open_local(base / "home"), "-", base, trial, seed, lambda: 0)


def _tried(
    ledger: FleetLedger, url: str, base: Path, trial: Trial, seed: int, begin: Callable[[], int]
) -> None:
    home = base / "home"
    roots = make_memories(home, base, trial.memories)
    jobs = jobs_for(roots, trial.nights)
    ledger.add(jobs)
    begin()
    crew = Crew(url, home, trial.processes, trial.body)
    kept_killing(ledger, crew, trial.kills, seed, trial.pause)
    assert states(ledger) == {"done": len(jobs)}, crew.log.read_text()[-4000:]
    assert wrong(home, roots, trial.nights) == (0, 0)
    counted("kills", trial.kills)
    ledger.close()


@pytest.mark.doors
def test_kills_lose_double_and_hold_up_nothing(
    postgres_url: str, tmp_path: Path, scale: Scale
) -> None:
    tried(postgres_url, tmp_path, SMALL, scale.seed)


@pytest.mark.proof
def test_the_trial_in_full(postgres_url: str, tmp_path: Path, scale: Scale) -> None:
    """2,000 jobs, 16 processes, 200 kills."""
    tried(postgres_url, tmp_path, FULL, scale.seed)


@pytest.mark.doors
def test_the_same_on_one_host_without_a_server(tmp_path: Path, scale: Scale) -> None:
    tried_here(tmp_path, HERE, scale.seed)


@pytest.mark.proof
def test_the_same_on_one_host_in_full(tmp_path: Path, scale: Scale) -> None:
    """1,000 jobs, 4 processes, 100 kills."""
    tried_here(tmp_path, HERE_IN_FULL, scale.seed)


@pytest.mark.doors
def test_a_host_that_never_returns_leaves_its_jobs_to_others(
    postgres_url: str, tmp_path: Path
) -> None:
    from reverie.fleet.engine import enqueue, init, open_fleet

    home = tmp_path / "home"
    roots = make_memories(home, tmp_path, 4)
    init(postgres_url)
    ledger = open_fleet(postgres_url)
    ledger.check()
    ledger.add(jobs_for(roots, 1))
    enqueue(ledger)
    gone = Crew(postgres_url, home, 1, 600.0)  # a body that would take ten minutes
    _until(lambda: len(ledger.jobs(state="running")) == 2)
    gone.end()
    crew = Crew(postgres_url, home, 1, 0.0)
    kept_killing(ledger, crew, 0, 0, 0.3)
    assert states(ledger) == {"done": 4}
    assert wrong(home, roots, 1) == (0, 0)
    assert sorted(row["tries"] for row in ledger.jobs()) == [1, 1, 2, 2]
    ledger.close()


@pytest.mark.doors
def test_a_worker_stopped_past_its_lease_lands_nothing(postgres_url: str, tmp_path: Path) -> None:
    from reverie.fleet.engine import enqueue, init, open_fleet

    home = tmp_path / "home"
    roots = make_memories(home, tmp_path, 1)
    init(postgres_url)
    ledger = open_fleet(postgres_url)
    ledger.check()
    ledger.add(jobs_for(roots, 1))
    enqueue(ledger)
    sleeper = Crew(postgres_url, home, 1, 2.0)
    _until(lambda: bool(ledger.jobs(state="running")))
    sleeper.all[0].send_signal(signal.SIGSTOP)
    crew = Crew(postgres_url, home, 1, 0.0)
    kept_killing(ledger, crew, 0, 0, 0.3)
    assert wrong(home, roots, 1) == (0, 0)
    (row,) = ledger.jobs()
    assert (row["state"], row["tries"]) == ("done", 2)
    sleeper.all[0].send_signal(signal.SIGCONT)
    sleeper.all[0].wait(120)  # it finds nothing open any more, and ends
    assert wrong(home, roots, 1) == (0, 0)
    assert ledger.jobs() == [row]
    ledger.close()


def _until(holds: Any) -> None:
    until = time.monotonic() + 180
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)
