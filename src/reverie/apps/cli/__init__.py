"""The command line.

`main` is the program `reverie`. Importing this costs nothing: a command's module is
imported when the command is run.
"""

from __future__ import annotations

import sys

from reverie.lazy import offered


def main() -> None:
    """Run the command that the process was called with, and exit."""
    if sys.argv[1:] == ["hook"]:  # starts for every call of a client: without the other commands
        from reverie.apps.hook.before_call import hook

        sys.exit(hook())
    from reverie.apps.cli.app import run

    run()


__getattr__ = offered(
    __name__,
    {
        "app": "CHAT_OPTIONS COMMANDS LazyCommand build load",
        "chat": "EFFORTS THINKING",
        "commands": "Leave SlashCommand SlashCommands Switch parted picked standard",
        "context": "filling",
        "desk": "Cancelled Desk",
        "dialogs": "Dialogs",
        "interactive": "InteractiveSession status",
        "keyboard": "FILE Keyboard MOST",
        "mcp": "token_to_ask_for",
        "memory_open": "open_memory",
        "outside": "ask_for_files",
        "screens": "LineScreen PATIENCE PROMPT Printed SHOWN SHOWN_ROWS",
        "show": "clean encoded inert line",
        "stats": "sparkline",
        "team": "scan",
        "trust": "local_file offer",
    },
)
