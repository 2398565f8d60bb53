"""`reverie install` and `reverie uninstall`: point a client at the proxy, and take it back.

What would change is shown first, as a diff, and written at the user's word. Taking it back
leaves the client's settings as they were; what the user has edited since stays.
"""

from __future__ import annotations

import shutil

import click

from reverie.apps.cli.install_plugin import ask, install_plugin, uninstall_plugin
from reverie.apps.cli.options import json_option, port_option
from reverie.apps.cli.show import document, say
from reverie.errors import InvalidInput
from reverie.store.project import Project
from reverie.text.counts import plural, size
from reverie.upkeep.home_files import home_contents
from reverie.upkeep.install import CLIENTS
from reverie.upkeep.installed import ClientSettings, SettingsChange
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
    """Point a client's settings at the proxy: shows what would change, then asks."""
    if plugin:
        if client != CLAUDE:
            raise InvalidInput("Only Claude Code has a plugin", where=client)
        install_plugin(yes=yes, as_json=as_json)
        return
    clients = ClientSettings(Project.personal())
    change = clients.install(client, port)
    title = change.client.title
    if change.needed:
        ask(_shown(change), yes, as_json, "Write this?")
    if change.plan.installation is not None:
        clients.carry_out(change)
    if as_json:
        document(_told(change) | {"installed": True, "start": _start(port)})
        return
    written = "names the proxy now" if change.needed else "named the proxy already"
    say(f"{change.path} {written}. Start the proxy: {_start(port)}")
    for url in filter(None, change.upstreams.values()):
        say(f"It forwards to the gateway that {title} had: {url}")
    say(f"Ask {title} something; then `reverie doctor` says whether a request arrived.")


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
    project = Project.personal()
    clients = ClientSettings(project)
    found = [client] if client else list(clients.installed())
    changes = [change for name in found if (change := clients.uninstall(name)) is not None]
    for change in changes:
        ask(_shown(change), yes, as_json, "Take this back?")
        clients.carry_out(change)
    plugin = uninstall_plugin(yes=yes, as_json=as_json) if client in (None, CLAUDE) else None
    kept = client is not None or clients.sweep()
    removed = everything and kept and _remove(project, yes)
    if as_json:
        told = [_told(change) for change in changes]
        done = [*told, *([plugin] if plugin else [])]
        document({"uninstalled": done, "removed": str(project.home) if removed else None})
        return
    for change in changes:
        say(f"{change.path} names the proxy no longer.")
    if not changes and plugin is None:
        say(f"Nothing was installed for {CLIENTS[client].title if client else 'any client'}.")
    if removed:
        say(f"{project.home} is gone. `pip uninstall reverie` removes the program.")
    elif client is None and kept:
        say(f"Memories and sessions stay in {project.home}; `--everything` removes them too.")


def _remove(project: Project, yes: bool) -> bool:
    """Remove home with all that is in it, at the word of the person."""
    found = home_contents(project.home, project.environ)
    if not yes:
        projects = plural(found.projects, "project")
        say(f"{project.home}: {plural(found.files, 'file')} of {projects}, {size(found.bytes)}.")
        say("Nothing brings them back. `reverie memory export` and `sessions export` copy them.")
        if click.prompt("Type `remove` to remove it all", default="", show_default=False) != WORD:
            say("Nothing was removed.")
            return False
    shutil.rmtree(project.home)
    return True


def _shown(change: SettingsChange) -> str:
    notes = (f"Note: {note}" for note in change.plan.notes)
    return "\n".join((change.diff() or f"{change.path} stays as it is.", *notes))


def _told(change: SettingsChange) -> dict[str, object]:
    return {
        "client": change.client.name,
        "file": str(change.path),
        "changed": change.needed,
        "diff": change.diff(),
        "notes": list(change.plan.notes),
        "upstreams": dict(change.upstreams),
    }


def _start(port: int) -> str:
    return "reverie proxy" if port == PORT else f"reverie proxy --port {port}"
