"""`reverie team`: what concerns memory that is shared. So far, the search for secrets."""

from __future__ import annotations

import typer

from reverie.apps.cli.scan import scan

app = typer.Typer(no_args_is_help=True)
app.command("scan")(scan)


@app.callback()
def team() -> None:
    """Search what would be shared for secrets."""
