"""`install`, `uninstall`, `completion`, `on`, `off`.

`reverie install` and `reverie uninstall`: point a client at the proxy, and take it back.

What would change is shown first, as a diff, and written at the user's word. Taking it back
leaves the client's settings as they were; what the user has edited since stays.
"""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from reverie.apps.cli.app import build, json_option, port_option, project_option
from reverie.apps.cli.output import document, note, say
from reverie.apps.hook import before_call
from reverie.clients import plugin
from reverie.clients.background import terms
from reverie.clients.files import ClientSettings, SettingsChange
from reverie.clients.install import CLIENTS, diff
from reverie.clients.plugin import PluginChange
from reverie.clients.proxy_address import PORT
from reverie.errors import InvalidInput
from reverie.providers.connection import install_command
from reverie.reports.home_files import home_contents
from reverie.settings.sources import environment
from reverie.store.approvals import change_setting
from reverie.store.project import Project, switch
from reverie.text.format import plural, size

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
        ask(_format_change(change), yes, as_json, "Write this?")
    if change.plan.installation is not None:
        clients.carry_out(change)
    if as_json:
        document(_settings_facts(change) | {"installed": True, "start": _start(port)})
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
        ask(_format_change(change), yes, as_json, "Take this back?")
        clients.carry_out(change)
    plugin = uninstall_plugin(yes=yes, as_json=as_json) if client in (None, CLAUDE) else None
    kept = client is not None or clients.sweep()
    removed = everything and kept and _remove(project, yes)
    if as_json:
        told = [_settings_facts(change) for change in changes]
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


def _format_change(change: SettingsChange) -> str:
    notes = (f"Note: {note}" for note in change.plan.notes)
    return "\n".join((change.diff() or f"{change.path} stays as it is.", *notes))


def _settings_facts(change: SettingsChange) -> dict[str, object]:
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


# --- Completion for shells: the script that click makes, shown or put where the shell reads it.
#
# Nothing of the person's is overwritten: a script goes into a file of its own, and a start-up file
# gets one line that reads it, once.


PROGRAM, VARIABLE = "reverie", "_REVERIE_COMPLETE"
PLACES = {  # the script's file, and the start-up file that is to read it
    "bash": (".bash_completions/reverie.sh", ".bashrc"),
    "zsh": (".zsh_completions/reverie.zsh", ".zshrc"),
    "fish": (".config/fish/completions/reverie.fish", ""),
}


def show(shell: str) -> None:
    """Print the script for a shell; without a name for the one in use."""
    print(_script(_shell_name(shell)))


def install_completion(shell: str) -> None:
    """Put the script where the shell finds it when it starts."""
    shell = _shell_name(shell)
    place, start = PLACES[shell]
    home = Path(environment().get("HOME") or Path.home())
    script = home / place
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(_script(shell) + "\n", encoding="utf-8")
    if start:
        _read_by(home / start, f"source '{script}'")
    say(f"Completion for {shell} is in {script}; it works in the next shell you open.")


def _read_by(start: Path, line: str) -> None:
    before = start.read_text(encoding="utf-8") if start.exists() else ""
    if line not in before.splitlines():
        with start.open("a", encoding="utf-8") as file:
            file.write(("" if not before or before.endswith("\n") else "\n") + line + "\n")


def _shell_name(shell: str) -> str:
    name = shell or os.path.basename(environment().get("SHELL", ""))
    if not name:
        raise InvalidInput("$SHELL does not name your shell", do=f"Name {', '.join(PLACES)}")
    if name not in PLACES:
        raise InvalidInput(
            "there is no completion for this shell", where=name, do=f"Name {', '.join(PLACES)}"
        )
    return name


def _script(shell: str) -> str:
    made = get_completion_class(shell)
    if made is None:
        raise InvalidInput("there is no completion for this shell", where=shell)
    return made(build(), {}, PROGRAM, VARIABLE).source()


# --- `reverie install claude-code --plugin`: memory by Claude Code's own hooks, without a proxy.


