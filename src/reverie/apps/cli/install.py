"""`reverie install` and `reverie uninstall`: a client speaks through the proxy, and no longer.

What would change is shown first, as a diff, and written at the user's word. Taking it back
leaves the client's settings as they were; what the user has edited since stays.
"""

from __future__ import annotations

import shutil

import click

from reverie.apps.cli.install_plugin import install_plugin, uninstall_plugin
from reverie.apps.cli.options import json_option, port_option
from reverie.apps.cli.show import document, say
from reverie.errors import InvalidInput
from reverie.settings import environment
from reverie.store import home as places
from reverie.text.counts import plural, size
from reverie.upkeep.home_files import home_contents
from reverie.upkeep.install import CLIENTS
from reverie.upkeep.installed import KnownClients, SettingsChange
from reverie.upkeep.proxy_address import PORT

CLAUDE = "claude-code"
WORD = "remove"
yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask.")


@click.command()
@click.argument("client", type=click.Choice(list(CLIENTS)), help="The program to set up.")
@port_option(PORT, "Where `reverie proxy` listens.", least=1)
@click.option(
    "--plugin",
    is_flag=True,
    help="Claude Code's plugin instead: memory by hooks, a skill and MCP, without the proxy.",
)
@yes_option
@json_option
def install(client: str, port: int, plugin: bool, yes: bool, as_json: bool) -> None:
    """Let a client speak through the proxy: shows what would change, then asks."""
    if plugin:
        if client != CLAUDE:
            raise InvalidInput("Only Claude Code has a plugin", where=client)
        install_plugin(yes=yes, as_json=as_json)
        return
    clients = _clients()
    change = clients.install(client, port)
    title = change.client.title
    if change.needed:
        _ask(change, yes, as_json, "Write this?")
        clients.carry_out(change)
        told = f"{title} now speaks through the proxy. Start it: {_start(port)}"
    else:
        told = f"{title} speaks through the proxy already. To start it: {_start(port)}"
    if as_json:
        document(_told(change) | {"installed": True, "start": _start(port)})
    else:
        say(told)
        say(f"`reverie doctor` says whether its requests arrive; {_back(client)} takes it back.")


@click.command()
@click.argument(
    "client", type=click.Choice(list(CLIENTS)), required=False, help="Default: all of them."
)
@click.option(
    "--everything", is_flag=True, help="Also remove all memories, sessions and settings in home."
)
@yes_option
@json_option
def uninstall(client: str | None, everything: bool, yes: bool, as_json: bool) -> None:
    """Take back what `install` wrote; without a client's name, for every client."""
    if everything and as_json and not yes:
        raise InvalidInput("--json cannot ask for confirmation", do="Give --yes")
    if everything and client is not None:
        raise InvalidInput("--everything is for all clients", do="Leave out the client's name")
    clients = _clients()
    found = [client] if client else list(clients.installed())
    changes = [change for name in found if (change := clients.uninstall(name)) is not None]
    for change in changes:
        _ask(change, yes, as_json, "Take this back?")
        clients.carry_out(change)
    plugin = uninstall_plugin(yes=yes, as_json=as_json) if client in (None, CLAUDE) else None
    kept = client is not None or clients.sweep()
    removed = everything and kept and _remove(clients, yes)
    if as_json:
        told = [_told(change) for change in changes]
        done = [*told, *([plugin] if plugin else [])]
        document({"uninstalled": done, "removed": str(clients.home) if removed else None})
        return
    for change in changes:
        say(f"{change.client.title} speaks to its provider directly again.")
    if not changes and plugin is None:
        say(f"Nothing was installed for {CLIENTS[client].title if client else 'any client'}.")
    if removed:
        say(f"{clients.home} is gone. `pip uninstall reverie` removes the program.")
    elif client is None and kept:
        say(f"Memories and sessions stay in {clients.home}; `--everything` removes them too.")


def _remove(clients: KnownClients, yes: bool) -> bool:
    """Remove home with all that is in it, at the word of the person."""
    found = home_contents(clients.home, clients.environ)
    if not yes:
        projects = plural(found.projects, "project")
        say(f"{clients.home}: {plural(found.files, 'file')} of {projects}, {size(found.bytes)}.")
        say("Nothing brings them back. `reverie memory export` and `sessions export` copy them.")
        if click.prompt("Type `remove` to remove it all", default="", show_default=False) != WORD:
            say("Nothing was removed.")
            return False
    shutil.rmtree(clients.home)
    return True


def _clients() -> KnownClients:
    environ = environment()
    return KnownClients(environ, places.home(environ))


def _ask(change: SettingsChange, yes: bool, as_json: bool, question: str) -> None:
    if as_json:
        if not yes:
            raise InvalidInput("--json cannot ask for confirmation", do="Give --yes")
        return
    say(change.diff() or f"{change.path} stays as it is.")
    for note in change.plan.notes:
        say(f"Note: {note}")
    if not yes:
        click.confirm(question, abort=True)


def _told(change: SettingsChange) -> dict[str, object]:
    return {
        "client": change.client.name,
        "file": str(change.path),
        "changed": change.needed,
        "diff": change.diff(),
        "notes": list(change.plan.notes),
    }


def _start(port: int) -> str:
    return "reverie proxy" if port == PORT else f"reverie proxy --port {port}"


def _back(client: str) -> str:
    return f"`reverie uninstall {client}`"
