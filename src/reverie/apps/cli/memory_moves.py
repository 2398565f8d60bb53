"""`reverie memory import|export`: memories in from other programs, and everything out as files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from reverie.apps.cli.memory_open import open_memory
from reverie.apps.cli.options import CURRENT, JsonOption, Project
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


def import_memories(
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="[PATH…]", help="Files, folders or an export.")
    ] = None,
    source: Annotated[
        Program | None,
        typer.Option("--from", help="Import what another program stores for this project."),
    ] = None,
    trusted: Annotated[
        bool, typer.Option("--trust", help="The files are your own words: no review.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be imported.")
    ] = False,
    as_json: JsonOption = False,
    project: Project = CURRENT,
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


def export(
    out: Annotated[Path, typer.Argument(metavar="FOLDER", help="Created if missing.")],
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
    as_json: JsonOption = False,
    project: Project = CURRENT,
) -> None:
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
