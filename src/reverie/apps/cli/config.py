"""`config` and `flags`.

`reverie config`: every setting, its value, and who gave it.

`set` and `unset` change `<home>/settings.json` and nothing else; a running process keeps what it
began with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from reverie.apps.cli.app import CommandGroup, json_option, project_option
from reverie.apps.cli.output import Column, document, hand_down, note, say, table
from reverie.clients.background import terms, wants_model
from reverie.settings.catalog import DEFAULTS, SETTINGS
from reverie.settings.flags import FlagState
from reverie.settings.schema import Problem, camel
from reverie.settings.sources import LoadedSettings, settings_files, variable
from reverie.settings.switches import flag_named, parse_flag
from reverie.store.approvals import (
    FLAGS_FILE,
    SETTINGS_FILE,
    change_flag,
    change_setting,
    setting_named,
)
from reverie.store.project import Project
from reverie.text.format import plural

changed_option = click.option(
    "--changed", is_flag=True, help="Only settings that are not at their default."
)


@click.group(cls=CommandGroup, invoke_without_command=True)
@json_option
@changed_option
@project_option
@click.pass_context
def app(context: click.Context, as_json: bool, changed: bool, project: Project) -> None:
    """Show every setting and where it comes from."""
    hand_down(context)
    if context.invoked_subcommand is None:
        context.invoke(list_all, as_json=as_json, changed=changed, project=project)


@app.command("list")
@json_option
@changed_option
@project_option
def list_all(as_json: bool, changed: bool, project: Project) -> None:
    """List all settings with value, source and place, then the values that were rejected."""
    loaded = project.load()
    rows = [setting_facts(loaded, name) for name in SETTINGS]
    if changed:
        rows = [row for row in rows if row["source"] != "default"]
    if as_json:
        problems = [problem.value() for problem in loaded.problems]
        where = {"home": str(project.home), "root": str(project.root)}
        document({**where, "settings": rows, "problems": problems})
        return
    columns = (Column("setting", style="bold"), Column("value", right=True), Column("source"))
    columns += (Column("place", wraps=True), Column("what for", wraps=True))
    keys = ("name", "value", "source", "place", "about")
    table(columns, [[format_value(row[key]) for key in keys] for row in rows])
    tell_problems(loaded.problems)


@app.command()
@click.argument("name", help="Its name, JSON key or environment variable.")
@json_option
@project_option
def get(name: str, as_json: bool, project: Project) -> None:
    """Print one setting, given by its name, JSON key or environment variable."""
    loaded = project.load()
    row = _one(loaded, setting_named(name))
    if as_json:
        document(row)
        return
    say(format_value(row["value"]))


@app.command("set")
@click.argument("name", help="Its name, JSON key or environment variable.")
@click.argument("value", help="A number, on or off, or a text, as the setting asks for.")
@json_option
@project_option
def set_one(name: str, value: str, as_json: bool, project: Project) -> None:
    """Set a setting for yourself, in all projects. It counts from the next start on."""
    change_setting(project, name, value)
    _tell(project, setting_named(name), as_json)


@app.command()
@click.argument("name", help="Its name, JSON key or environment variable.")
@json_option
@project_option
def unset(name: str, as_json: bool, project: Project) -> None:
    """Remove a setting of yours, so that the next source or the default applies."""
    field = setting_named(name)
    if (project.home / SETTINGS_FILE).exists():
        change_setting(project, name, None)
    _tell(project, field, as_json)


def _one(loaded: LoadedSettings, field: str) -> dict[str, Any]:
    spelt = (field, camel(field), variable(field))
    problems = [problem.value() for problem in loaded.problems if problem.key in spelt]
    return {**setting_facts(loaded, field), "problems": problems}


def _tell(project: Project, field: str, as_json: bool) -> None:
    row = _one(project.load(), field)
    if as_json:
        document(row)
        return
    say(f"{row['key']} is {format_value(row['value'])} ({row['source']})")
    if field == "background_model" and wants_model(project.reload().settings):
        say(terms(project.settings))
    if row["source"] not in ("user", "default"):
        note(f"The value comes from {row['place']}, which takes precedence over {SETTINGS_FILE}.")


@app.command()
@json_option
@project_option
def path(as_json: bool, project: Project) -> None:
    """List the settings files in order of precedence, and whether each exists and is trusted."""
    rows: list[dict[str, Any]] = [
        {
            "source": file.origin.source,
            "path": str(file.path),
            "exists": file.path.exists(),
            "trusted": file.origin.trusted,
            "problems": [problem.reason for problem in file.problems],
        }
        for file in settings_files(home=project.home, root=project.root)
    ]
    if as_json:
        document({"home": str(project.home), "root": str(project.root), "files": rows})
        return
    columns = (Column("source"), Column("exists"), Column("trusted"), Column("path", wraps=True))
    keys = ("source", "exists", "trusted", "path")
    table(columns, [[format_value(row[key]) for key in keys] for row in rows])
    for row in rows:
        for reason in row["problems"]:
            note(f"{row['path']}: {reason}")


def setting_facts(loaded: LoadedSettings, name: str) -> dict[str, Any]:
    """One setting with all that is known of it."""
    known, origin = SETTINGS[name], loaded.origins[name]
    return {
        "name": name,
        "key": camel(name),
        "variable": variable(name),
        "value": getattr(loaded.settings, name),
        "default": getattr(DEFAULTS, name),
        "source": origin.source,
        "place": origin.place,
        "trusted": origin.trusted,
        "committed": known.committed,
        "section": known.section,
        "about": known.about,
    }


def format_value(value: object) -> str:
    """A value as people write it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def tell_problems(problems: tuple[Problem, ...]) -> None:
    """What was not taken as given: the file, the key and the reason."""
    if problems:
        note(f"\n{plural(len(problems), 'value was', 'values were')} rejected or changed:")
    for problem in problems:
        note(f"  {problem.level}: {problem}")
    if any(problem.code == "not_trusted" for problem in problems):
        note("`reverie trust` shows what an untrusted file would do, and asks.")


