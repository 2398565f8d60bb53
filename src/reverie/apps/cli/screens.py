"""What is shown of a turn: to a person at a terminal, or to a program in a pipe.

Text of a model or a tool is cleaned of everything a terminal would obey. `AnswerScreen` gives
the answer alone, `LineScreen` a line an event, `JsonScreen` one JSON object a line.
Notices go to stderr. A pipe is never asked anything.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from reverie.apps.cli.output import console, inert, note
from reverie.apps.tui.footer import CallLine
from reverie.session.turn import ToolEnded, ToolStarted, TurnEvent, event_object
from reverie.text.safety import clean, line
from reverie.toolbox.permission_rules import PromptRow, asked_for, read_answer
from reverie.toolbox.permissions import PermissionAnswer, Question, reach
from reverie.transcript.blocks import dump
from reverie.wire.reply import Delta, Reply
from reverie.world import Notice, RetryNotice

if TYPE_CHECKING:
    from rich.console import Console

    from reverie.apps.cli.keyboard import Keyboard
    from reverie.apps.tui.footer import FooterStatus

PROMPT = "you: "
SHOWN_ROWS = 24  # of what permission is asked for; the rest on demand
SHOWN = 2_000  # characters of such a row
PATIENCE = 5.0  # seconds without a word until it is said what is being waited for
_CHOICES = "y yes, n no"
_WHOLE = ", d show all of it"
_LASTING = ", s always in this session, p always in this project"
WHO = {"text": "assistant", "thinking": "thinking"}
NEWLINE = "\n"


class AnswerScreen:
    """The answer alone, once it is whole; for `-p`."""

    asks = False

    def event(self, event: TurnEvent) -> None:
        if isinstance(event, RetryNotice):
            note(_retrying(event))

    def notice(self, notice: Notice) -> None:
        if notice.level != "info":
            note(f"reverie: {notice.layer}: {notice.text}")

    def ask(self, question: Question) -> PermissionAnswer:
        del question
        return PermissionAnswer(False, reason="nobody can be asked")

    def typed(self) -> str | None:
        return None

    def idle(self, seconds: float, agents: Sequence[str] = ()) -> None:
        del seconds, agents

    def read(self) -> str:
        raise EOFError

    def interject(self, show: Callable[[], None]) -> None:
        show()


class JsonScreen(AnswerScreen):
    """Every event as one JSON object a line."""

    def event(self, event: TurnEvent) -> None:
        self._line(event_object(event))

    def notice(self, notice: Notice) -> None:
        value = {"layer": notice.layer, "level": notice.level, "text": notice.text}
        self._line({"type": "notice", **value})

    def _line(self, value: object) -> None:
        sys.stdout.write(inert(dump(value)) + "\n")
        sys.stdout.flush()


class LineScreen:
    """A person who reads line by line: one line an event, words for signs, nothing moves."""

    asks = True
    plain = True

    def __init__(
        self, keyboard: Keyboard | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.watch: Callable[[], FooterStatus] | None = None
        self.aside = nullcontext[None]
        self._console: Console = console()
        self._keyboard = keyboard
        self._clock = clock
        self._open = ""  # the kind of text that the cursor stands behind
        self._said = ""  # what was last said to be waited for
        self._running: dict[str, CallLine] = {}
        self._agents: list[str] = []  # as last told

    def event(self, event: TurnEvent) -> None:
        self._said = ""
        match event:
            case Delta("text", text):
                self._write("text", text)
            case Delta("thinking", text):
                self._write("thinking", text, "dim italic")
            case RetryNotice():
                self.line(_retrying(event), "yellow")
            case Reply():
                self._end()
            case ToolStarted():
                self._running[event.call.id] = CallLine.of(event.call, self._clock())
            case ToolEnded():
                self._tool(event)
            case _:
                pass

    def _tool(self, event: ToolEnded) -> None:
        now = self._clock()
        call = self._running.pop(event.call.id, None) or CallLine.of(event.call, now)
        call.end(event.text, event.is_error, now)
        first = f": {line(call.text.partition(NEWLINE)[0], 150)}" if call.failed else ""
        told = f"tool {call.name} {call.given}: {call.outcome}{first}, {call.seconds:.1f} seconds"
        self.line(told, "red" if call.failed else "dim")

    def notice(self, notice: Notice) -> None:
        style = {"info": "dim", "warning": "yellow", "error": "red"}[notice.level]
        self.line(f"{notice.layer}: {notice.text}", style)

    def idle(self, seconds: float, agents: Sequence[str] = ()) -> None:
        """Say once what is being waited for, and what each agent does when that changes."""
        if seconds < PATIENCE or self._open or not self._console.is_terminal:
            return
        doing = [text.partition(" · ")[0] for text in agents]
        for text in doing:
            if text not in self._agents:
                self.line(f"agent {line(text, 150)}", "dim")
        self._agents = doing
        awaited = next((call.name for call in self._running.values()), "the model")
        if awaited != self._said:
            self.line(f"waiting for {awaited}", "dim")
            self._said = awaited

    def read(self) -> str:
        """A message of the person's; EOFError or KeyboardInterrupt where they leave."""
        self._end()
        if self._keyboard is None:
            return input(PROMPT).strip()
        try:
            text = self._keyboard.read(PROMPT)
        except KeyboardInterrupt:
            self._console.print()
            raise
        if text:
            self._keyboard.remember(text)
        return text

    def interject(self, show: Callable[[], None]) -> None:
        """Show something on lines of its own; the line that is being typed comes again."""
        self._console.file.write("\n")
        show()
        typed = self._keyboard.buffer if self._keyboard else ""
        self._console.file.write(PROMPT + clean(typed))
        self._console.file.flush()

    def line(self, text: str, style: str = "") -> None:
        """A line of its own."""
        self._end()
        self._console.print(clean(text), style=self._style(style))

    @property
    def width(self) -> int:
        return self._console.width

    def _style(self, style: str) -> str | None:
        return None if self._console.no_color else style or None

    def gap(self) -> None:
        """Lines of one event each need none."""

    def ask(self, question: Question) -> PermissionAnswer:
        self.line(f"permission: {question.tool}, {question.reason}", "bold yellow")
        rows = asked_for(question)
        cut = self._show_first(rows)
        rule = question.rule
        if rule is not None:
            first = rule.pattern.split()[0] if question.runs and rule.pattern else ""
            more = f"; `p {first} *` would cover all that begins so" if first else ""
            self.line(f"  (always: {reach(rule, runs=question.runs)}{more})", "dim")
        choices = _CHOICES + (_WHOLE if cut else "") + (_LASTING if rule is not None else "")
        while True:
            try:
                said = self._answer(f"{choices}: ")
            except EOFError:
                return PermissionAnswer(False)
            if said == "d":
                self._show_all(rows)
                continue
            answer = read_answer(said, question)
            if answer is not None and self._is_meant(answer, question):
                return answer

    def _is_meant(self, answer: PermissionAnswer, question: Question) -> bool:
        """Say what is kept; a rule of the person's own needs a second word."""
        rule = answer.rule or question.rule
        if answer.remember == "no" or rule is None:
            return True
        told = f"{rule} in this {answer.remember}: {reach(rule, runs=question.runs)}"
        if answer.rule is None:
            self.line(f"  (always: {told})", "dim")
            return True
        self.line(f"Always allow {told}", "yellow")
        try:
            return self._answer("y yes, n no: ").lower() in ("y", "yes")
        except EOFError:
            return False

    def confirm(self, question: str) -> bool | str:
        """A question that may wait: where the person says neither yes nor no, what they say."""
        self.line(question, "bold yellow")
        try:
            said = self._answer("y yes, n no and never ask again, enter later: ")
        except (EOFError, KeyboardInterrupt):
            return ""
        return {"y": True, "yes": True, "n": False, "no": False}.get(said.lower(), said)

    def _answer(self, prompt: str) -> str:
        try:
            return input(prompt).strip()
        except KeyboardInterrupt:
            self._console.print()  # the cursor stands in the question
            raise

    def _show_first(self, rows: list[PromptRow]) -> bool:
        """The beginning of what is asked for; says whether there is more."""
        cut = len(rows) > SHOWN_ROWS
        for row in rows[:SHOWN_ROWS]:
            self._row(row.text[:SHOWN], row.style)
            if len(row.text) > SHOWN:
                cut = True
                self.line(f"  [{len(row.text) - SHOWN:,} more characters]", "dim")
        if len(rows) > SHOWN_ROWS:
            self.line(f"  [{len(rows) - SHOWN_ROWS:,} more lines]", "dim")
        return cut

    def _show_all(self, rows: list[PromptRow]) -> None:
        if len(rows) < self._console.height - 2:
            for row in rows:
                self._row(row.text, row.style)
            return
        import click

        click.echo_via_pager("\n".join(row.text for row in rows))

    def _row(self, text: str, style: str) -> None:
        from rich.text import Text

        shown = Text(f"  {text}", style=self._style(style) or "")
        self._console.print(shown, soft_wrap=True)

    def typed(self) -> str | None:
        """A whole line, if one was typed: the terminal hands out nothing less."""
        if not sys.stdin.isatty() or not select.select([sys.stdin], [], [], 0)[0]:
            return None
        said = os.read(sys.stdin.fileno(), 65_536).decode("utf-8", "replace")
        if said.strip():
            self.line(f"(joins at the next tool boundary: {line(said, 60)})", "dim")
        return said

    def _write(self, kind: str, text: str, style: str = "") -> None:
        if self._open != kind:
            self._end()
            text = f"{WHO[kind]}: {text.lstrip()}"
        self._console.print(clean(text), style=self._style(style), end="", soft_wrap=True)
        self._open = kind
        self._console.file.flush()

    def _end(self) -> None:
        if self._open:
            self._console.print()
        self._open = ""


def _retrying(event: RetryNotice) -> str:
    wait = f"{event.wait:.0f}" if event.wait >= 1 else f"{event.wait:.1f}"
    return f"try {event.attempt} failed, the next comes in {wait} s: {event.reason}"
