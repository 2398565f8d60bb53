"""A turn on the terminal, tool calls included.

A turn on the terminal: words as they stream, calls in a line each, questions in a box.

It is called in the main thread, and gives the terminal text; what came from others passes one
function first that leaves nothing a terminal would obey and nothing hidden.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from queue import Empty

from reverie.apps.tui.footer import CallLine, FooterStatus, apart, cut, wrap_lines
from reverie.apps.tui.markdown import MarkdownStream, render_markdown, terminal_text
from reverie.apps.tui.panels import Panel
from reverie.apps.tui.questions import ConfirmPanel, PermissionPanel, subject_of
from reverie.apps.tui.terminal import Terminal
from reverie.session.turn import ToolEnded, ToolStarted, TurnEvent
from reverie.text.safety import line
from reverie.toolbox.permissions import PermissionAnswer, Question
from reverie.wire.reply import Delta, Reply
from reverie.world import Notice, RetryNotice

LOOK = 0.25  # seconds between two looks at how things stand
CALLS = 200  # that can be opened again
OPENED = ("/calls", "/tasks", "/memory")  # commands that leave nothing behind
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
CODES = {"dim": "2", "bold": "1", "red": "31", "yellow": "33", "cyan": "36", "green": "32"}


class TerminalScreen:
    """What a person sees of a conversation, on one terminal."""

    asks = True
    plain = False

    def __init__(
        self,
        terminal: Terminal,
        remember: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.terminal = terminal
        self.aside = terminal.aside
        self._remember = remember
        self.calls: list[CallLine] = []
        self.watch: Callable[[], FooterStatus] | None = None
        self._colour = terminal.colour
        self._clock = clock
        self._stream = MarkdownStream()
        self._kind = ""  # of the text that streams
        self._running: dict[str, CallLine] = {}
        self._agents: Sequence[str] = ()
        self._ticks = 0
        self._apart = True  # the last line printed is empty
        self._after_call = False  # the last line printed is a call
        self.opens: Callable[[str], object] | None = None  # dialogs that open while a turn runs

    # --- a turn

    def event(self, event: TurnEvent) -> None:
        match event:
            case Delta("text" | "thinking", text):
                self._more(event.kind, text)
            case RetryNotice():
                wait = f"{event.wait:.0f}" if event.wait >= 1 else f"{event.wait:.1f}"
                told = f"try {event.attempt} failed, the next comes in {wait} s"
                self.line(f"{told}: {event.reason}", "yellow")
            case Reply():
                self._end_text()
            case ToolStarted():
                self._end_text()
                self._running[event.call.id] = CallLine.of(event.call, self._clock())
            case ToolEnded():
                self._finish_call(event)
            case _:
                pass
        self._draw()

    def _more(self, kind: str, text: str) -> None:
        if kind != self._kind:
            self._end_text()
            self._kind = kind
        for block in self._stream.add(text):
            self._block(block)

    def _end_text(self) -> None:
        rest = self._stream.end()
        if rest.strip():
            self._block(rest)
        self._kind = ""

    def _block(self, text: str) -> None:
        if self._after_call:
            self.terminal.print("\n")
        self._after_call = False
        self.terminal.print(f"{self._words(text)}\n\n")
        self._apart = True

    def _words(self, text: str) -> str:
        width = self.terminal.size[0]
        if self._kind == "thinking":
            rows = wrap_lines(terminal_text(f"(thinking) {text.strip()}"), width - 1)
            return "\n".join(self._style_text(row, "dim") for row in rows)
        return render_markdown(text, width - 1, colour=self._colour)

    def _finish_call(self, event: ToolEnded) -> None:
        now = self._clock()
        call = self._running.pop(event.call.id, None) or CallLine.of(event.call, now)
        call.end(event.text, event.is_error, now)
        self.calls = [*self.calls, call][-CALLS:]
        width = self.terminal.size[0]
        head = call.head(width, opened=call.failed)
        lines = [self._style_text(head, "red" if call.failed else "cyan")]
        if call.failed:
            lines += [self._style_text(row, "dim") for row in call.body(width)]
        self.terminal.print("\n".join(lines) + "\n")
        self._after_call, self._apart = True, False

    # --- what still changes

    def _draw(self) -> None:
        width, height = self.terminal.size
        rows: list[str] = []
        rest = self._stream.rest()
        if rest.strip():
            rows += [""] if self._after_call else []
            rows += self._words(rest).split("\n")[-max(1, height - 8) :]
        sign = SPINNER[self._ticks % len(SPINNER)]
        for call in self._running.values():
            left = f"{sign} {call.name} {call.given}"
            rows.append(apart(left, "  esc stops", width - 1))
        rows += [
            self._style_text(cut(f"  {terminal_text(text)}", width - 1), "dim")
            for text in self._agents
        ]
        if rows:
            rows.append("")
        self.terminal.show("\n".join(rows))

    def idle(self, seconds: float, agents: Sequence[str] = ()) -> None:
        del seconds
        self._agents = agents
        self._ticks += 1
        self._stands()
        if not self._stream.rest().strip() and not self._running:
            sign = SPINNER[self._ticks % len(SPINNER)]
            told = apart(f"{sign} waiting for the model", "  esc stops", self.terminal.size[0] - 1)
            self.terminal.show(self._style_text(told, "dim") + "\n")
            return
        self._draw()

    # --- lines

    def notice(self, notice: Notice) -> None:
        style = {"info": "dim", "warning": "yellow", "error": "red"}[notice.level]
        self.line(f"[{notice.layer}] {notice.text}", style)

    def line(self, text: str, style: str = "") -> None:
        width = self.terminal.size[0]
        rows = [
            row for one in terminal_text(text).split("\n") for row in wrap_lines(one, width - 1)
        ]
        self.terminal.print("\n".join(self._style_text(row, style) for row in rows) + "\n")
        self._apart = not text

    @property
    def width(self) -> int:
        return self.terminal.size[0]

    def gap(self) -> None:
        if not self._apart:
            self.terminal.print("\n")
        self._apart = True

    def _style_text(self, text: str, style: str) -> str:
        codes = ";".join(CODES[name] for name in style.split() if name in CODES)
        if not codes or not self._colour:
            return text
        return f"\x1b[{codes}m{text}\x1b[0m"

    # --- the person

    def read(self) -> str:
        """A message of the person's; EOFError or KeyboardInterrupt where they leave."""
        self._end_turn()
        while True:
            self._rest()
            self._stands()
            said = self.terminal.read(LOOK)
            if said is not None:
                self._echo(said)
                return said

    def refresh(self) -> None:
        """Draw a dialog anew, and how things stand below it."""
        self._stands()
        self.terminal.redraw()

    def _stands(self) -> None:
        if self.watch is not None:
            self.terminal.stands(self.watch())

    def _end_turn(self) -> None:
        self._end_text()
        self._running.clear()
        self._agents = ()
        self._rest()

    def _rest(self) -> None:
        """Nothing changes above the input; what was printed last stands apart from it."""
        self.terminal.show("" if self._apart else " ")

    def _echo(self, said: str) -> None:
        if said in OPENED:
            return
        width = self.terminal.size[0]
        rows = [
            row for one in terminal_text(said).split("\n") for row in wrap_lines(one, width - 3)
        ]
        self.gap()
        first, *more = rows
        told = "\n".join([f"› {first}", *(f"  {row}" for row in more)])
        self.terminal.print(f"{told}\n\n")
        self._apart = True
        if not said.startswith("/"):
            self._remember(said)

    def typed(self) -> str | None:
        """A message that was sent while a turn runs."""
        try:
            said = self.terminal.read(0)
        except EOFError:
            return None
        if said is None:
            return None
        if said in OPENED:
            if self.opens is not None:
                self.opens(said)
            return None
        self.line(f"(joins at the next tool boundary: {line(said, 60)})", "dim")
        return said

    def interject(self, show: Callable[[], None]) -> None:
        show()

    # --- questions

    def ask(self, question: Question) -> PermissionAnswer:
        self._end_text()
        self.terminal.show("")
        began = self._clock()
        answer = self._wait_for_answer(PermissionPanel(question))
        for call in self._running.values():  # the person's time is not the call's
            call.began += self._clock() - began if call.name == question.tool else 0.0
        kept = {"session": " for this session", "project": " always in this project"}
        told = f"yes{kept.get(answer.remember, '')}" if answer.allow else "no"
        why = f": {answer.words}" if answer.words else ""
        subject = line(subject_of(question), 200)
        mark = cut(f"  {question.tool} {subject}", max(8, self.terminal.size[0] - 30))
        self.line(f"{mark} · {told}{why}", "dim" if answer.allow else "yellow")
        return answer

    def _wait_for_answer(self, panel: PermissionPanel) -> PermissionAnswer:
        with self.holding(panel):
            while not self.terminal.is_gone:
                self._stands()
                with suppress(Empty):
                    return panel.answers.get(timeout=LOOK)
        return PermissionAnswer(False, reason="the terminal was closed")

    def confirm(self, question: str) -> bool | str:
        """Yes, no, or nothing where the person wants to be asked later."""
        panel = ConfirmPanel(question)
        try:
            with self.holding(panel):
                while not self.terminal.is_gone:
                    with suppress(Empty):
                        return panel.answers.get(timeout=LOOK)
        except KeyboardInterrupt:
            return ""
        return ""

    @contextmanager
    def holding(self, panel: Panel) -> Generator[None]:
        """Give a panel the keys for a while."""
        self.terminal.ask(panel)
        try:
            yield
        finally:
            self.terminal.ask(None)
