"""`reverie config`: every setting, its value, and who gave it.

`set` and `unset` change `<home>/settings.json` and nothing else; a running process keeps what it
began with.
"""

from __future__ import annotations

from typing import Any

import click

from reverie.apps.cli.options import CommandGroup, json_option, project_option
from reverie.apps.cli.show import Column, document, hand_down, note, say, table
from reverie.settings import DEFAULTS, SETTINGS, Loaded, Problem, camel, variable
from reverie.settings.sources import settings_files
from reverie.store.project import Project
from reverie.text.counts import plural
from reverie.upkeep.configure import SETTINGS_FILE, change_setting, setting_named

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
    rows = [described(loaded, name) for name in SETTINGS]
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
    table(columns, [[shown(row[key]) for key in keys] for row in rows])
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
    say(shown(row["value"]))


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


def _one(loaded: Loaded, field: str) -> dict[str, Any]:
    spelt = (field, camel(field), variable(field))
    problems = [problem.value() for problem in loaded.problems if problem.key in spelt]
    return {**described(loaded, field), "problems": problems}


def _tell(project: Project, field: str, as_json: bool) -> None:
    row = _one(project.load(), field)
    if as_json:
        document(row)
        return
    say(f"{row['key']} is {shown(row['value'])} ({row['source']})")
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
    table(columns, [[shown(row[key]) for key in keys] for row in rows])
    for row in rows:
        for reason in row["problems"]:
            note(f"{row['path']}: {reason}")


def described(loaded: Loaded, name: str) -> dict[str, Any]:
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


def shown(value: object) -> str:
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