# --- `reverie flags`: feature flags, which act while the program runs.
#
# `set` and `unset_flag` change `<home>/flags.json` and nothing else. Every running process asks the
# file again at its next look.


@click.group("app", cls=CommandGroup, invoke_without_command=True)
@json_option
@project_option
@click.pass_context
def flags_app(context: click.Context, as_json: bool, project: Project) -> None:
    """Show and set feature flags."""
    hand_down(context)
    if context.invoked_subcommand is None:
        context.invoke(list_flags, as_json=as_json, project=project)


@flags_app.command("list")
@json_option
@project_option
def list_flags(as_json: bool, project: Project) -> None:
    """List all flags with their current value and where it was set."""
    found = project.flags
    rows = [flag_facts(state) for state in found.snapshot().values()]
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


@flags_app.command("set")
@click.argument("name", help="The flag, or an alias of it.")
@click.argument("value", help="on, off, a number or JSON.")
@json_option
@project_option
def set_flag(name: str, value: str, as_json: bool, project: Project) -> None:
    """Set a flag. Running processes notice the change too."""
    change_flag(project, name, parse_flag(name, value))
    _tell_flag(project, name, as_json)


@flags_app.command("unset")
@click.argument("name", help="The flag, or an alias of it.")
@json_option
@project_option
def unset_flag(name: str, as_json: bool, project: Project) -> None:
    """Remove a flag from flags.json, so that the next source or the default applies."""
    flag_named(name)
    if (project.home / FLAGS_FILE).exists():
        change_flag(project, name, None)
    _tell_flag(project, name, as_json)


def flag_facts(state: FlagState) -> dict[str, Any]:
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
    return format_value(value)


def _tell_flag(project: Project, name: str, as_json: bool) -> None:
    state = project.flags.snapshot()[flag_named(name).name]
    if as_json:
        document(flag_facts(state))
        return
    say(f"{state.flag.name} is {value_shown(state.value)} ({state.origin.source})")
    if state.origin.source not in ("flags", "default"):
        note(
            f"The value comes from {state.origin.place}, which takes precedence over {FLAGS_FILE}."
        )
