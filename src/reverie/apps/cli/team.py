"""`reverie team`: what concerns memory that is shared. So far, the search for secrets.

`scan` exits with 1 where there is a secret, or where a file could not be searched.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from reverie.apps.cli.options import JsonOption
from reverie.apps.cli.show import document, note, say
from reverie.text.counts import plural
from reverie.upkeep.scan import scan_files

app = typer.Typer(no_args_is_help=True)


@app.callback()
def team() -> None:
    """Scan files that would be shared for secrets."""


@app.command()
def scan(
    path: Annotated[Path, typer.Argument(help="A file, or a folder and everything below it.")],
    as_json: JsonOption = False,
) -> None:
    """List secrets in a file or folder by file, line and rule. Exits with 1 if there are any."""
    searched, found = scan_files(path)
    if as_json:
        document([asdict(one) for one in found])
    else:
        for one in found:
            say(f"{one.file}:{one.line}: {one.rule}")
        note(f"{plural(searched, 'file')} searched, {plural(len(found), 'secret')} found")
    if found:
        raise typer.Exit(1)
