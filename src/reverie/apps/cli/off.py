"""`reverie off` and `reverie on`: nothing of it runs in this project, or everything again."""

from __future__ import annotations

import click

from reverie.apps.cli.options import json_option, project_option
from reverie.apps.cli.show import document, note, say
from reverie.store.project import Project
from reverie.upkeep.switch import switch


@click.command()
@json_option
@project_option
def off(as_json: bool, project: Project) -> None:
    """Switch memory, notes, learning, dreams and hooks off for this project.

    What is stored stays, and commands such as `reverie memory` still work. The agent answers as
    with --bare; proxy and plugin bring no memories and learn nothing.
    """
    _switched(project, as_json, on=False)


@click.command()
@json_option
@project_option
def on(as_json: bool, project: Project) -> None:
    """Switch on again what `reverie off` switched off."""
    _switched(project, as_json, on=True)


def _switched(project: Project, as_json: bool, *, on: bool) -> None:
    now = switch(project, on=on)
    if as_json:
        document({"on": now.on, "root": str(project.root), "where": now.where})
        return
    say(f"Reverie is {'on' if now.on else 'off'} in {project.root}")
    if now.on is not on:
        note(f"reverie: {now.where} says so, and takes precedence")
    elif not on:
        say("What is stored stays; `reverie on` switches it on again.")
