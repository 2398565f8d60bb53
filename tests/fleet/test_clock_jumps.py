"""Two hosts on one ledger whose clocks jump by hours and days: no job runs twice, none is lost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from reverie.fleet import ClaimedJob, FleetLedger, Job, JobEnd, Progress, nightly
from reverie.team import open_database
from tests.conftest import Scale
from tests.tally import counted

pytestmark = [pytest.mark.spec("9.fleet-ledger")]
NOON = 1_790_000_000.0
JUMPS = (0.0, 0.0, 1.0, 60.0, -60.0, -7_200.0, 7_200.0, -86_400.0, 86_400.0, 3e6, -3e6)
JOBS = [
    nightly("dream", root, night, tenant=tenant, host="", due=False)
    for tenant, root in (("t1", "/p/one"), ("t1", "/p/two"), ("t2", "/p/three"))
    for night in ("2026-11-16", "2026-11-17")
]


class Host:
    """One host: its clock, its ledger, and the jobs that its workers hold."""

    def __init__(self, name: str, url: str) -> None:
        self.name, self.time = name, NOON
        self.ledger = FleetLedger(open_database(url), now=lambda: self.time, sleep=lambda _: None)
        self.held: dict[str, ClaimedJob] = {}  # by worker


class Course:
    """What two hosts do, drawn by chance, and what came of it."""

    def __init__(self, url: str, chance: Random) -> None:
        self.chance = chance
        self.hosts = [Host("a", url), Host("b", url)]
        self.hosts[0].ledger.make()
        self.done: Counter[tuple[str, str]] = Counter()
        self.stale: list[ClaimedJob] = []  # of workers that were given up, and do not know it

    def step(self) -> None:
        host = self.chance.choice(self.hosts)
        host.time += self.chance.choice(JUMPS)
        kind = self.chance.choice(
            ("plan", "claim", "claim", "beat", "end", "later", "lost", "wakes")
        )
        if kind == "plan":
            host.ledger.add(self.chance.sample(JOBS, 3))
        elif kind == "claim":
            self.claim(host)
        elif kind == "wakes" and self.stale:
            late = self.stale.pop()
            assert host.ledger.beat(late, Progress()) == "lost"
            assert not host.ledger.end(late, JobEnd("done"))
        elif host.held:
            self.work(host, kind, self.chance.choice(sorted(host.held)))

    def claim(self, host: Host) -> None:
        worker = f"{host.name}{self.chance.randint(1, 3)}"
        if worker not in host.held and (found := host.ledger.claim(worker)) is not None:
            others = [one for each in self.hosts for one in each.held.values()]
            assert found.job.root not in [one.job.root for one in others], "two writers"
            host.held[worker] = found

    def work(self, host: Host, kind: str, worker: str) -> None:
        taken = host.held[worker]
        if kind == "beat":
            assert host.ledger.beat(taken, Progress("updating", 1, 0, 0, 1.0)) == ""
        elif kind in ("end", "later"):
            del host.held[worker]
            end = JobEnd("done") if kind == "end" else JobEnd("queued", "later", 60.0)
            assert host.ledger.end(taken, end)
            self.done[_name(taken.job)] += kind == "end"
        elif kind == "lost":
            self.stale.append(host.held.pop(worker))
            other = self.chance.choice(self.hosts)
            assert other.ledger.give_back([worker]) == 1

    def finish(self) -> None:
        """Everything that was planned or left is done in the end, by either host."""
        for host in self.hosts:
            host.ledger.add(JOBS)
            host.ledger.give_back(sorted(host.held))
            host.held.clear()
        for _ in range(4 * len(JOBS)):
            host = self.chance.choice(self.hosts)
            host.time += self.chance.choice(JUMPS)
            host.ledger.retry_now()
            if (found := host.ledger.claim("last")) is not None:
                assert host.ledger.end(found, JobEnd("done"))
                self.done[_name(found.job)] += 1
        assert self.done == Counter(map(_name, JOBS))
        assert self.hosts[0].ledger.open_jobs() == 0
        for host in self.hosts:
            host.ledger.close()


def _name(job: Job) -> tuple[str, str]:
    return job.tenant, job.key


def test_clocks_that_jump_on_one_hosts_database(tmp_path: Path, scale: Scale) -> None:
    courses = scale.pick(8, 400)
    for number in range(courses):
        chance = Random(scale.seed + number)
        course = Course(str(tmp_path / f"fleet{number}.sqlite3"), chance)
        for _ in range(60):
            course.step()
        course.finish()
    counted("fleet courses with clock jumps", courses, drawn=True)


@pytest.mark.proof
def test_clocks_that_jump_on_two_hosts(postgres_url: str, scale: Scale) -> None:
    courses = scale.pick(2, 100)
    for number in range(courses):
        course = Course(postgres_url, Random(scale.seed + number))
        course.hosts[0].ledger.database.write("DELETE FROM fleet_jobs")
        for _ in range(60):
            course.step()
        course.finish()
    counted("fleet courses on two hosts with clock jumps", courses, drawn=True)


def test_a_clock_that_was_a_month_ahead_delays_nothing(tmp_path: Path) -> None:
    """What waited, and the watch over dead workers, were written down by the wrong clock."""
    host = Host("a", str(tmp_path / "fleet.sqlite3"))
    host.ledger.make()
    host.ledger.add(JOBS[:1])
    host.time += 30 * 86_400
    assert host.ledger.watch_is_due(60.0)
    taken = host.ledger.claim("a1")
    assert taken is not None
    assert host.ledger.end(taken, JobEnd("queued", "later", 60.0))
    assert host.ledger.claim("a1") is None
    host.time = NOON
    assert host.ledger.watch_is_due(60.0)
    assert not host.ledger.watch_is_due(60.0)
    assert host.ledger.open_jobs(due=True) == 1
    assert host.ledger.claim("a1") is not None
    host.ledger.close()


def test_a_job_of_tomorrow_still_waits(tmp_path: Path) -> None:
    host = Host("a", str(tmp_path / "fleet.sqlite3"))
    host.ledger.make()
    host.ledger.add(JOBS[:1])
    taken = host.ledger.claim("a1")
    assert taken is not None
    assert host.ledger.end(taken, JobEnd("queued", "budget", 86_400.0))
    assert host.ledger.claim("a1") is None
    host.ledger.close()
