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
        "chat": "EFFORTS THINKING ask_for_files",
        "controller": "ChatController TurnCancelled",
        "interactive": "Dialogs InteractiveSession status",
        "keyboard": "FILE Keyboard MOST",
        "output": "inert json_text",
        "recall": "open_memory",
        "screens": "AnswerScreen LineScreen PATIENCE PROMPT SHOWN SHOWN_ROWS",
        "servers": "token_to_ask_for",
        "slash_commands": "ExitChat SlashCommand SlashCommands SwitchSession filling find_items "
        "parse_pivot standard",
        "stats": "sparkline",
        "team": "scan",
        "trust": "local_file offer",
    },
)
