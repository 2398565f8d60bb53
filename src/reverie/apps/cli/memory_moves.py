"""`reverie memory import|export`: memories in from other programs, and everything out as files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import cast, get_args

import click

from reverie.apps.cli.memory_open import open_memory
from reverie.apps.cli.options import json_option, project_option
from reverie.apps.cli.show import document, note, say, tell, watched
from reverie.errors import InvalidInput
from reverie.memory.trust import Trust
from reverie.store.files import Folder
from reverie.store.lists import REVIEW
from reverie.store.project import Project
from reverie.text.counts import plural
from reverie.upkeep.memory_transfer import (
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
from reverie.upkeep.moving_in import UNVERIFIED, WAITS, Moved, MoveIn, System, exported

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

        brought += list(watched(found, "importing", work))
    _tell(brought, dry_run, as_json)


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
    rows: list[Moved] = []
    with open_memory(project) as memories:
        for path in paths:
            work = MoveIn(memories, source, path.name, trusted, dry_run)
            for one in _counted(work.run(exported(source, path)), as_json):
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


def _counted(found: Iterator[Moved], quiet: bool) -> Iterator[Moved]:
    """The same, with a line on what was done so far where it takes long."""
    for count, one in enumerate(found, 1):
        if not quiet and count % 5_000 == 0:
            note(f"{count:,} looked at")
        yield one


def _tell(brought: Sequence[ImportedFile], dry_run: bool, as_json: bool) -> None:
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

        for _ in watched(pieces, "exporting", work):
            pass
    if as_json:
        document({"out": str(out), **counts})
        return
    say(f"{plural(sum(counts.values()), 'file')} in {out}")
