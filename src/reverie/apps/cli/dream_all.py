"""`reverie dream --all`: every project under a home that is due, several at a time.

Made for cron and systemd: each project has its own lock and gates, one that fails is named and
the others go on, and the exit code says whether all went well. Projects whose folder is gone are
passed over.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reverie.apps.cli.show import Column, document, line, say, table, tell
from reverie.concurrency import alone
from reverie.store.project import Project
from reverie.upkeep.tasks import TaskRun, dream_memory, roots
from reverie.world import Notice

if TYPE_CHECKING:
    from reverie.world import Model


def run_all(place: Project, model: Model, *, dry_run: bool, as_json: bool) -> None:
    """Dream wherever it is due, and say what became of each."""
    import anyio

    rows: list[dict[str, Any]] = []

    async def every() -> None:
        limit = anyio.CapacityLimiter(place.settings.background_processes)
        async with anyio.create_task_group() as group:
            for root in roots(place):
                group.start_soon(one, root, limit)

    async def one(root: Path, limit: anyio.CapacityLimiter) -> None:
        async with limit:
            found, error = await alone(project(root, model, dry_run), {})
            rows.append({"project": str(root), **(found if not error else {"status": "failed"})})
            if error:
                rows[-1]["reason"] = error

    anyio.run(every)
    rows.sort(key=lambda row: row["project"])
    if as_json:
        document(rows)
    elif rows:
        names = ("project", "status", "reason")
        cells = [[line(str(row.get(name, "")), 90) for name in names] for row in rows]
        table([Column(name, wraps=name == "reason") for name in names], cells)
    else:
        say("No project has a memory.")
    if any(row["status"] == "failed" for row in rows):
        raise click.exceptions.Exit(1)


async def project(root: Path, model: Model, dry_run: bool) -> dict[str, Any]:
    """One project: its gates, then its dream."""
    run = TaskRun(model, say=_said)
    found, done = await dream_memory(Project.at(root), run, dry_run=dry_run)
    if done is None:
        return {"status": found.result, "reason": found.reason}
    return {**asdict(done), "reason": found.reason}


def _said(notice: Notice) -> None:
    if notice.level != "info":
        tell(notice)
