"""`reverie memory learn`: what past sessions hold that is worth keeping, learned now.

Session files of Claude Code, pi and our own, packed or plain, folders of them, or sessions of
this project by their ids. They are only read. It goes on where it was the last time, stops at
its budget, and with `--dry-run` saves nothing. A file that cannot be read is named, and the
others go on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from reverie.apps.cli.memory_open import open_memory
from reverie.apps.cli.options import json_option, model_option, project_option, session_files
from reverie.apps.cli.show import Column, clean, document, note, say, table, tell
from reverie.errors import ReverieError
from reverie.store.project import Project
from reverie.text.counts import plural
from reverie.upkeep import transfer
from reverie.world import Notice

if TYPE_CHECKING:
    from reverie.session.budget import Budget
    from reverie.session.extraction.past import Learned
    from reverie.session.extraction.run import ExtractionContext
    from reverie.store.memories import Memories
    from reverie.world import Model


@click.command()
@session_files
@click.option(
    "--dry-run", is_flag=True, help="Ask the model, show what it would save, save nothing."
)
@click.option(
    "--budget",
    type=click.FloatRange(min=0),
    metavar="N",
    help="Limit in price-weighted tokens. Default: the daily limit.",
)
@model_option
@json_option
@project_option
def learn(
    files: tuple[str, ...],
    dry_run: bool,
    budget: float | None,
    model: str,
    as_json: bool,
    project: Project,
) -> None:
    """Learn memories from past sessions of Claude Code, pi and Reverie."""
    from reverie.apps.cli.chat import model_named

    chosen = model_named(project, model)
    with open_memory(project) as memories, ExitStack() as stack:
        purse = _budget(project, chosen, budget)
        if purse is not None:
            stack.callback(purse.close)
        ground = _ground(project, memories, chosen, dry=dry_run)
        done, failed = _all(files, project, ground, purse, quiet=as_json)
    if not done and failed:
        raise failed[0][1]
    _tell(done, failed, chosen.name, dry_run, as_json)
    if failed:
        raise click.exceptions.Exit(failed[-1][1].exit_code)


def _all(
    files: Sequence[str],
    project: Project,
    ground: ExtractionContext,
    budget: Budget | None,
    *,
    quiet: bool,
) -> tuple[list[Learned], list[tuple[str, ReverieError]]]:
    """What came of each file; one that cannot be gone through is named, and the others go on."""
    import anyio

    done: list[Learned] = []
    failed: list[tuple[str, ReverieError]] = []

    async def work() -> None:
        close: Callable[[], Awaitable[None]] | None = getattr(ground.world.model, "aclose", None)
        try:
            for given in transfer.expanded(files):
                try:
                    done.append(await _one(given, project, ground, budget, quiet=quiet))
                except ReverieError as error:
                    failed.append((given, error))
                if done and done[-1].over_budget:  # the next would stop too
                    break
        finally:
            if close is not None:
                await close()

    anyio.run(work)
    return done, failed


async def _one(
    given: str,
    project: Project,
    ground: ExtractionContext,
    budget: Budget | None,
    *,
    quiet: bool,
) -> Learned:
    from reverie.upkeep.tasks import learn_past, past_of

    shown = not quiet and sys.stderr.isatty()

    def step(at: int, total: int) -> None:
        if shown:
            end = f"{os.path.basename(given)[:60]}: {at}/{total}" if at < total else ""
            sys.stderr.write(f"\r\x1b[K{clean(end)}")
            sys.stderr.flush()

    return await learn_past(past_of(given, project, tell), ground, budget, step)


# --- what it stands on


def _budget(project: Project, model: Model, most: float | None) -> Budget | None:
    """What may be spent: as asked, else the day's; what costs nothing needs none."""
    from reverie.session.extraction.past import Allowance
    from reverie.upkeep.tasks import daily_budget

    return daily_budget(project, model) if most is None else Allowance(most, project.settings)


def _ground(project: Project, memories: Memories, model: Model, *, dry: bool) -> ExtractionContext:
    from reverie.upkeep.tasks import learning_context

    return learning_context(project, memories, model, _heard, dry=dry)


def _heard(notice: Notice) -> None:
    note(f"{notice.layer}: {notice.text}")


# --- what is told


def _tell(
    done: Sequence[Learned],
    failed: Sequence[tuple[str, ReverieError]],
    model: str,
    dry: bool,
    as_json: bool,
) -> None:
    if as_json:
        value: dict[str, Any] = {"model": model, "dry_run": dry}
        value["sessions"] = [asdict(each) for each in done]
        value["failed"] = [{"file": given, "error": str(error)} for given, error in failed]
        document(value)
        return
    names = ("session", "turns", "saved", "review", "not saved", "calls", "cost")
    rows = [
        [
            each.session[:8],
            str(each.turns),
            str(len(each.written)),
            str(len(each.queued)),
            str(len(each.refused)),
            str(each.calls),
            f"{each.cost:,.0f}",
        ]
        for each in done
    ]
    table([Column(name, right=name != "session") for name in names], rows)
    keys = dict.fromkeys(key for each in done for key in each.written)
    if keys:
        say(f"{'Would save' if dry else 'Saved'}: {', '.join(keys)}")
    waiting = sum(len(each.queued) for each in done)
    if waiting and not dry:
        note(f"{plural(waiting, 'memory', 'memories')} in review: `reverie memory review list`")
    for each in done:
        if each.stopped:
            note(f"{each.file}: stopped: {each.stopped}")
    for given, error in failed:
        note(f"{given}: {error}")
