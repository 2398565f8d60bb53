"""`reverie doctor`: what this installation has, what is wrong with it, what it lacks.

Exit code 1 means that something is wrong; something that is merely not there is a note.
"""

from __future__ import annotations

from dataclasses import asdict

import click

from reverie.apps.cli.options import json_option, project_option
from reverie.apps.cli.show import Column, document, say, table, waiting
from reverie.store.project import Project
from reverie.text.counts import plural
from reverie.upkeep.doctor import Check, Examination

_HINTS = {
    "rights": "`reverie doctor --fix`",
    "temporary": "`reverie doctor --fix`",
    "settings": "`reverie config path` lists the files; `reverie trust` looks at a local one",
}


@click.command()
@click.option("--fix", is_flag=True, help="Fix file permissions and remove leftover files.")
@click.option("--trial", is_flag=True, help="Ask the model one word; may cost a little.")
@json_option
@project_option
def doctor(fix: bool, trial: bool, as_json: bool, project: Project) -> None:
    """Check this installation and fix what can be fixed."""
    with waiting("looking at everything"):
        checks = list(Examination(project, fix, trial).checks())
    wrong = sum(check.state == "problem" for check in checks)
    if as_json:
        where = {"home": str(project.home), "root": str(project.root)}
        document({"ok": not wrong, **where, "checks": [asdict(check) for check in checks]})
    else:
        columns = (Column(""), Column("check", style="bold"), Column("what", wraps=True))
        table(columns, [_row(check) for check in checks])
        say(f"{plural(wrong, 'problem')} found." if wrong else "No problems found.")
        if not trial:
            say("`--trial` asks the model one word: key, network and model in one go.", "dim")
    if wrong:
        raise click.exceptions.Exit(1)


def _row(check: Check) -> list[str]:
    do = _HINTS.get(check.name, check.do) if check.do and check.state != "ok" else ""
    return [check.state, check.name, f"{check.what} → {do}" if do else check.what]
