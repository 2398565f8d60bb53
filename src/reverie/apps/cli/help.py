"""`reverie help COMMAND` is `reverie COMMAND --help`."""

from __future__ import annotations

import click

from reverie.apps.cli.app import run


@click.command("help")
@click.argument("words", nargs=-1, metavar="[COMMAND…]", help="The command. Default: all of them.")
def help_(words: tuple[str, ...]) -> None:
    """Show the help of a command."""
    run([*words, "--help"])
