"""The trial: jobs on few memories, several workers, and a kill again and again.

Nothing is lost, doubled or stuck, and no night lands twice in a memory.
"""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from reverie.fleet import LOG, FleetLedger, open_local
from reverie.store import is_stopped
from tests.conftest import Scale
from tests.fleet.crew import Crew, Hire, until
from tests.fleet.stage import jobs_for, make_memories, wrong
from tests.tally import counted

pytestmark = [pytest.mark.spec("9.fleet-trial")]


@dataclass(frozen=True, slots=True)
class Trial:
    """How much of it: nights and memories, processes, kills, the seconds between them, and after
    how many seconds something is stuck."""

    nights: int
    memories: int
    processes: int
    kills: int
    body: float
    pause: float
    most: float = 300.0


SMALL = Trial(6, 10, 4, 10, body=1.0, pause=0.8)
FULL = Trial(40, 50, 16, 200, body=3.0, pause=0.5, most=1_500.0)
HERE = Trial(6, 10, 2, 5, body=0.5, pause=0.9)
HERE_IN_FULL = Trial(20, 50, 4, 100, body=0.5, pause=0.6, most=1_500.0)
small = partial(pytest.param, marks=pytest.mark.integration, id="small")
full = partial(pytest.param, marks=pytest.mark.proof, id="in full")


def kept_killing(ledger: FleetLedger, crew: Crew, trial: Trial, seed: int) -> None:
    """Kill until it was done often enough, then wait until no job is open."""
    chance, kills = random.Random(seed), trial.kills
    last = time.monotonic() + trial.most
    while ledger.open_jobs():
        assert time.monotonic() < last, f"{states(ledger)}\n{crew.said()}"
        time.sleep(trial.pause)
        if kills and ledger.open_jobs():
            crew.kill_one(chance)
            kills -= 1
        elif not any(one.poll() is None for one in crew.all):
            crew.hire()
    crew.end()
    assert not kills, "the jobs were over before all kills were made"


def states(ledger: FleetLedger) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in ledger.counts():
        found[row["state"]] = found.get(row["state"], 0) + row["jobs"]
    return found


def tried(
    ledger: FleetLedger,
    hire: Hire,
    base: Path,
    trial: Trial,
    seed: int,
    begin: Callable[[], int] = lambda: 0,
    url: str = "-",
) -> None:
    home = base / "home"
    roots = make_memories(home, base, trial.memories)
    jobs = jobs_for(roots, trial.nights)
    ledger.add(jobs)
    begin()
    crew = hire(url, home, trial.processes, str(trial.body))
    kept_killing(ledger, crew, trial, seed)
    assert states(ledger) == {"done": len(jobs)}, crew.said()
    assert wrong(home, roots, trial.nights) == (0, 0)
    counted("kills", trial.kills, drawn=True)


@pytest.fixture
def local(tmp_path: Path) -> Iterator[FleetLedger]:
    ledger = open_local(tmp_path / "home")
    yield ledger
    ledger.close()


@pytest.mark.parametrize("trial", [small(SMALL), full(FULL)])
def test_kills_lose_double_and_hold_up_nothing(
    postgres_ledger: FleetLedger,
    postgres_url: str,
    hire: Hire,
    tmp_path: Path,
    scale: Scale,
    trial: Trial,
) -> None:
    """In full 2,000 jobs, 16 processes, 200 kills."""
    ledger = postgres_ledger
    tried(ledger, hire, tmp_path, trial, scale.seed, lambda: _enqueue(ledger), postgres_url)


@pytest.mark.parametrize("trial", [small(HERE), full(HERE_IN_FULL)])
def test_the_same_on_one_host_without_a_server(
    local: FleetLedger, hire: Hire, tmp_path: Path, scale: Scale, trial: Trial
) -> None:
    """In full 1,000 jobs, 4 processes, 100 kills."""
    tried(local, hire, tmp_path, trial, scale.seed)


