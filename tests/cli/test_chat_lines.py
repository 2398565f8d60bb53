"""Typing at a terminal: pasted text, new lines, history; a change shown before it is permitted."""

from __future__ import annotations

import json

import pytest

from reverie.testing import call, provider
from tests.cli.test_chat_terminal import terminal
from tests.cli.tmux import Terminal

pytestmark = [pytest.mark.spec("18.screen"), pytest.mark.needs("tmux")]
__all__ = ["terminal"]


def said(terminal: Terminal) -> list[str]:
    """What the person said in the only session there is."""
    (path,) = (terminal.folder.parent / "home" / "projects").glob("*/*.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines() if '"user"' in line]
    return [json.dumps(row, ensure_ascii=False) for row in rows]


def test_pasted_text_is_one_message_and_the_history_stays(terminal: Terminal) -> None:
    terminal.start("--plain")
    terminal.shows("new session")
    terminal.pastes("first line\n    second line\nthird line")
    terminal.shows("third line")
    terminal.presses("Enter")
    terminal.shows("tokens until")
    terminal._run("send-keys", "-l", "one")  # pyright: ignore[reportPrivateUsage]
    terminal.presses("M-Enter")
    terminal.types("two")
    terminal.shows("tokens until", 2)
    terminal.presses("C-d")
    assert terminal.is_over()
    text = "\n".join(said(terminal))
    assert r"first line\n    second line\nthird line" in text
    assert r"one\ntwo" in text
    terminal.start("--plain")
    terminal.shows("new session")
    terminal.presses("Up")
    terminal.shows("two")
    terminal.presses("Up")
    terminal.shows("    second line")
    terminal.presses("C-c")
    terminal.presses("C-d")
    assert terminal.is_over()


def test_a_change_is_shown_with_its_indentation_before_it_is_made(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = terminal.folder / "f.py"
    file.write_text("def f(x):\n    if x:\n        return 1\n")
    edit = {"old_string": "return 1", "new_string": "return 2"}
    course = [
        call("Read", file_path=str(file)),
        call("Edit", file_path=str(file), **edit),
        "It is changed.",
    ]
    with provider(course) as served:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", served.anthropic_url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
        _is_asked_and_changed(terminal)


def _is_asked_and_changed(terminal: Terminal) -> None:
    terminal.start("--plain", "--model", "claude-opus-5-5")
    terminal.shows("new session")
    terminal.types("Let f return 2, please")
    shown = terminal.shows("permission: ")
    shown = terminal.shows("y yes, n no")
    assert "  3 -         return 1" in shown
    assert "  3 +         return 2" in shown
    assert "(always: Edit of f.py, and of nothing else)" in shown
    terminal.types("y")
    terminal.shows("tokens until")
    assert "return 2" in (terminal.folder / "f.py").read_text()
    terminal.shows("you:", 2)
    terminal.presses("C-d")
    assert terminal.is_over()
