"""A fleet on PostgreSQL in this process: a home, a database, workers and the engine's words."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from reverie.embedded import EmbeddedModel
from reverie.fleet import TASKS, FleetLedger, FleetTask, Job, WorkerContext, seeing
from tests.fleet.stage import place_at

logging.getLogger("procrastinate").setLevel(logging.CRITICAL)
LEASE = 4.0


class Fleet:
    """A home, a database and workers in this process."""

    def __init__(self, url: str, base: Path) -> None:
        from reverie.fleet import engine

        self.engine, self.url, self.base, self.home = engine, url, base, base / "home"
        engine.init(url)
        self.ledger = engine.open_fleet(url)
        self.ledger.check()

    def plan(self, jobs: list[Job]) -> None:
        self.ledger.add(jobs)
        self.engine.enqueue(self.ledger)

    def worker(
        self,
        *,
        tenants: tuple[str, ...] = (),
        url: str = "",
        until_done: bool = False,
        lease: float = LEASE,
        **tasks: FleetTask,
    ) -> Any:
        place = place_at(self.home, self.base)
        shop = WorkerContext(
            self.ledger, place, EmbeddedModel(), tasks={**TASKS, **tasks}, poll=0.05
        )
        options = self.engine.WorkerOptions(2, tenants, lease, until_done, 0.1)
        return self.engine.FleetWorker(url or self.url, shop, options)

    async def work(
        self, *, tenants: tuple[str, ...] = (), url: str = "", **tasks: FleetTask
    ) -> None:
        """Work until no job is open."""
        with anyio.fail_after(60):
            await self.worker(tenants=tenants, url=url, until_done=True, lease=LEASE, **tasks).run()

    @asynccontextmanager
    async def owned(self, made: type[Any] | None = None) -> AsyncGenerator[Any]:
        """The engine's statements about jobs, as our workers say them."""
        from procrastinate import App, PsycopgConnector

        connector = (made or PsycopgConnector)(
            conninfo=seeing(self.url, ()),
            configure=self.engine.commit_at_once,
            min_size=1,
            max_size=1,
        )
        app = App(connector=connector)
        app.job_manager = self.engine.OwnedJobs(connector)
        async with app.open_async():
            yield app.job_manager

    def states(self) -> dict[str, str]:
        return {row["key"]: row["state"] for row in self.ledger.jobs()}

    def engine_states(self) -> list[str]:
        found = rows(self.ledger, "SELECT status::text FROM procrastinate_jobs ORDER BY id")
        return [state for (state,) in found]


def rows(ledger: FleetLedger, sql: str) -> list[Any]:
    return ledger.database.run(lambda t: t.rows(sql), writes=True)
