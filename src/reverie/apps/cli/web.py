"""`reverie web`: the page for people, on this machine alone."""

from __future__ import annotations

from pathlib import Path

import click

from reverie.apps.cli.options import json_option, project_option
from reverie.apps.cli.show import json_line, say
from reverie.errors import NotAvailable
from reverie.providers.extras import install_command
from reverie.upkeep.place import ProjectPlace

HOST = "127.0.0.1"


@click.command()
@click.option(
    "--port",
    type=click.IntRange(min=0, max=65535),
    metavar="N",
    default=0,
    show_default=True,
    help="0 picks a free port.",
)
@json_option
@project_option
def web(port: int, as_json: bool, project: Path) -> None:
    """Serve the page: sessions, memories, dreams, health and savings of this project."""
    try:
        from reverie.apps.web.serve import serve_page
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("reverie"):
            raise
        raise NotAvailable(
            f"The page cannot be served: {error.name} is not installed",
            do=f"Install it: {install_command('jinja2')} starlette uvicorn",
        ) from error

    def ready(link: str) -> None:
        if as_json:
            json_line({"url": link})
            return
        say(f"Open {link}")
        say("The link works once, on this machine alone. Ctrl-C stops the page.")

    serve_page(ProjectPlace.of(project), HOST, port, ready)
