"""`reverie chat` at a terminal: a person types, is asked, cancels, comes back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.tmux import Terminal, wait_for
from tests.loop.stage import alive

pytestmark = [pytest.mark.spec("18.terminal"), pytest.mark.needs("tmux")]


@pytest.fixture
def terminal(welcomed: Path) -> Iterator[Terminal]:
    window = Terminal(welcomed, f"reverie-{os.getpid()}-{welcomed.parent.name}")
    yield window
    window.close()


def test_a_conversation_with_tools_permission_cancel_and_resume(terminal: Terminal) -> None:
    marker = f"1000.{os.getpid()}5"
    terminal.start("--plain")
    terminal.shows("new session")
    terminal.types("read notes.txt")
    terminal.shows("tool Read notes.txt")
    terminal.shows("tokens until")

    terminal.types("run touch made.txt")  # a permission prompt: no, then yes
    terminal.shows("permission: Bash")
    terminal.types("n not now")
    terminal.shows("in the words below")
    assert not (terminal.folder / "made.txt").exists()
    terminal.shows("tokens until", 2)
    terminal.types("run touch made.txt")
    terminal.shows("permission: Bash", 2)
    terminal.types("maybe")  # not an answer: asked again
    terminal.shows("y yes, n no", 3)
    terminal.types("s")
    terminal.shows("tokens until", 3)
    assert (terminal.folder / "made.txt").exists()
    (terminal.folder / "made.txt").unlink()
    terminal.types("run touch made.txt")  # remembered for the session
    terminal.shows("tokens until", 4)
    assert (terminal.folder / "made.txt").exists()

    terminal.types(f"run sleep {marker}")  # cancel ends the turn, not the program
    terminal.shows("permission: Bash", 3)
    terminal.types("y")
    wait_for(lambda: alive(f"sleep {marker}"), "the command did not start")
    terminal.presses("C-c")
    terminal.shows("(cancelled)")
    wait_for(lambda: not alive(f"sleep {marker}"), "the command went on")

    terminal.types("/context")
    terminal.shows("tool results")
    terminal.types("/nothing")
    terminal.shows("There is no such command")
    terminal.types("/undo")
    terminal.shows("Taken back: run sleep")
    terminal.presses("C-c")
    terminal.shows("Ctrl-C again")
    terminal.presses("C-c")
    assert terminal.is_over()

    terminal.start("--plain", "--continue")
    terminal.shows("so far: read notes.txt")
    terminal.types("what did I ask first?")
    terminal.shows("read notes.txt", 2)
    terminal.types("/clear")
    terminal.shows("new session")
    terminal.types("/resume")
    terminal.shows("/resume ID goes on with one")
    terminal.types("/quit")
    assert terminal.is_over()


def test_cancelling_a_permission_prompt_ends_the_turn(terminal: Terminal) -> None:
    terminal.start("--plain")
    terminal.shows("new session")
    terminal.types("run touch made.txt")
    terminal.shows("y yes, n no")
    terminal.presses("C-c")
    terminal.shows("(cancelled)")
    assert not (terminal.folder / "made.txt").exists()
    terminal.types("run touch made.txt")
    terminal.shows("y yes, n no", 2)
    terminal.types("p")
    terminal.shows("tokens until", 2)
    assert (
        "Bash(touch made.txt)" in (terminal.folder / ".reverie" / "settings.local.json").read_text()
    )
    terminal.presses("C-d")
    assert terminal.is_over()


def test_what_is_typed_during_a_turn_joins_it(terminal: Terminal) -> None:
    terminal.start("--plain", "--permission-mode", "allow")
    terminal.shows("new session")
    terminal.types("run while ! test -e go; do sleep 0.05; done")
    terminal.shows("waiting for Bash")
    terminal.types("and one more thing")
    terminal.shows("joins at the next tool boundary")
    (terminal.folder / "go").touch()
    terminal.shows("tokens until")
    home = terminal.folder.parent / "home"
    (path,) = (home / "projects").glob("*/*.jsonl")
    assert '"text":"and one more thing' in path.read_text()
    terminal.types("/quit")
    assert terminal.is_over()