@pytest.mark.integration
def test_a_host_that_never_returns_leaves_its_jobs_to_others(
    postgres_ledger: FleetLedger, postgres_url: str, hire: Hire, tmp_path: Path
) -> None:
    home, ledger = tmp_path / "home", postgres_ledger
    roots = make_memories(home, tmp_path, 4)
    ledger.add(jobs_for(roots, 1))
    _enqueue(ledger)
    gone = hire(postgres_url, home, 1, "600")  # a body that would take ten minutes
    until(lambda: len(ledger.jobs(state="running")) == 2, gone)
    gone.end()
    crew = hire(postgres_url, home, 1, "0")
    until(lambda: not ledger.open_jobs(), crew)
    assert states(ledger) == {"done": 4}
    assert wrong(home, roots, 1) == (0, 0)
    assert sorted(row["tries"] for row in ledger.jobs()) == [1, 1, 2, 2]


@pytest.mark.integration
def test_a_worker_stopped_past_its_lease_lands_nothing(
    postgres_ledger: FleetLedger, postgres_url: str, hire: Hire, tmp_path: Path
) -> None:
    """It was stopped between reading and landing, and holds nothing that others wait for."""
    home, ledger = tmp_path / "home", postgres_ledger
    roots = make_memories(home, tmp_path, 1)
    ledger.add(jobs_for(roots, 1))
    _enqueue(ledger)
    sleeper = hire(postgres_url, home, 1, "60")
    until(sleeper.reads, sleeper)
    sleeper.all[0].send_signal(signal.SIGSTOP)
    crew = hire(postgres_url, home, 1, "0")
    until(lambda: not ledger.open_jobs(), crew)
    assert wrong(home, roots, 1) == (0, 0)
    (row,) = ledger.jobs()
    assert (row["state"], row["tries"]) == ("done", 2)
    sleeper.all[0].send_signal(signal.SIGCONT)
    assert sleeper.all[0].wait(120) == 0, sleeper.said()  # the job is another's: it ends
    assert wrong(home, roots, 1) == (0, 0)
    assert ledger.jobs() == [row]
    counted("stops", drawn=False)


@pytest.mark.integration
def test_a_worker_stopped_with_the_memory_locked_keeps_its_job_waiting_and_no_more(
    postgres_ledger: FleetLedger, postgres_url: str, hire: Hire, tmp_path: Path
) -> None:
    """Nobody can write a memory that a stopped process holds. The job waits however long that
    lasts, uses up no try, and the log says whom to let go on; other memories are not held up.
    Let go on, the process lands nothing of what it slept over, and is a worker like any other."""
    home, ledger = tmp_path / "home", postgres_ledger
    held, free = make_memories(home, tmp_path, 2)
    ledger.add(jobs_for([held], 1))
    _enqueue(ledger)
    sleeper = hire(postgres_url, home, 1, "locked")
    pid = sleeper.all[0].pid
    until(lambda: is_stopped(pid), sleeper)
    (key,) = [row["key"] for row in ledger.jobs()]
    ledger.add(jobs_for([free], 1))
    _enqueue(ledger)
    crew = hire(postgres_url, home, 1, "0")
    until(lambda: states(ledger) == {"done": 1, "queued": 1}, crew)
    row = ledger.job("default", key)
    assert (row["state"], row["code"], row["tries"]) == ("queued", "held", 1)
    log = [json.loads(line) for line in (home / LOG).read_text().splitlines()]
    assert all(f"`kill -CONT {pid}`" in line["reason"] for line in log)
    assert {line["code"] for line in log} == {"held"}
    assert wrong(home, [free], 1) == (0, 0)
    sleeper.all[0].send_signal(signal.SIGCONT)
    until(lambda: _ended_or_asked_again(ledger, key), crew)
    assert [one.wait(120) for one in sleeper.all + crew.all] == [0, 0], crew.said()
    assert states(ledger) == {"done": 2}
    assert wrong(home, [held, free], 1) == (0, 0)
    counted("stops", drawn=False)


def _ended_or_asked_again(ledger: FleetLedger, key: str) -> bool:
    """Whether all is done; else what `reverie fleet retry` does: whoever goes on may hold the
    memory a moment longer, and a job that met it waits anew."""
    if not ledger.open_jobs():
        return True
    ledger.retry("default", key)
    _enqueue(ledger)
    return False


def _enqueue(ledger: FleetLedger) -> int:
    from reverie.fleet import enqueue

    return enqueue(ledger)
