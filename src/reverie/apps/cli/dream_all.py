"""`reverie dream --all`: every project under a home that is due, several at a time.

Made for cron and systemd: each project has its own lock and gates, one that fails is named and
the others go on, and the exit code says whether all went well. Projects whose folder is gone are
passed over.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reverie.alone import alone
from reverie.apps.cli.dream import dreaming
from reverie.apps.cli.memory_open import find_memory
from reverie.apps.cli.show import Column, document, line, say, table
from reverie.errors import Held
from reverie.layers.dreaming import Gates
from reverie.session.dream.branch import Dream
from reverie.session.dream.run import Dreamer, dream, told
from reverie.session.dream.watch import touched, undistilled
from reverie.upkeep.background import closing
from reverie.upkeep.place import ProjectPlace

if TYPE_CHECKING:
    from reverie.world import Model


def run_all(place: ProjectPlace, model: Model, *, dry_run: bool, as_json: bool) -> None:
    """Dream wherever it is due, and say what became of each."""
    import anyio

    rows: list[dict[str, Any]] = []

    async def every() -> None:
        limit = anyio.CapacityLimiter(place.loaded().settings.background_processes)
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


def roots(place: ProjectPlace) -> Iterator[Path]:
    """The projects of a home whose own folder is still there."""
    for owner, library in place.libraries():
        library.close()
        if owner and os.path.isdir(owner):
            yield Path(owner)


async def project(root: Path, model: Model, dry_run: bool) -> dict[str, Any]:
    """One project: its gates, then its dream."""
    place = ProjectPlace.of(root)
    with find_memory(root) as memories:
        if memories is None:
            return {"status": "passed over", "reason": "it has no memory"}
        with dreaming(place, memories, model) as dreamer:
            shut = gates(dreamer)
            if shut:
                return {"status": "passed over", "reason": shut}
            try:
                async with closing(dreamer):
                    done = await dream(dreamer, "auto", dry_run=dry_run)
            except Held as error:
                return {"status": "passed over", "reason": error.what}
            return _value(done)


def gates(dreamer: Dreamer) -> str:
    """Why no dream is due, or nothing."""
    days = partial(undistilled, dreamer.memories)
    found = Gates(dreamer.flags, dreamer.lock.last, partial(touched, dreamer.library), None, days)
    return found.shut(dreamer.settings, dreamer.clock.now())


def _value(done: Dream) -> dict[str, Any]:
    return {**asdict(done), "reason": told(done)}
