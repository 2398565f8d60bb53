"""The options that many commands take, and the order in which a group lists its commands."""

from __future__ import annotations

from pathlib import Path

import click


class CommandGroup(click.Group):
    """Commands in the order in which they were written down, not by the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.commands)


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document on stdout."
)
project_option = click.option(
    "--project",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    metavar="PATH",
    help="A folder in the project.",
)
model_option = click.option("--model", default="", metavar="M", help="The model to use.")


def sessions_like(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """For the shell: the sessions whose ids begin like that."""
    from reverie.upkeep.place import ProjectPlace

    del parameter
    library = ProjectPlace.of(context.params.get("project") or Path()).library()
    found = library.sessions() if library else []
    return [file.id for file in found if file.id.startswith(incomplete)]
