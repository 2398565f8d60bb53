"""`reverie mcp`: the memory of a project as an MCP server, over stdio or HTTP.

Over stdio a client starts it and ends it. Over HTTP it listens on loopback and asks for a token,
which it makes itself unless `REVERIE_MCP_TOKEN` holds one.
"""

from __future__ import annotations

import secrets
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from reverie.apps.cli.options import HOST, json_option, port_option, project_option
from reverie.apps.cli.show import json_line, say
from reverie.errors import InvalidInput
from reverie.providers.extras import extra
from reverie.settings import environment

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from reverie.store.project import Project

TOKEN = "REVERIE_MCP_TOKEN"
SHORTEST = 16
"""Characters of a token that somebody chose."""


@click.command()
@click.option("--http", is_flag=True, help="Serve over HTTP instead of standard input and output.")
@port_option(8789, "For --http; 0 picks a free port.")
@click.option("--read-only", is_flag=True, help="Offer no tool that changes the memory.")
@json_option
@project_option
def mcp(http: bool, port: int, read_only: bool, as_json: bool, project: Project) -> None:
    """Serve the memory of a project to MCP clients.

    Without --http it speaks over standard input and output, as clients expect of a command.
    """
    import anyio

    server = _server(project, read_only)
    if not http:
        from reverie.apps.mcp.stdio import serve

        anyio.run(serve, server)
        return
    from reverie.apps.mcp.http import Door, serve_http
    from reverie.serving import listen

    token = token_to_ask_for()

    def ready(url: str) -> None:
        if as_json:
            json_line({"url": url, "token": token})
            return
        say(f"Memory at {url} (Ctrl-C stops it)")
        say(f"  Authorization: Bearer {token}")

    anyio.run(partial(serve_http, Door(server, token), listen(HOST, port), ready))


def _server(project: Project, read_only: bool) -> Server[Any]:
    from reverie.api.memory import Memory

    with extra("mcp", "The MCP server cannot run"):
        from reverie.apps.mcp.server import MemoryServer
    return MemoryServer(Memory(project.cwd), read_only=read_only).server()


def token_to_ask_for() -> str:
    """The one that was chosen, or a new one."""
    given = environment().get(TOKEN, "")
    if not given:
        return secrets.token_urlsafe(32)
    if len(given) < SHORTEST or not given.isascii() or not given.isprintable() or " " in given:
        do = f"Give at least {SHORTEST} printable ASCII characters without a space"
        raise InvalidInput("This is no token", where=TOKEN, do=do)
    return given
