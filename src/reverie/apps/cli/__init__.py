"""The command line.

`main` is the program `reverie`. Importing this costs nothing: a command's module is
imported when the command is run.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command that the process was called with, and exit."""
    if sys.argv[1:] == ["hook"]:  # starts for every call of a client: without the other commands
        from reverie.apps.hook.before_call import hook

        sys.exit(hook())
    from reverie.apps.cli.app import run

    run()
