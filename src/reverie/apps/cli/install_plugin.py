"""`reverie install claude-code --plugin`: memory by Claude Code's own hooks, without a proxy."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import click

from reverie.apps.cli.show import document, note, say
from reverie.apps.hook import before_call
from reverie.errors import InvalidInput
from reverie.providers.extras import install_command
from reverie.settings import environment
from reverie.upkeep import plugin
from reverie.upkeep.install import diff
from reverie.upkeep.plugin import PluginChange


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
        document(_told(change) | {"installed": True})
        return
    say(f"The plugin is in {change.folder}. Start a new session of Claude Code to load it.")
    say("In that session `/hooks` and `/mcp` show what was loaded.")
    if find_spec("mcp") is None:
        note(f"Its MCP server needs a package that is not there: {install_command('mcp')}")
    say("`reverie uninstall claude-code` takes it back.")


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
    return _told(change)


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


def _told(change: PluginChange) -> dict[str, object]:
    return {
        "client": "claude-code",
        "plugin": str(change.folder),
        "files": list(change.new),
        "changed": change.needed,
        "diff": _diff(change),
    }
