"""One job from its begin to its end: what it is handed, how it ends, and what it may not do."""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from reverie.embedded import EmbeddedModel
from reverie.errors import Held, StoreError
from reverie.fleet import (
    BACKOFF,
    LOCK,
    LOG,
    TASKS,
    TRIES,
    FleetTask,
    Job,
    JobEnd,
    JobHandle,
    PlanRequest,
    RunTotals,
    WorkerContext,
    at_work,
    job_end,
    lives,
    nightly,
    of_session,
    open_local,
    plan_jobs,
    run_local,
)
from reverie.memory import TaskOutcome
from reverie.settings import DEFAULTS
from reverie.store import (
    ConsolidationLock,
    FileLock,
    MemoryStore,
    Project,
    find_project_folder,
    lock,
    transcripts_folder,
)
from reverie.world import Model
from tests.faults import run_with_error
from tests.fleet.stage import FILE, jobs_for, lander, make_memories, place_at, stopped_by, wrong

pytestmark = [pytest.mark.spec("9.fleet-run")]
SESSION = "00000000-0000-4000-8000-000000000001"


class Site:
    """A home with memories, its ledger, and a run of it."""

    def __init__(self, base: Path) -> None:
        self.base, self.home = base, base / "home"
        self.ledger = open_local(self.home)
        self.seen: list[tuple[Job, JobEnd]] = []

    def memories(self, count: int) -> list[Path]:
        return make_memories(self.home, self.base, count)

    def shop(self, model: Model | None = None, **tasks: FleetTask) -> WorkerContext:
        return WorkerContext(
            self.ledger,
            place_at(self.home, self.base),
            model or EmbeddedModel(),
            tasks={**TASKS, **tasks},
            poll=0.01,
        )

    async def run(
        self, workers: int = 2, model: Model | None = None, **tasks: FleetTask
    ) -> RunTotals:
        shop = self.shop(model, **tasks)
        return await run_local(shop, workers, lambda t, e: self.seen.append((t.job, e)))

    def only(self) -> dict[str, object]:
        (row,) = self.ledger.jobs()
        return row


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.ledger.close()


async def test_a_plan_is_worked_and_nothing_is_left(site: Site) -> None:
    roots = site.memories(3)
    site.ledger.add(jobs_for(roots, 4))
    totals = await site.run(dream=lander())
    assert totals == RunTotals(done=12)
    assert wrong(site.home, roots, 4) == (0, 0)
    assert await site.run(dream=lander()) == RunTotals()


async def test_a_real_dream_lands_through_the_same_door(site: Site) -> None:
    (root,) = site.memories(1)
    site.ledger.add(jobs_for([root], 1))
    assert await site.run() == RunTotals(done=1)
    assert site.only()["code"] == "completed"
    assert site.only()["cost"] == 0.0  # the rules that come with the program are free


async def test_the_memory_remembers_a_job_that_the_ledger_forgot(site: Site) -> None:
    (root,) = site.memories(1)
    site.ledger.add(jobs_for([root], 1))
    await site.run(dream=lander())
    site.ledger.database.run(lambda t: t.rows("DELETE FROM fleet_jobs"), writes=True)
    site.ledger.add(jobs_for([root], 1))
    assert await site.run(dream=lander()) == RunTotals(done=1)
    assert site.only()["code"] == "already"
    assert wrong(site.home, [root], 1) == (0, 0)


async def test_a_run_that_was_killed_goes_on(site: Site) -> None:
    """Its jobs wait again: the process that had them is gone, whatever its host was called."""
    roots = site.memories(3)
    site.ledger.add(jobs_for(roots, 1))
    for gone in ("another-name:7:12ab", f"{socket.gethostname()}:{os.getpid()}:12ac"):
        assert not lives(site.home, gone)
        assert site.ledger.claim(gone) is not None
    assert await site.run(dream=lander()) == RunTotals(done=3)


