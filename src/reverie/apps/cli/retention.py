"""`reverie sessions prune`: sessions that nobody has touched for long go, after asking.

A session goes whole: transcript, stored results, blobs, agents. Never memory, never one
that is in use, and never a file that is not one of ours.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Annotated

import typer

from reverie.apps.cli.place import CURRENT, Project, ProjectPlace
from reverie.apps.cli.show import JsonOption, document, note, plural, say, watched
from reverie.errors import InvalidInput, ReverieError
from reverie.session.library import DAY, Library
from reverie.store.home import SessionFile
from reverie.store.lock import Holder, holder_of


def prune(
    older_than: Annotated[
        float | None, typer.Option("--older-than", metavar="DAYS", min=0, show_default=False)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonOption = False,
    project: Project = CURRENT,
) -> None:
    """Remove sessions untouched for so many days (default: the setting retentionDays).

    A session is its transcript, stored results, blobs and agents. Memory is never touched.
    """
    place = ProjectPlace.of(project)
    days = place.loaded().settings.retention_days if older_than is None else older_than
    library = place.library()
    left: dict[str, str] = {}
    going = due(library, days, left) if library else []
    if going and not dry_run and not yes:
        if as_json:
            raise InvalidInput("Nobody can be asked with --json", do="Give --yes or --dry-run")
        say(f"{plural(len(going), 'session')} untouched for {days:g} days in {place.root}")
        typer.confirm("Remove for good?", abort=True)
    removed = [] if dry_run or library is None else _discard_all(library, going, left)
    if as_json:
        kept = [{"id": name, "why": why} for name, why in left.items()]
        would = going if dry_run else []
        document({"days": days, "removed": removed, "would_remove": would, "left": kept})
        return
    done = f"{plural(len(going), 'session')} would go" if dry_run else ""
    say(done or f"{plural(len(removed), 'session')} removed")
    for name in going if dry_run else removed:
        say(f"  {name}")
    for name, why in left.items():
        note(f"{name} is left: {why}")


def due(library: Library, days: float, left: dict[str, str]) -> list[str]:
    """The sessions that may go; those in use are said in `left`."""
    now = time.time()
    going: list[str] = []
    for file in library.sessions():
        if now - file.mtime < days * DAY:
            continue
        who = holder(library, file)
        if who is None:
            going.append(file.id)
        else:
            left[file.id] = f"in use by {who}"
    return going


def _discard_all(library: Library, going: Sequence[str], left: dict[str, str]) -> list[str]:
    removed: list[str] = []

    def work(session: str) -> None:
        try:
            library.remove(session)
        except ReverieError as error:
            left[session] = str(error)
        else:
            removed.append(session)

    for _ in watched(going, "removing", work):
        pass
    return removed


def holder(library: Library, file: SessionFile) -> Holder | None:
    """The process that has a session open, as far as the kernel tells."""
    try:
        handle = library.folder.open_read(f"{file.id}.jsonl")
    except ReverieError:
        return None
    try:
        return holder_of(handle)
    finally:
        os.close(handle)
