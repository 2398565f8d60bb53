"""The options that many commands take, and the order in which a group lists its commands."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from reverie.store.project import Project

HOST = "127.0.0.1"
_Function = TypeVar("_Function", bound=Callable[..., Any])


class CommandGroup(click.Group):
    """Commands in the order in which they were written down, not by the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.commands)


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document on stdout."
)
folder_option = partial(
    click.option,
    "--project",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    metavar="PATH",
    help="A folder in the project.",
)


def project_around(context: click.Context, parameter: click.Parameter, folder: Path) -> Project:
    """Return the project around the folder that was given."""
    from reverie.store.project import Project

    del context, parameter
    return Project.at(folder)


project_option = folder_option(callback=project_around)
model_option = click.option("--model", default="", metavar="M", help="The model to use.")
session_files = click.argument(
    "files",
    nargs=-1,
    required=True,
    metavar="FILE…",
    help="Session files, folders of them, or session ids.",
)


def port_option(
    default: int, about: str = "0 picks a free port.", *, least: int = 0
) -> Callable[[_Function], _Function]:
    """Where a server listens."""
    return click.option(
        "--port",
        type=click.IntRange(least, 65535),
        metavar="N",
        default=default,
        show_default=True,
        help=about,
    )


def sessions_like(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """For the shell: the sessions whose ids begin like that."""
    from reverie.session.library import Library
    from reverie.store.project import Project

    del parameter
    given = context.params.get("project") or Path()
    library = Library.find(given if isinstance(given, Project) else Project.at(given))
    found = library.sessions() if library else []
    return [file.id for file in found if file.id.startswith(incomplete)]
