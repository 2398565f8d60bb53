"""The command line.

`main` is the program `reverie`. Importing this costs nothing: a command's module is
imported when the command is run.
"""

from __future__ import annotations


def main() -> None:
    """Run the command that the process was called with, and exit."""
    from reverie.apps.cli.app import run

    run()