@click.command()
def hook() -> None:
    """Answer one hook event of Claude Code, given as JSON on standard input."""
    sys.exit(before_call.hook())


def install_plugin(*, yes: bool, as_json: bool) -> None:
    """Show the files of the plugin, write them at a yes."""
    change = plugin.plan_install(environment())
    if change.needed:
        ask(_diff(change), yes, as_json, "Write these files?")
        plugin.carry_out(change)
    if as_json:
        document(_plugin_facts(change) | {"installed": True})
        return
    say(f"The plugin is in {change.folder}. Start a new session of Claude Code to load it.")
    say("In that session `/hooks` and `/mcp` show what was loaded.")
    if find_spec("mcp") is None:
        note(f"Its MCP server needs a package that is not there: {install_command('mcp')}")
    say("`reverie uninstall claude-code` takes it back.")
    _offer_agent(yes)


def _offer_agent(yes: bool) -> None:
    """Ask once whether the user's own login may learn; --yes is no answer to this."""
    project = Project.personal()
    if project.settings.background_model is not None:
        return
    if yes:
        say("It learns by rules; `reverie config set background_model cli:claude` adds your login.")
        return
    say(f"Rules learn little. {terms(project.settings)}")
    try:
        wanted = click.confirm("Learn with your Claude Code login?", default=False)
    except click.Abort:  # nobody answered, so nobody was asked
        return
    change_setting(project, "background_model", "cli:claude" if wanted else "off")


def uninstall_plugin(*, yes: bool, as_json: bool) -> dict[str, object] | None:
    """Take the plugin away; what was done, or None where there was none."""
    change = plugin.plan_uninstall(environment())
    if change is None:
        return None
    ask(_diff(change), yes, as_json, "Take these files away?")
    plugin.carry_out(change)
    if not as_json:
        for name, text in change.new.items():
            if text is not None:
                say(f"{change.folder / name} was changed since: it stays as it is.")
        say(f"The plugin was removed from {change.folder}.")
    return _plugin_facts(change)


def ask(shown: str, yes: bool, as_json: bool, question: str) -> None:
    """Show a change and ask for a yes, unless it was given."""
    if as_json:
        if not yes:
            raise InvalidInput("--json cannot ask for confirmation", do="Give --yes")
        return
    say(shown)
    if not yes:
        click.confirm(question, abort=True)


def _diff(change: PluginChange) -> str:
    changed = [name for name, text in change.new.items() if text != change.old[name]]
    texts = (
        diff(str(change.folder / name), change.old[name], change.new[name]) for name in changed
    )
    return "\n".join(texts)


def _plugin_facts(change: PluginChange) -> dict[str, object]:
    return {
        "client": "claude-code",
        "plugin": str(change.folder),
        "files": list(change.new),
        "changed": change.needed,
        "diff": _diff(change),
    }


# --- `reverie off` and `reverie on`: nothing of it runs in this project, or everything again.


@click.command()
@json_option
@project_option
def off(as_json: bool, project: Project) -> None:
    """Switch memory, notes, learning, dreams and hooks off for this project.

    What is stored stays, and commands such as `reverie memory` still work. The agent answers as
    with --bare; proxy and plugin bring no memories and learn nothing.
    """
    _switch_project(project, as_json, on=False)


@click.command()
@json_option
@project_option
def on(as_json: bool, project: Project) -> None:
    """Switch on again what `reverie off` switched off."""
    _switch_project(project, as_json, on=True)


def _switch_project(project: Project, as_json: bool, *, on: bool) -> None:
    now = switch(project, on=on)
    if as_json:
        document({"on": now.on, "root": str(project.root), "where": now.where})
        return
    say(f"Reverie is {'on' if now.on else 'off'} in {project.root}")
    if now.on is not on:
        note(f"reverie: {now.where} says so, and takes precedence")
    elif not on:
        say("What is stored stays; `reverie on` switches it on again.")
