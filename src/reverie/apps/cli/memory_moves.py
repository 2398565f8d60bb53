"""`reverie memory import|export`: memories in from other programs, and everything out as files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import get_args

import click

from reverie.apps.cli.memory_open import open_memory
from reverie.apps.cli.options import json_option, project_option
from reverie.apps.cli.show import document, say, tell, watched
from reverie.errors import InvalidInput
from reverie.memory.trust import Trust
from reverie.store.files import Folder
from reverie.store.lists import REVIEW
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
from reverie.upkeep.place import ProjectPlace


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
    type=click.Choice(get_args(Program)),
    help="Import what another program stores for this project.",
)
@click.option("--trust", "trusted", is_flag=True, help="The files are your own words: no review.")
@click.option("--dry-run", is_flag=True, help="Only show what would be imported.")
@json_option
@project_option
def import_memories(
    paths: tuple[Path, ...],
    source: Program | None,
    trusted: bool,
    dry_run: bool,
    as_json: bool,
    project: Path,
) -> None:
    """Import memories of Claude Code, Codex, Gemini, AGENTS.md files, or a Reverie export."""
    if bool(paths) == bool(source):
        raise InvalidInput("Give either files or --from PROGRAM", do="For example --from claude")
    place = ProjectPlace.of(project)
    with open_memory(project) as memories:
        exported = [path for path in paths or () if is_export(path)]
        brought = [
            one for path in exported for one in restore(memories, path, dry_run, trusted=trusted)
        ]
        loose = [path for path in paths or () if path not in exported]
        found = list(files_of_program(source, place) if source else files_at(loose))
        if trusted:
            found = [replace(one, trust=Trust.USER) for one in found]

        def work(one: ImportCandidate) -> ImportedFile:
            return import_file(memories, one, dry_run)

        brought += list(watched(found, "importing", work))
    _tell(brought, dry_run, as_json)


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
def export(out: Path, force: bool, as_json: bool, project: Path) -> None:
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
