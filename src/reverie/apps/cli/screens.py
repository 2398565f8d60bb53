"""What is shown of a turn: to a person at a terminal, or to a program in a pipe.

Text of a model or a tool is cleaned of everything a terminal would obey. `Printed` gives
the answer alone, `LineScreen` everything as it comes, `Streamed` one JSON object a line.
Notices go to stderr. A pipe is never asked anything.
"""

from __future__ import annotations

import os
import select
import sys
from typing import TYPE_CHECKING

from reverie.apps.cli.show import clean, console, inert, line, note
from reverie.session.turn import ToolEnded, ToolStarted, TurnEvent, told
from reverie.tools import PermissionAnswer, Question
from reverie.transcript.blocks import dump
from reverie.world import Delta, Notice, Reply, Retrying

if TYPE_CHECKING:
    from rich.console import Console

SHOWN = 4_000  # characters of what permission is asked for
PREVIEW = 8  # lines of an input shown beside it
_CHOICES = "[y]es  [n]o"
_LASTING = "  [s] always in this session  [p] always in this project"


class Printed:
    """The answer alone, once it is whole; for `-p`."""

    asks = False

    def event(self, event: TurnEvent) -> None:
        if isinstance(event, Retrying):
            note(_retrying(event))

    def notice(self, notice: Notice) -> None:
        if notice.level != "info":
            note(f"reverie: {notice.layer}: {notice.text}")

    def ask(self, question: Question) -> PermissionAnswer:
        del question
        return PermissionAnswer(False, reason="nobody can be asked")

    def typed(self) -> str | None:
        return None


class Streamed(Printed):
    """Every event as one JSON object a line."""

    def event(self, event: TurnEvent) -> None:
        self._line(told(event))

    def notice(self, notice: Notice) -> None:
        value = {"layer": notice.layer, "level": notice.level, "text": notice.text}
        self._line({"type": "notice", **value})

    def _line(self, value: object) -> None:
        sys.stdout.write(inert(dump(value)) + "\n")
        sys.stdout.flush()


class LineScreen:
    """A person at a terminal: text as it comes, calls and results in a line each."""

    asks = True

    def __init__(self) -> None:
        self._console: Console = console()
        self._open = False  # whether the cursor stands behind text

    def event(self, event: TurnEvent) -> None:
        match event:
            case Delta("text", text):
                self._write(text)
            case Delta("thinking", text):
                self._write(text, "dim italic")
            case Retrying():
                self.line(_retrying(event), "yellow")
            case Reply():
                self._end()
            case ToolStarted():
                self.line(f"● {event.call.name} {line(event.call.input, 150)}", "cyan")
            case ToolEnded():
                text = event.text.strip()
                more = text.count("\n")
                first = line(text.partition("\n")[0], 150)
                tail = f" (+{more:,} lines)" if more else ""
                self.line(f"  ⎿ {first}{tail}", "red" if event.is_error else "dim")
            case _:
                pass

    def notice(self, notice: Notice) -> None:
        style = {"info": "dim", "warning": "yellow", "error": "red"}[notice.level]
        self.line(f"[{notice.layer}] {notice.text}", style)

    def line(self, text: str, style: str = "") -> None:
        """A line of its own."""
        self._end()
        self._console.print(clean(text), style=style or None)

    def ask(self, question: Question) -> PermissionAnswer:
        self._end()
        self.line(f"{question.tool} needs your permission: {question.reason}", "bold yellow")
        for row in described(question):
            self.line(f"  {row}")
        lasting = question.rule is not None
        choices = _CHOICES + (_LASTING if lasting else "")
        while True:
            try:
                said = input(f"{choices}: ").strip()
            except EOFError:
                return PermissionAnswer(False)
            answer = read_answer(said, lasting)
            if answer is not None:
                return answer

    def typed(self) -> str | None:
        """A whole line, if one was typed: the terminal hands out nothing less."""
        if not sys.stdin.isatty() or not select.select([sys.stdin], [], [], 0)[0]:
            return None
        said = os.read(sys.stdin.fileno(), 65_536).decode("utf-8", "replace")
        if said.strip():
            self.line(f"(joins at the next tool boundary: {line(said, 60)})", "dim")
        return said

    def _write(self, text: str, style: str = "") -> None:
        self._console.print(clean(text), style=style or None, end="", soft_wrap=True)
        self._open = True
        self._console.file.flush()

    def _end(self) -> None:
        if self._open:
            self._console.print()
        self._open = False


def read_answer(said: str, lasting: bool) -> PermissionAnswer | None:
    """What a person meant; None where that is not clear. Words behind a yes or a no are the
    person's own, for the model."""
    choice, _, words = said.partition(" ")
    words = words.strip()
    match choice.lower().rstrip(",.;:"):
        case "y" | "yes":
            return PermissionAnswer(True, words=words)
        case "n" | "no":
            return PermissionAnswer(False, words=words)
        case "s" | "session" if lasting:
            return PermissionAnswer(True, "session")
        case "p" | "project" if lasting:
            return PermissionAnswer(True, "project")
        case _:
            return None


def described(question: Question) -> list[str]:
    """What permission is asked for: the path or command whole, the rest of the input short."""
    subject = question.subject
    rows = subject[:SHOWN].splitlines() or [""]
    if len(subject) > SHOWN:
        rows.append(f"[{len(subject) - SHOWN:,} more characters]")
    for key, value in (question.input or {}).items():
        text = value if isinstance(value, str) else dump(value)
        if text == subject or (key.endswith("path") and subject.endswith(text)):
            continue
        lines = text.splitlines()
        shown = [line(row, 160) for row in lines[:PREVIEW]]
        rest = [f"[+{len(lines) - PREVIEW:,} lines]"] if len(lines) > PREVIEW else []
        rows += [f"{key}: {row}" for row in (*shown, *rest)]
    return rows


def _retrying(event: Retrying) -> str:
    return f"try {event.attempt} failed ({event.reason}); the next in {event.wait:.0f} s"
