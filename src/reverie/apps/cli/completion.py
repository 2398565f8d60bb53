"""Completion for shells: the script that click makes, shown or put where the shell reads it.

Nothing of the person's is overwritten: a script goes into a file of its own, and a start-up file
gets one line that reads it, once.
"""

from __future__ import annotations

import os
from pathlib import Path

from click.shell_completion import get_completion_class

from reverie.apps.cli.app import build
from reverie.apps.cli.show import say
from reverie.errors import InvalidInput
from reverie.settings import environment

PROGRAM, VARIABLE = "reverie", "_REVERIE_COMPLETE"
PLACES = {  # the script's file, and the start-up file that is to read it
    "bash": (".bash_completions/reverie.sh", ".bashrc"),
    "zsh": (".zsh_completions/reverie.zsh", ".zshrc"),
    "fish": (".config/fish/completions/reverie.fish", ""),
}


def show(shell: str) -> None:
    """Print the script for a shell; without a name for the one in use."""
    print(_script(_named(shell)))


def install(shell: str) -> None:
    """Put the script where the shell finds it when it starts."""
    shell = _named(shell)
    place, start = PLACES[shell]
    home = Path(environment().get("HOME") or Path.home())
    script = home / place
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(_script(shell) + "\n", encoding="utf-8")
    if start:
        _read_by(home / start, f"source '{script}'")
    say(f"Completion for {shell} is in {script}; it works in the next shell you open.")


def _read_by(start: Path, line: str) -> None:
    before = start.read_text(encoding="utf-8") if start.exists() else ""
    if line not in before.splitlines():
        with start.open("a", encoding="utf-8") as file:
            file.write(("" if not before or before.endswith("\n") else "\n") + line + "\n")


def _named(shell: str) -> str:
    name = shell or os.path.basename(environment().get("SHELL", ""))
    if not name:
        raise InvalidInput("$SHELL does not name your shell", do=f"Name {', '.join(PLACES)}")
    if name not in PLACES:
        raise InvalidInput(
            "there is no completion for this shell", where=name, do=f"Name {', '.join(PLACES)}"
        )
    return name


def _script(shell: str) -> str:
    made = get_completion_class(shell)
    if made is None:
        raise InvalidInput("there is no completion for this shell", where=shell)
    return made(build(), {}, PROGRAM, VARIABLE).source()
