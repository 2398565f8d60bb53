"""`reverie team`: what concerns memory that is shared. So far, the search for secrets.

`scan` exits with 1 where there is a secret, or where a file could not be searched.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from reverie.apps.cli.options import CommandGroup, json_option
from reverie.apps.cli.show import document, note, say
from reverie.text.counts import plural
from reverie.upkeep.scan import scan_files


@click.group(cls=CommandGroup, no_args_is_help=True)
def app() -> None:
    """Scan files that would be shared for secrets."""


@app.command()
@click.argument(
    "path", type=click.Path(path_type=Path), help="A file, or a folder and everything below it."
)
@json_option
def scan(path: Path, as_json: bool) -> None:
    """List secrets in a file or folder by file, line and rule. Exits with 1 if there are any."""
    searched, found = scan_files(path)
    if as_json:
        document([asdict(one) for one in found])
    else:
        for one in found:
            say(f"{one.file}:{one.line}: {one.rule}")
        note(f"{plural(searched, 'file')} searched, {plural(len(found), 'secret')} found")
    if found:
        raise click.exceptions.Exit(1)
