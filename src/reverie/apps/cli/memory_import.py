"""`memory learn`, `import`, `export`.

`reverie memory learn`: what past sessions hold that is worth keeping, learned now.

Session files of Claude Code, pi and our own, packed or plain, folders of them, or sessions of
this project by their ids. They are only read. It goes on where it was the last time, stops at
its budget, and with `--dry-run` saves nothing. A file that cannot be read is named, and the
others go on.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import click

from reverie.apps.cli.app import json_option, model_option, project_option, session_files
from reverie.apps.cli.output import Column, document, note, say, table, tell, with_progress
from reverie.apps.cli.recall import open_memory
from reverie.errors import InvalidInput, ReverieError
from reverie.memory.exports import read_by_user
from reverie.memory.importers import UNVERIFIED, WAITS, ImportOutcome, MemoryImport, System
from reverie.memory.transfer import (
    HISTORY,
    MEMORY,
    ImportCandidate,
    ImportedFile,
    Program,
    exported_files,
    files_at,
    files_of_program,
    import_file,
    is_export,
    restore,
)
from reverie.session import transfer
from reverie.store.files import Folder
from reverie.store.lists import REVIEW
from reverie.store.project import Project
from reverie.text.format import plural
from reverie.text.safety import clean
from reverie.topics.trust import Trust
from reverie.world import Notice

if TYPE_CHECKING:
    from reverie.session.budget import Budget
    from reverie.session.extraction.past_sessions import LearnResult
    from reverie.session.extraction.run import ExtractionContext
    from reverie.store.memory_store import MemoryStore
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

    chosen = model_named(project, model, background=True)
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
) -> tuple[list[LearnResult], list[tuple[str, ReverieError]]]:
    """What came of each file; one that cannot be gone through is named, and the others go on."""
    import anyio

    done: list[LearnResult] = []
    failed: list[tuple[str, ReverieError]] = []

    async def work() -> None:
        close: Callable[[], Awaitable[None]] | None = getattr(ground.world.model, "aclose", None)
        try:
            for given in transfer.expand_folders(files):
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
) -> LearnResult:
    from reverie.memory.tasks import learn_past, past_of

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
    from reverie.memory.tasks import daily_budget
    from reverie.session.extraction.past_sessions import RunBudget

    return daily_budget(project, model) if most is None else RunBudget(most, project.settings)


def _ground(
    project: Project, memories: MemoryStore, model: Model, *, dry: bool
) -> ExtractionContext:
    from reverie.memory.tasks import learning_context

    return learning_context(project, memories, model, _print_notice, dry=dry)


def _print_notice(notice: Notice) -> None:
    note(f"{notice.layer}: {notice.text}")


# --- what is told


def _tell(
    done: Sequence[LearnResult],
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


# --- `reverie memory import|export`: memories in from other programs, and everything out as files.


SHOWN, SHOWN_JSON = 5, 1_000
"""Texts that are shown of each outcome and reason; all of them are counted."""


@click.command("import")
@click.argument(
    "paths",
    nargs=-1,
    type=click.Path(path_type=Path),
    metavar="[PATH…]",
    help="Files, folders or an export.",
)
@click.option(
    "--from",
    "source",
    type=click.Choice([*get_args(Program), *get_args(System)]),
    help="Import what another program stores for this project, or an export of it (PATH).",
)
@click.option("--trust", "trusted", is_flag=True, help="The files are your own words: no review.")
@click.option("--dry-run", is_flag=True, help="Only show what would be imported.")
@json_option
@project_option
def import_memories(
    paths: tuple[Path, ...],
    source: Program | System | None,
    trusted: bool,
    dry_run: bool,
    as_json: bool,
    project: Project,
) -> None:
    """Import memories of Claude Code, Codex, Gemini, AGENTS.md files, or a Reverie export; or what
    mem0, Letta and LangGraph export."""
    if not paths and source is None:
        raise InvalidInput("Give files or --from PROGRAM", do="For example --from claude")
    if source in get_args(System) and not paths:
        do = f"Give its file: reverie memory import --from {source} FILE"
        raise InvalidInput(f"What {source} exports is a file", do=do)
    if source is not None and paths:
        _move_in(source, paths, trusted, dry_run, as_json, project)
        return
    with open_memory(project) as memories:
        exported = [path for path in paths or () if is_export(path)]
        brought = [
            one for path in exported for one in restore(memories, path, dry_run, trusted=trusted)
        ]
        loose = [path for path in paths or () if path not in exported]
        program = cast("Program | None", source)
        found = list(files_of_program(program, project) if program else files_at(loose))
        if trusted:
            found = [replace(one, trust=Trust.USER) for one in found]

        def work(one: ImportCandidate) -> ImportedFile:
            return import_file(memories, one, dry_run)

        brought += list(with_progress(found, "importing", work))
    _tell_moved(brought, dry_run, as_json)


def _move_in(
    source: str,
    paths: Sequence[Path],
    trusted: bool,
    dry_run: bool,
    as_json: bool,
    project: Project,
) -> None:
    """An export of another system, each text judged by itself and all of it one step."""
    counts: Counter[str] = Counter()
    shown: Counter[tuple[str, str]] = Counter()
    rows: list[ImportOutcome] = []
    parts = ((path, *part) for path in paths for part in read_by_user(source, path))
    for path, user, found in parts:
        with open_memory(project.part(user, "")) as memories:
            work = MemoryImport(memories, source, path.name, trusted, dry_run)
            for one in _count_progress(work.run(found), as_json):
                counts[one.outcome] += 1
                shown[one.outcome, one.why] += 1
                if shown[one.outcome, one.why] <= (SHOWN_JSON if as_json else SHOWN):
                    rows.append(one)
    if as_json:
        document({"moved": [asdict(one) for one in rows], "counts": counts, "dry_run": dry_run})
        return
    for one in rows:
        about = f": {one.why}" if one.why else ""
        say(f"{one.outcome}{about} · {one.file or ' '.join(one.text.split())[:80]}")
    total = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(counts.items()))
    say(f"{'Would be: ' if dry_run else ''}{total or 'There was nothing to import.'}")
    if not trusted and (counts[UNVERIFIED] or counts[WAITS]):
        say("Where these are your own words, the same with --trust keeps them as such.")


def _count_progress(found: Iterator[ImportOutcome], quiet: bool) -> Iterator[ImportOutcome]:
    """The same, with a line on what was done so far where it takes long."""
    for count, one in enumerate(found, 1):
        if not quiet and count % 5_000 == 0:
            note(f"{count:,} looked at")
        yield one


def _tell_moved(brought: Sequence[ImportedFile], dry_run: bool, as_json: bool) -> None:
    if as_json:
        rows = [asdict(one) for one in brought]
        document({"imported": rows, "dry_run": dry_run})
        return
    if not brought:
        say("Nothing to import was found.")
    for one in brought:
        say(f"{one.file}: {one.outcome} ({one.path})")


@click.command()
@click.argument(
    "out", type=click.Path(path_type=Path), metavar="FOLDER", help="Created if missing."
)
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@json_option
@project_option
def export(out: Path, force: bool, as_json: bool, project: Project) -> None:
    """Export memories, all their versions and the review queue as plain files."""
    counts: dict[str, int] = {MEMORY: 0, HISTORY: 0, REVIEW: 0}
    with open_memory(project) as memories, Folder(out.absolute()) as target:
        pieces = list(exported_files(memories, tell))

        def work(piece: tuple[str, bytes]) -> None:
            target.write(piece[0], piece[1], exclusive=not force)
            counts[piece[0].partition("/")[0]] += 1

        for _ in with_progress(pieces, "exporting", work):
            pass
    if as_json:
        document({"out": str(out), **counts})
        return
    say(f"{plural(sum(counts.values()), 'file')} in {out}")
