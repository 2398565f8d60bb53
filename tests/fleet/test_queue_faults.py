"""A host's queue in courses drawn by chance: SQLite is killed, fails and loses power at any call,
and the clock jumps by hours while the work goes on."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from random import Random

import pytest

from reverie.fleet import FILE, ClaimedJob, FleetLedger, JobEnd, nightly
from reverie.team import open_database
from tests.breaking import OS, SQLITE, Acked, attempted, cut, failed, killed
from tests.conftest import Scale
from tests.faults import Ack

pytestmark = [pytest.mark.spec("1.courses")]
ROOTS = ("/p/one", "/p/two")
NOON = 1_700_000_000.0


class QueueCourse:
    """Jobs are planned, taken up, ended, given back, and the clock is wrong at times."""

    def __init__(self, chance: Random) -> None:
        kinds = ["add", "add", "claim", "claim", "claim", "done", "later", "gone"]
        self.steps = [
            (chance.choice(kinds), chance.randint(0, 2), chance.choice([0.0, 0.0, -9e3, 9e5]))
            for _ in range(chance.randint(4, 9))
        ]
        self.now = NOON

    def opened(self, base: Path) -> FleetLedger:
        ledger = FleetLedger(
            open_database(str(base / "home" / FILE)),
            now=lambda: self.now,
            sleep=lambda _: None,
        )
        ledger.make()
        return ledger

    def begin(self, base: Path) -> None:
        ledger = self.opened(base)
        ledger.add([nightly("dream", ROOTS[0], "first", tenant="t", host="", due=False)])
        ledger.close()

    def act(self, base: Path, ack: Ack) -> None:
        self.now = NOON
        taken: list[ClaimedJob] = []
        ledger: FleetLedger | None = None
        for kind, which, jump in self.steps:
            self.now = NOON + jump
            ledger = ledger or attempted(self.opened, base)
            if ledger is not None:
                attempted(self._step, ledger, kind, which, taken, ack)
        if ledger is not None:
            attempted(ledger.close)
        ack("over")

    def _step(
        self, ledger: FleetLedger, kind: str, which: int, taken: list[ClaimedJob], ack: Ack
    ) -> None:
        if kind == "add":
            root, night = ROOTS[which % 2], f"night{which}"
            job = nightly("dream", root, night, tenant=f"t{which}", host="", due=False)
            ledger.add([job])
            ack(f"added {job.tenant} {job.key}")
        elif kind == "claim":
            found = ledger.claim(f"w{which}")
            if found is not None:
                taken.append(found)
                ack(f"taken {found.job.tenant} {found.job.key} {found.fence.number}")
        elif kind == "gone":
            ledger.give_back([f"w{which}"])
        elif taken:
            one = taken.pop()
            end = JobEnd("done") if kind == "done" else JobEnd("queued", "later", 60.0)
            if ledger.end(one, end):
                ack(f"{kind} {one.job.tenant} {one.job.key}")

    def check(self, base: Path, acked: Acked) -> None:
        self.now = NOON + 9e6
        ledger = self.opened(base)
        ledger.give_back(ledger.running_workers())
        fences: list[int] = [0]
        done: dict[tuple[str, str], int] = {}
        while (found := ledger.claim("last")) is not None:
            key = found.job.tenant, found.job.key
            done[key] = done.get(key, 0) + 1
            assert found.fence.number > max(fences)
            fences.append(found.fence.number)
            assert ledger.end(found, JobEnd("done"))
        assert set(done.values()) <= {1}, "one job was given out again after its end"
        ended: set[tuple[str, str]] = set()
        for word, *rest in (one.split() for one in acked):
            if word == "taken":
                assert int(rest[2]) not in fences, "a number was given twice"
            elif word == "done":
                ended.add((rest[0], rest[1]))
            elif word == "added":
                assert ledger.job(rest[0], rest[1])["state"] == "done", "a job is lost"
        assert not ended & set(done), "a job that was done was done again"
        assert ledger.open_jobs() == 0
        ledger.close()
        connection = sqlite3.connect(base / "home" / FILE)
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.close()


def test_a_queue_outlives_a_kill(scale: Scale) -> None:
    killed(QueueCourse, Random(f"fleet kills:{scale.seed}"), scale.pick(4, 300), SQLITE)


def test_a_queue_outlives_a_call_that_fails(scale: Scale) -> None:
    chance = Random(f"fleet faults:{scale.seed}")
    failed(QueueCourse, chance, scale.pick(8, 1_000), SQLITE)
    failed(QueueCourse, chance, scale.pick(2, 200), OS)


def test_a_queue_outlives_a_power_cut(scale: Scale) -> None:
    cut(QueueCourse, Random(f"fleet power:{scale.seed}"), scale.pick(5, 1_000), SQLITE)