async def test_a_run_that_is_at_work_keeps_its_jobs(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where another process asks that calls the host otherwise, as in another container."""
    roots = site.memories(2)
    site.ledger.add(jobs_for(roots, 1))
    with at_work(site.home) as name:
        kept = site.ledger.claim(name)
        assert kept is not None
        monkeypatch.setattr(socket, "gethostname", lambda: "otherwise")
        assert lives(site.home, name)
        assert await site.run(dream=lander()) == RunTotals(done=1, waiting=1)
        assert site.ledger.end(kept, JobEnd("queued"))
    assert not lives(site.home, name)
    assert await site.run(dream=lander()) == RunTotals(done=1)
    assert list((site.home / "fleet" / "workers").iterdir()) == []


def test_the_sign_of_a_worker_ends_with_its_process(site: Site) -> None:
    """However that ends; the next who works takes away what it left."""
    program = (
        "import sys; from pathlib import Path; from reverie.fleet.plan import at_work\n"
        "with at_work(Path(sys.argv[1])) as name:\n    print(name, flush=True); input()"
    )
    line = [sys.executable, "-c", program, str(site.home)]
    pipe = subprocess.PIPE
    with subprocess.Popen(line, stdin=pipe, stdout=pipe, text=True) as other:
        try:
            assert other.stdout is not None
            name = other.stdout.readline().strip()
            assert lives(site.home, name)
        finally:
            other.kill()
            other.wait(60)
    assert not lives(site.home, name)
    folder = site.home / "fleet" / "workers"
    assert len(list(folder.iterdir())) == 1
    with at_work(site.home):
        assert len(list(folder.iterdir())) == 1


def test_a_ledger_that_another_opens_just_now_is_waited_for(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = FileLock(site.home / LOCK)
    held.acquire()
    monkeypatch.setattr(lock.time, "sleep", lambda _: held.release())
    open_local(site.home).close()
    assert not held.held


async def test_a_failure_is_tried_five_times_and_then_dead(site: Site) -> None:
    (root,) = site.memories(1)
    site.ledger.add(jobs_for([root], 1))

    async def fails(work: JobHandle) -> TaskOutcome:
        raise StoreError("The disk said no to planted-word", where=work.job.root)

    for tries in range(1, 6):
        site.ledger.retry_now()
        totals = await site.run(dream=fails)
        assert totals.failed == 1
        assert site.only()["tries"] == tries
    assert site.only()["state"] == "dead"
    assert site.only()["code"] == "StoreError"
    said = [json.loads(row)["reason"] for row in (site.home / LOG).read_text().splitlines()]
    assert len(said) == 5
    assert "planted-word" in said[0]  # for people of this host alone
    assert b"planted-word" not in (site.home / "fleet" / "fleet.sqlite3").read_bytes()


async def test_a_job_whose_root_is_no_path_ends(site: Site) -> None:
    site.ledger.add([nightly("dream", "/a\0b", "n", tenant="default", host="", due=True)])
    for tries in range(1, TRIES + 1):
        site.ledger.retry_now()
        assert (await site.run()).failed == 1
        assert site.only()["tries"] == tries
    assert site.only()["state"] == "dead"


async def test_a_memory_that_somebody_holds_is_waited_for_and_uses_up_no_try(site: Site) -> None:
    (root,) = site.memories(1)
    site.ledger.add(jobs_for([root], 1))

    async def held(work: JobHandle) -> TaskOutcome:
        raise Held("In use by process 7", where=work.job.root, do="Let it go on (`kill -CONT 7`)")

    for _ in range(TRIES + 1):
        site.ledger.retry_now()
        totals = await site.run(dream=held)
        assert (totals.failed, totals.waiting) == (0, 1)
        row = site.only()
        assert (row["state"], row["code"], row["tries"]) == ("queued", "held", 0)
    assert "kill -CONT 7" in json.loads((site.home / LOG).read_text().splitlines()[-1])["reason"]
    site.ledger.retry_now()
    assert (await site.run(dream=lander())).done == 1


async def test_who_waits_for_a_memory_holds_up_nobody_else(site: Site) -> None:
    """The loop goes on meanwhile: it is the loop that lets go of the memory here."""
    (root,) = site.memories(1)
    site.ledger.add(jobs_for([root], 1))
    begun = anyio.Event()

    async def body(work: JobHandle) -> TaskOutcome:
        begun.set()
        return await lander()(work)

    async def let_go(held: ExitStack) -> None:
        await begun.wait()
        for _ in range(10):
            await anyio.lowlevel.checkpoint()
        held.close()

    with (
        ExitStack() as held,
        MemoryStore.of(
            Project.at(root, home=site.home, environ={}, settings=DEFAULTS), now=time.time
        ) as other,
    ):
        held.enter_context(other.folder.locked())
        async with anyio.create_task_group() as group:
            group.start_soon(let_go, held)
            assert (await site.run(dream=body)).done == 1


def test_waits_grow_from_try_to_try() -> None:
    failed = TaskOutcome("failed", "error")
    waits = [job_end(failed, tries).wait for tries in range(1, 5)]
    assert waits == [BACKOFF, BACKOFF * 4, BACKOFF * 16, BACKOFF * 64]
    assert job_end(failed, 5) == JobEnd("dead", "error")


async def test_no_room_in_the_budget_means_tomorrow(site: Site) -> None:
    from reverie.fleet import set_budget
    from reverie.testing import ScriptedModel

    (root,) = site.memories(1)
    site.ledger.add(jobs_for([root], 1))
    set_budget(site.ledger, "default", 10.0, None)
    model = ScriptedModel(lambda _: "Nothing to do.")
    totals = await site.run(model=model)
    assert (totals.failed, totals.waiting) == (0, 1)
    row = site.only()
    assert (row["state"], row["code"], row["tries"]) == ("queued", "budget", 0)
    assert float(str(row["after"])) % 86_400 < 5
    assert model.requests == []
    set_budget(site.ledger, "default", None, None)
    site.ledger.retry_now()
    assert (await site.run(model=model)).done == 1
    assert float(str(site.only()["cost"])) > 0


async def test_a_cancelled_job_keeps_its_memory_until_its_body_has_stopped(site: Site) -> None:
    (root,) = site.memories(1)
    site.ledger.add(jobs_for([root], 2))
    course: list[str] = []
    totals = await site.run(dream=stopped_by(site.ledger, course))
    assert course == ["begins night-0", "body stopped", "begins night-1"]
    assert (totals.done, totals.cancelled) == (1, 1)


async def test_a_dream_that_is_cancelled_gives_its_lock_back(site: Site) -> None:
    from reverie.testing import ScriptedModel, reply

    (root,) = site.memories(1)
    site.ledger.add(jobs_for([root], 1))
    (job,) = jobs_for([root], 1)

    class Slow(ScriptedModel):
        async def stream(self, request):  # type: ignore[no-untyped-def, override]
            site.ledger.cancel("default", job.key)
            await anyio.sleep_forever()
            yield reply("never")

    totals = await site.run(model=Slow(lambda _: "x"))
    assert totals.cancelled == 1
    lock = ConsolidationLock.of(
        place_at(site.home, root).memory_folder,
        time.time,
        DEFAULTS,
    )
    assert lock.look().state == "never"


async def test_a_dream_held_by_a_session_waits_and_uses_up_no_try(site: Site) -> None:
    (root,) = site.memories(1)
    site.ledger.add(jobs_for([root], 1))
    lock = ConsolidationLock.of(
        place_at(site.home, root).memory_folder,
        time.time,
        DEFAULTS,
    )
    taken = lock.take()
    totals = await site.run()
    assert (totals.failed, totals.waiting) == (0, 1)
    assert (site.only()["code"], site.only()["tries"]) == ("held", 0)
    lock.give_back(taken)
    site.ledger.retry_now()
    assert (await site.run()).done == 1


# Bad input


async def test_a_kind_that_this_worker_does_not_know_is_left_for_another(site: Site) -> None:
    (root,) = site.memories(1)
    site.ledger.add([nightly("levitate", str(root), "n", tenant="default", host="", due=True)])
    totals = await site.run()
    assert (totals.done, totals.failed, totals.waiting) == (0, 0, 1)
    assert (site.only()["code"], site.only()["tries"]) == ("unknown-kind", 0)


@pytest.mark.parametrize(
    ("lacking", "code"),
    [("memory", "no-memory"), ("session", "no-session"), ("its end", "transcript-shrank")],
)
async def test_what_is_gone_meanwhile_is_passed_over(site: Site, lacking: str, code: str) -> None:
    (root,) = site.memories(1)
    project = find_project_folder(site.home, root)
    learn = of_session("learn", str(root), SESSION, "ab" * 32, 900, tenant="default", host="")
    site.ledger.add(jobs_for([root], 1) if lacking == "memory" else [learn])
    if lacking == "memory":
        shutil.rmtree(project)
    elif lacking == "its end":
        (transcripts_folder(project, site.home, {}) / f"{SESSION}.jsonl").write_text("x" * 50)
    assert await site.run() == RunTotals(skipped=1)
    assert site.only()["code"] == code


@pytest.mark.parametrize("form", ["{}", "../{}"])
async def test_a_job_names_a_session_and_never_a_file(
    site: Site, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may queue a job gets nothing read that is not this project's."""
    (root,) = site.memories(1)
    secret = site.base / "private.jsonl"
    said = "Please remember: the vault opens with otter-9, because the lock is old."
    row = {"type": "user", "uuid": "u", "sessionId": "s", "message": {"content": said}}
    secret.write_text(json.dumps(row) + "\n")
    monkeypatch.chdir(site.base)
    about = form.format(secret if form == "{}" else "private")
    job = of_session("learn", str(root), about, "ab" * 32, 0, tenant="default", host="")
    site.ledger.add([job])
    assert await site.run() == RunTotals(skipped=1)
    assert site.only()["code"] == "no-session"
    kept = [path for path in site.home.rglob("*") if path.is_file()]
    assert not [path for path in kept if b"otter-9" in path.read_bytes()]


def test_a_disk_without_locks_is_refused_by_name(tmp_path: Path) -> None:
    outcome = run_with_error(
        lambda: open_local(tmp_path / "home"),
        1,
        errno.ENOLCK,
        sticky=True,
        calls=["fcntl.flock"],
    )
    assert isinstance(outcome.error, StoreError)
    assert "has no locks" in str(outcome.error)
    assert str(tmp_path) in str(outcome.error)


async def test_two_plans_at_once_are_one(site: Site) -> None:
    roots = tuple(site.memories(2))
    place = place_at(site.home, site.base)
    asked = PlanRequest(("dream",), "2026-11-17", due=False, roots=roots)
    first, second = (plan_jobs(place, asked, time.time) for _ in range(2))
    added: list[int] = []

    async def add(jobs: tuple[Job, ...]) -> None:
        added.append(len(await anyio.to_thread.run_sync(site.ledger.add, jobs)))

    async with anyio.create_task_group() as group:
        group.start_soon(add, first.jobs)
        group.start_soon(add, second.jobs)
    assert sorted(added) == [0, 2]


def test_a_plan_asks_the_gates_and_changes_nothing(site: Site) -> None:
    roots = tuple(site.memories(1))
    place = place_at(site.home, site.base)
    found = plan_jobs(place, PlanRequest(("dream",), "n", roots=roots), time.time)
    assert found.jobs == ()
    assert found.passed == ((str(roots[0]), "0 of 5 sessions since the last dream"),)
    assert site.ledger.jobs() == []


def test_a_plan_of_sessions_names_them_by_their_bytes(site: Site) -> None:
    (root,) = site.memories(1)
    folder = transcripts_folder(find_project_folder(site.home, root), site.home, {})
    (folder / f"{SESSION}.jsonl").write_text("planted-word\n")
    place = place_at(site.home, site.base)
    asked = PlanRequest(("learn", "hygiene"), "n", roots=(root,))
    jobs = plan_jobs(place, asked, time.time).jobs
    assert [(j.kind, j.about, j.size) for j in jobs] == [
        ("learn", SESSION, 13),
        ("hygiene", "", 0),
    ]
    (folder / f"{SESSION}.jsonl").write_text("planted-word, and more\n")
    again = plan_jobs(place, asked, time.time).jobs
    assert again[0].key != jobs[0].key
    assert again[1].key == jobs[1].key


async def test_hygiene_lands_once_a_night(site: Site) -> None:
    (root,) = site.memories(1)
    text = (place_at(site.home, root).memory_folder / FILE).read_text()
    job = nightly("hygiene", str(root), "n", tenant="default", host="", due=True)
    site.ledger.add([job])
    assert await site.run() == RunTotals(done=1)
    assert (place_at(site.home, root).memory_folder / FILE).read_text() == text
    site.ledger.database.run(lambda t: t.rows("DELETE FROM fleet_jobs"), writes=True)
    site.ledger.add([job])
    await site.run()
    assert site.only()["code"] == "already"
