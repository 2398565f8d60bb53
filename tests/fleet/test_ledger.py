"""The ledger: one row for a job, one writer for a memory, tenants that take turns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from reverie.errors import InvalidInput, NotFound
from reverie.fleet import (
    BEGUN,
    STEPS,
    ClaimedJob,
    FleetLedger,
    Job,
    JobEnd,
    Progress,
    checked_kinds,
    checked_tenant,
    memory_id,
    nightly,
    of_session,
)
from reverie.team import open_database
from reverie.testing import ManualClock

pytestmark = [pytest.mark.spec("9.fleet-ledger")]


@pytest.fixture
def ledger(tmp_path: Path, hand: ManualClock) -> Iterator[FleetLedger]:
    made = FleetLedger(open_database(str(tmp_path / "fleet.sqlite3")), now=hand.now)
    made.make()
    yield made
    made.close()


def job(root: str, night: str = "2026-11-17", tenant: str = "default", host: str = "") -> Job:
    return nightly("dream", root, night, tenant=tenant, host=host, due=False)


def claim(ledger: FleetLedger, worker: str = "w1") -> ClaimedJob:
    taken = ledger.claim(worker)
    assert taken is not None
    return taken


def test_planned_twice_is_one_job(ledger: FleetLedger) -> None:
    assert ledger.add([job("/a"), job("/b")]) == [job("/a"), job("/b")]
    assert ledger.add([job("/a"), job("/c")]) == [job("/c")]
    done = claim(ledger)
    ledger.end(done, JobEnd("done"))
    assert ledger.add([done.job]) == []
    assert [row["jobs"] for row in ledger.counts()] == [1, 2]


def test_one_writer_a_memory(ledger: FleetLedger) -> None:
    ledger.add([job("/a", "1"), job("/a", "2"), job("/b", "1")])
    first, second = claim(ledger), claim(ledger)
    assert (first.job.root, second.job.root) == ("/a", "/b")
    assert ledger.claim("w1") is None
    ledger.end(first, JobEnd("done"))
    assert claim(ledger).job.night == "2"


def test_each_try_has_a_higher_fence_and_only_the_last_is_heard(ledger: FleetLedger) -> None:
    ledger.add([job("/a")])
    first = claim(ledger)
    assert ledger.give_back(["w1"]) == 1
    second = claim(ledger, "w2")
    assert second.fence.number > first.fence.number
    assert ledger.beat(first, Progress()) == "lost"
    assert not ledger.end(first, JobEnd("dead"))
    assert ledger.beat(second, Progress("updating", 3, 1, 2, 5.0)) == ""
    assert ledger.job("default", first.job.key)["rounds"] == 3
    assert ledger.end(second, JobEnd("done"))


def test_tenants_take_turns_however_many_jobs_one_has(ledger: FleetLedger) -> None:
    ledger.add([job(f"/a{n}", tenant="large") for n in range(10)])
    for _ in range(4):
        ledger.end(claim(ledger), JobEnd("done"))
    ledger.add([job(f"/b{n}", tenant="small") for n in range(3)])
    order = []
    while taken := ledger.claim("w"):
        order.append(taken.job.tenant)
        ledger.end(taken, JobEnd("done"))
    for pair in (order[:2], order[2:4], order[4:6]):  # neither starves, and neither goes first
        assert sorted(pair) == ["large", "small"]
    assert len(order) == 9


def test_what_waits_begins_when_its_time_has_come(ledger: FleetLedger, hand: ManualClock) -> None:
    ledger.add([job("/a")])
    ledger.end(claim(ledger), JobEnd("queued", "error", 30.0))
    assert ledger.claim("w") is None
    hand.time += 31
    assert claim(ledger).tries == 2


def test_waiting_uses_up_no_try(ledger: FleetLedger, hand: ManualClock) -> None:
    ledger.add([job("/a")])
    for _ in range(10):
        taken = claim(ledger)
        assert taken.tries == 1
        ledger.end(taken, JobEnd("queued", "held", 60.0, counted=False))
        hand.time += 61


def test_a_cancel_is_a_flag_while_the_body_runs(ledger: FleetLedger) -> None:
    ledger.add([job("/a", "1"), job("/a", "2")])
    taken = claim(ledger)
    assert ledger.cancel("default", taken.job.key) == "running"
    assert ledger.beat(taken, Progress()) == "cancel"
    assert ledger.claim("w2") is None  # the memory is not given away
    ledger.end(taken, JobEnd("cancelled"))
    assert claim(ledger).job.night == "2"


def test_a_job_that_waits_is_cancelled_at_once_and_can_be_retried(ledger: FleetLedger) -> None:
    ledger.add([job("/a")])
    key = job("/a").key
    assert ledger.cancel("default", key) == "cancelled"
    assert ledger.claim("w") is None
    assert ledger.begin("default", key, "w") is None
    assert ledger.retry("default", key) == "queued"
    assert claim(ledger).tries == 1


def test_a_cancelled_job_whose_worker_died_does_not_begin_again(ledger: FleetLedger) -> None:
    ledger.add([job("/a")])
    taken = claim(ledger)
    ledger.cancel("default", taken.job.key)
    assert ledger.begin("default", taken.job.key, "w2") is None
    assert ledger.job("default", taken.job.key)["state"] == "cancelled"


@pytest.mark.parametrize("engine", ["of one host", "of many"])
def test_a_job_that_takes_its_worker_with_it_each_time_is_dead_in_the_end(
    ledger: FleetLedger, engine: str
) -> None:
    """Workers are killed for other reasons too: it takes more of them than a failure does."""
    ledger.add([job("/a"), job("/b")])
    key = job("/a").key
    for tries in range(1, BEGUN + 1):
        if engine == "of one host":
            taken = claim(ledger)
            ledger.give_back(["w1"])
        else:
            taken = ledger.begin("default", key, "w1")
        assert taken is not None
        assert (taken.job.key, taken.tries) == (key, tries)
    assert ledger.begin("default", key, "w1") is None
    about = ledger.job("default", key)
    assert (about["state"], about["code"]) == ("dead", "worker-gone")
    assert claim(ledger).job.root == "/b"
    ledger.retry("default", key)
    assert claim(ledger).tries == 1


def test_a_paused_tenant_begins_nothing(ledger: FleetLedger) -> None:
    ledger.add([job("/a", tenant="acme"), job("/b", tenant="beta")])
    ledger.pause("acme", True)
    assert claim(ledger).job.tenant == "beta"
    assert ledger.claim("w") is None
    ledger.pause("acme", False)
    assert claim(ledger).job.tenant == "acme"


def test_what_a_host_was_called_when_it_planned_does_not_matter_in_its_own_ledger(
    ledger: FleetLedger,
) -> None:
    """A laptop gets another name with another network, a container with each start."""
    ledger.add([job("/a", host="laptop-at-home")])
    assert claim(ledger).job.root == "/a"


def test_a_job_nobody_planned_is_named(ledger: FleetLedger) -> None:
    with pytest.raises(NotFound, match="no such job"):
        ledger.cancel("default", "dream:nothing:1")


def test_a_later_schema_is_refused(ledger: FleetLedger) -> None:
    after = len(STEPS) + 1
    ledger.database.run(
        lambda t: t.rows("INSERT INTO fleet_migrations (number) VALUES (?)", (after,)), writes=True
    )
    with pytest.raises(InvalidInput, match="this version knows"):
        ledger.check()
    with pytest.raises(InvalidInput, match="this version knows"):
        ledger.make()


def test_a_database_from_a_backup_catches_up_with_the_memories(ledger: FleetLedger) -> None:
    ledger.add([job("/a")])
    ledger.raise_fence(4_000)
    assert claim(ledger).fence.number == 4_001


def test_one_of_many_looks_after_the_jobs(ledger: FleetLedger, hand: ManualClock) -> None:
    assert [ledger.watch_is_due(30) for _ in range(3)] == [True, False, False]
    hand.time += 31
    assert [ledger.watch_is_due(30) for _ in range(3)] == [True, False, False]


# Values


def test_keys_hold_ids_and_hashes_alone() -> None:
    root = "/home/ann/secret-project"
    one = nightly("dream", root, "2026-11-17", tenant="t", host="", due=True)
    assert one.key == f"dream:{memory_id(root)}:2026-11-17"
    assert "secret" not in one.key
    learned = of_session("learn", root, "s-1", "ab" * 32, 9, tenant="t", host="")
    assert learned.key == "learn:s-1:abababababababab"


def test_the_same_path_on_another_host_is_another_memory() -> None:
    here = job("/a", host="here")
    assert here.memory != replace(here, host="there").memory
    assert here.memory != replace(here, host="").memory


def test_names_that_are_none_are_refused() -> None:
    for name in ("", "a b", "a@b", "ä", "x" * 61, "a/b", "*"):
        with pytest.raises(InvalidInput, match="no name for a tenant"):
            checked_tenant(name)
    with pytest.raises(InvalidInput, match="no such job"):
        checked_kinds(("dream", "sleep"))
    assert checked_kinds(("dream", "learn", "dream")) == ("learn", "dream")
