"""`reverie flags`: feature flags, which act while the program runs.

`set` and `unset` change `<home>/flags.json` and nothing else. Every running process asks the
file again at its next look.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from reverie.apps.cli.config import shown, tell_problems
from reverie.apps.cli.options import CommandGroup, json_option, project_option
from reverie.apps.cli.show import Column, document, hand_down, note, say, table
from reverie.settings import FlagState, flag_named, parse_flag
from reverie.store.project import Project
from reverie.upkeep.configure import FLAGS_FILE, change_flag


@click.group(cls=CommandGroup, invoke_without_command=True)
@json_option
@project_option
@click.pass_context
def app(context: click.Context, as_json: bool, project: Project) -> None:
    """Show and set feature flags."""
    hand_down(context)
    if context.invoked_subcommand is None:
        context.invoke(list_all, as_json=as_json, project=project)


@app.command("list")
@json_option
@project_option
def list_all(as_json: bool, project: Project) -> None:
    """List all flags with their current value and where it was set."""
    found = project.flags
    rows = [described(state) for state in found.snapshot().values()]
    problems = found.problems()
    if as_json:
        told = [problem.value() for problem in problems]
        document({"file": str(project.home / FLAGS_FILE), "flags": rows, "problems": told})
        return
    columns = (Column("flag", style="bold"), Column("value"), Column("source"))
    columns += (Column("place", wraps=True), Column("what for", wraps=True))
    keys = ("name", "value", "source", "place", "about")
    table(columns, [[value_shown(row[key]) for key in keys] for row in rows])
    tell_problems(problems)


@app.command("set")
@click.argument("name", help="The flag, or an alias of it.")
@click.argument("value", help="on, off, a number or JSON.")
@json_option
@project_option
def set_one(name: str, value: str, as_json: bool, project: Project) -> None:
    """Set a flag. Running processes notice the change too."""
    change_flag(project, name, parse_flag(name, value))
    _tell(project, name, as_json)


@app.command()
@click.argument("name", help="The flag, or an alias of it.")
@json_option
@project_option
def unset(name: str, as_json: bool, project: Project) -> None:
    """Remove a flag from flags.json, so that the next source or the default applies."""
    flag_named(name)
    if (project.home / FLAGS_FILE).exists():
        change_flag(project, name, None)
    _tell(project, name, as_json)


def described(state: FlagState) -> dict[str, Any]:
    """One flag with all that is known of it."""
    flag, value = state.flag, state.value
    return {
        "name": flag.name,
        "value": dict(value) if isinstance(value, Mapping) else value,
        "default": dict(flag.default) if isinstance(flag.default, Mapping) else flag.default,
        "source": state.origin.source,
        "place": state.origin.place,
        "trusted": state.origin.trusted,
        "aliases": list(flag.aliases),
        "section": flag.section,
        "about": flag.about,
    }


def value_shown(value: object) -> str:
    """A flag's value as people write it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return shown(value)


def _tell(project: Project, name: str, as_json: bool) -> None:
    state = project.flags.snapshot()[flag_named(name).name]
    if as_json:
        document(described(state))
        return
    say(f"{state.flag.name} is {value_shown(state.value)} ({state.origin.source})")
    if state.origin.source not in ("flags", "default"):
        note(
            f"The value comes from {state.origin.place}, which takes precedence over {FLAGS_FILE}."
        )
