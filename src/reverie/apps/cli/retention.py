"""`reverie sessions prune`: sessions that nobody has touched for long go, after asking."""

from __future__ import annotations

import time

import click

from reverie.apps.cli.options import json_option, project_option
from reverie.apps.cli.show import document, note, say, watched
from reverie.errors import InvalidInput
from reverie.session.library import Library
from reverie.store.project import Project
from reverie.text.counts import plural
from reverie.upkeep.retention import OldSessions, find_old, remove_session


@click.command()
@click.option(
    "--older-than",
    type=click.FloatRange(min=0),
    metavar="DAYS",
    help="Default: the setting retentionDays.",
)
@click.option("--dry-run", is_flag=True, help="Only list what would go.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@json_option
@project_option
def prune(
    older_than: float | None, dry_run: bool, yes: bool, as_json: bool, project: Project
) -> None:
    """Remove sessions that have not been touched for a number of days.

    A session is its transcript, stored results and agents. Memory is never touched.
    """
    days = project.settings.retention_days if older_than is None else older_than
    library = Library.find(project)
    found = find_old(library, days, time.time()) if library else OldSessions()
    if found.due and not dry_run and not yes:
        if as_json:
            raise InvalidInput("--json cannot ask for confirmation", do="Give --yes or --dry-run")
        long = f"{days:g} {'day' if days == 1 else 'days'}"
        say(f"{plural(len(found.due), 'session')} untouched for {long} in {project.root}")
        click.confirm("Remove for good?", abort=True)
    removed: list[str] = []
    kept = dict(found.kept)
    if library is not None and not dry_run:
        failures = watched(found.due, "removing", lambda name: remove_session(library, name))
        for name, why in zip(found.due, failures, strict=True):
            if why:
                kept[name] = why
            else:
                removed.append(name)
    if as_json:
        left = [{"id": name, "why": why} for name, why in kept.items()]
        would = list(found.due) if dry_run else []
        document({"days": days, "removed": removed, "would_remove": would, "left": left})
        return
    gone = found.due if dry_run else removed
    say(f"{plural(len(gone), 'session')} {'would be removed' if dry_run else 'removed'}")
    for name in gone:
        say(f"  {name}")
    for name, why in kept.items():
        note(f"{name} was kept: {why}")
