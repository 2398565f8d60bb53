"""What a person sees while a turn runs and while they type, without a terminal."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from reverie.apps.cli import (
    FILE,
    MOST,
    PATIENCE,
    PROMPT,
    AnswerScreen,
    ChatController,
    Keyboard,
    LineScreen,
    keyboard,
)
from reverie.session import ToolEnded, ToolStarted
from reverie.wire import Delta, ToolCall, tool_result
from reverie.world import Notice

pytestmark = pytest.mark.spec("18.screen")


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_terminal(
    monkeypatch: pytest.MonkeyPatch, keys: Keyboard | None = None
) -> tuple[LineScreen, Tty]:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    with redirect_stdout(Tty()) as out:
        return LineScreen(keys), out


def test_thinking_and_text_stand_apart(capsys: pytest.CaptureFixture[str]) -> None:
    screen = LineScreen()
    for event in (
        Delta("thinking", "\nWhere is "),
        Delta("thinking", "it?"),
        Delta("text", "It is "),
        Delta("text", "here."),
        Delta("thinking", "Really?"),
    ):
        screen.event(event)
    screen.line("")
    said = capsys.readouterr().out.splitlines()
    assert said[:3] == ["thinking: Where is it?", "assistant: It is here.", "thinking: Really?"]


def test_it_is_said_what_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, tty = on_terminal(monkeypatch)
    screen.idle(PATIENCE - 0.1)
    assert tty.getvalue() == ""
    screen.idle(PATIENCE)
    screen.idle(PATIENCE + 9)  # once is enough
    assert tty.getvalue() == "waiting for the model\n"
    call = ToolCall("t1", "Bash", '{"command":"make"}')
    screen.event(ToolStarted(call))
    screen.idle(PATIENCE)
    screen.event(ToolEnded(call, tool_result("t1", "done")))
    told = tty.getvalue().splitlines()[1:]
    assert told[0] == "waiting for Bash"
    assert told[1].startswith("tool Bash make: 1 line, ")
    assert told[1].endswith(" seconds")
    screen.event(Delta("text", "half a sen"))
    before = tty.getvalue()
    screen.idle(60.0)  # a line would stand in the middle of the text
    assert tty.getvalue() == before
    assert "\x1b" not in before
    assert "\r" not in before


def test_nothing_is_drawn_into_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    LineScreen().idle(60.0)
    assert capsys.readouterr().out == ""


class Typing(AnswerScreen):
    """A person at the prompt who sends the line once something was shown above it."""

    def __init__(self) -> None:
        self.at_prompt, self.shown = threading.Event(), threading.Event()
        self.seen: list[str] = []

    def notice(self, notice: Notice) -> None:
        self.seen.append(notice.text)

    def read(self) -> str:
        self.at_prompt.set()
        # In slices: a signal that comes just before a wait begins does not interrupt it, and its
        # handler runs when the wait ends. A person's next key ends it in the terminal.
        assert any(self.shown.wait(0.05) for _ in range(600))
        return "typed"

    def interject(self, show: Callable[[], None]) -> None:
        show()
        self.shown.set()


def test_a_notice_is_shown_while_a_person_types() -> None:
    screen = Typing()
    desk = ChatController(screen)

    def background() -> None:
        assert screen.at_prompt.wait(30)
        desk.say(Notice("dream", "tidied up"))

    worker = threading.Thread(target=background)
    with desk._signals():  # pyright: ignore[reportPrivateUsage]
        worker.start()
        assert desk.read() == "typed"
        worker.join()
    assert screen.seen == ["tidied up"]


def test_what_is_being_typed_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Keyboard, "buffer", "half a li")
    screen, tty = on_terminal(monkeypatch, Keyboard(None))
    screen.interject(lambda: screen.notice(Notice("dream", "tidied up")))
    assert tty.getvalue().startswith("\ndream: tidied up\n")
    assert tty.getvalue().endswith(f"\n{PROMPT}half a li")


# --- the keyboard


def types(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    given = iter(lines)
    monkeypatch.setattr("builtins.input", lambda prompt: next(given))


def test_a_backslash_begins_a_new_line(monkeypatch: pytest.MonkeyPatch) -> None:
    types(monkeypatch, " one\\", "  two\\", "three ")
    assert Keyboard(None).read(PROMPT) == "one\n  two\nthree"


def test_what_was_sent_comes_back_in_the_next_session(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir()
    screen = LineScreen(Keyboard(home))
    types(monkeypatch, "first", "", "two\\", "lines", "two\\", "lines")
    assert [screen.read() for _ in range(4)] == ["first", "", "two\nlines", "two\nlines"]
    file = home / FILE
    assert [json.loads(line) for line in file.read_text().splitlines()] == ["first", "two\nlines"]
    assert file.stat().st_mode & 0o777 == 0o600
    added: list[str] = []
    again = Keyboard(home)
    monkeypatch.setattr(again._readline, "add_history", added.append)  # pyright: ignore[reportPrivateUsage]
    again.remember("third")
    assert added == ["third"]
    assert keyboard._read_history(file) == ["first", "two\nlines", "third"]  # pyright: ignore[reportPrivateUsage]


def test_a_history_is_bounded_and_survives_damage(home: Path) -> None:
    home.mkdir()
    file = home / FILE
    rows = [json.dumps(f"message {n}") for n in range(2 * MOST + 1)]
    file.write_bytes(b"\n".join([b"{broken", b'{"a": 1}', b"\xff", *(r.encode() for r in rows)]))
    Keyboard(home)
    kept = [json.loads(line) for line in file.read_text().splitlines()]
    assert (len(kept), kept[-1]) == (MOST, f"message {2 * MOST}")
    assert [path.name for path in home.iterdir()] == [FILE]


def test_a_home_that_cannot_be_written_is_no_hindrance(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = LineScreen(Keyboard(Path("/dev/null/home")))
    types(monkeypatch, "hello")
    assert screen.read() == "hello"
