"""`reverie web`: the page for people, on this machine alone."""

from __future__ import annotations

import click

from reverie.apps.cli.options import HOST, json_option, port_option, project_option
from reverie.apps.cli.show import json_line, say
from reverie.providers.extras import extra
from reverie.store.project import Project


@click.command()
@port_option(0)
@json_option
@project_option
def web(port: int, as_json: bool, project: Project) -> None:
    """Serve the page: sessions, memories, dreams, health and savings of your projects."""
    with extra("web", "The page cannot be served"):
        from reverie.apps.web.serve import serve_page

    def ready(link: str) -> None:
        if as_json:
            json_line({"url": link})
            return
        say(f"Open {link}")
        say("The link works once, on this machine alone. Ctrl-C stops the page.")

    serve_page(project, HOST, port, ready)
