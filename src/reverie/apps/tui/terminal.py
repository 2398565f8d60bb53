"""The terminal: an input and a footer at the bottom, everything else above it in the scroll-back.

It runs in a thread of its own, so that the input is there before anything else is loaded and
stays while work goes on. What is printed is written once and never again; what still changes
(the last block, a question) stands between it and the input. Ctrl-C goes to the main thread as
the signal it would be anywhere else. Nothing here decides what a line or a key means.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, Filter
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.output import ColorDepth, create_output

from reverie.apps.tui.footer import TINY, FooterStatus, footer_line, text_for_encoding
from reverie.apps.tui.panels import STYLE, CompletionMenu, Offer, Panel, completion_lines, nothing
from reverie.text.safety import line

PROMPT = "› "
INPUT_ROWS = 10
ESCAPE = 0.05  # seconds in which what follows an escape belongs to it


class Terminal:
    """One terminal, from the first drawing until `close`."""

    def __init__(self, *, colour: bool = True) -> None:
        self.offers: Callable[[str], Iterable[Offer]] = nothing
        self.status = FooterStatus()
        self._encoding = sys.stdout.encoding or "utf-8"
        self.colour = colour
        self._said: SimpleQueue[str | None] = SimpleQueue()
        self._waiting: list[str] = []  # to be printed
        self._live = ""
        self._panel: Panel | None = None
        self._drawn = threading.Event()
        self._over = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._history = InMemoryHistory()
        self._buffer = Buffer(
            completer=CompletionMenu(self._offers),
            history=self._history,
            multiline=True,
            complete_while_typing=Condition(lambda: self._buffer.text.startswith("/")),
        )
        self._app = self._build_app()
        self._thread = threading.Thread(target=self._run, name="terminal", daemon=True)

    def _offers(self, text: str) -> Iterable[Offer]:
        return self.offers(text)  # which may be given later

    # --- for the main thread

    def __enter__(self) -> Terminal:
        """Draw the input, and come back once it is there."""
        self._thread.start()
        self._drawn.wait()
        return self

    def __exit__(self, *_: object) -> None:
        """Take the input away; what was printed stays."""
        self._soon(self._leave)
        self._over.wait()
        self._thread.join()
        self._write_rest()

    def print(self, text: str) -> None:
        """Lines for the scroll-back; they may have colours of ours."""
        self._waiting.append(text_for_encoding(text, self._encoding))
        self._soon(self._print)

    def show(self, live: str) -> None:
        """What stands above the input and still changes."""
        self._live = text_for_encoding(live, self._encoding)
        self._soon(self._app.invalidate)

    def stands(self, status: FooterStatus) -> None:
        if status != self.status:
            self.status = status
            self._soon(self._app.invalidate)

    def read(self, seconds: float) -> str | None:
        """What the person sent; None where nothing came in so long. EOFError where they left."""
        try:
            said = self._said.get(timeout=seconds) if seconds else self._said.get_nowait()
        except Empty:
            return None
        if said is None:
            self._said.put(None)
            raise EOFError
        return said

    def remember(self, messages: Iterable[str]) -> None:
        """What was sent in earlier sessions, oldest first."""
        kept = list(messages)

        def load() -> None:
            for message in kept:
                self._history.append_string(message)
            self._buffer.reset(self._buffer.document)

        self._soon(load)

    def ask(self, panel: Panel | None) -> None:
        """Give the keys to a panel, or back to the input."""
        self._soon(lambda: self._give_keys(panel))

    @property
    def is_gone(self) -> bool:
        """Whether nobody can read or type here any more."""
        return self._over.is_set()

    def redraw(self) -> None:
        self._soon(self._app.invalidate)

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        try:
            found = os.get_terminal_size(sys.stdout.fileno())
        except OSError:
            return 80, 24
        return found.columns or 80, found.lines or 24

    @contextmanager
    def aside(self) -> Generator[None]:
        """The terminal as it was, for a program or a question that needs it to itself."""
        ready, done = threading.Event(), threading.Event()

        async def lend() -> None:
            from prompt_toolkit.application import in_terminal

            async with in_terminal():
                ready.set()
                await asyncio.to_thread(done.wait)

        if self._loop is None or self._over.is_set():
            yield
            return
        lent = asyncio.run_coroutine_threadsafe(lend(), self._loop)
        ready.wait()
        try:
            yield
        finally:
            done.set()
            lent.result()

    # --- in the terminal's thread

    def _soon(self, work: Callable[[], Any]) -> None:
        loop = self._loop
        if loop is not None and not self._over.is_set():
            try:
                loop.call_soon_threadsafe(work)
            except RuntimeError:  # it has just been closed
                return

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except (EOFError, OSError):
            pass  # the terminal has gone
        finally:
            self._over.set()
            self._drawn.set()
            self._said.put(None)

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._handle_failure)
        self._app.after_render += self._is_drawn
        await self._app.run_async(handle_sigint=False, set_exception_handler=False)

    def _is_drawn(self, app: Application[Any]) -> None:
        del app
        self._drawn.set()

    def _handle_failure(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """The terminal cannot be written any more: leave, as at the end of input."""
        del loop
        error = context.get("exception")
        future = self._app.future
        if future is not None and not future.done():
            future.set_exception(error if isinstance(error, Exception) else EOFError())

    def _leave(self) -> None:
        self._give_keys(None)
        self._print()
        if self._app.future is not None and not self._app.future.done():
            self._app.exit()

    def _print(self) -> None:
        panel = self._panel
        if not self._waiting or (panel is not None and panel.whole):
            return
        text, self._waiting = "".join(self._waiting), []
        self._app.renderer.erase(leave_alternate_screen=False)
        self._app.output.write_raw(text.replace("\n", "\r\n"))
        self._app.output.flush()
        self._app.invalidate()

    def _write_rest(self) -> None:
        text, self._waiting = "".join(self._waiting), []
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OSError:
            return

    def _give_keys(self, panel: Panel | None) -> None:
        before, renderer = self._panel, self._app.renderer
        if before is not None and before.whole:
            renderer.reset(leave_alternate_screen=True)
        else:
            renderer.erase(leave_alternate_screen=False)
        self._panel = panel
        renderer.full_screen = panel is not None and panel.whole
        self._print()
        self._app.invalidate()

    # --- what is drawn

    def _build_app(self) -> Application[None]:
        asked = Condition(lambda: self._panel is not None)
        typing = ~asked
        high = Condition(lambda: self.size[0] >= TINY)
        field = Window(
            BufferControl(self._buffer),
            height=Dimension(min=1, max=INPUT_ROWS),
            wrap_lines=True,
            dont_extend_height=True,
            get_line_prefix=lambda row, wrap: text_for_encoding(
                PROMPT if row == wrap == 0 else "  ", self._encoding
            ),
        )
        self._field = field
        layout = HSplit(
            [
                ConditionalContainer(self._text(self._panel_text), asked),
                ConditionalContainer(
                    self._text(lambda: ANSI(self._live)),
                    typing & Condition(lambda: bool(self._live)),
                ),
                ConditionalContainer(field, typing),
                ConditionalContainer(
                    self._text(self._completion_lines),
                    typing & Condition(lambda: self._buffer.complete_state is not None),
                ),
                ConditionalContainer(
                    Window(
                        char=text_for_encoding("─", self._encoding), height=1, style="class:edge"
                    ),
                    high & ~Condition(lambda: bool(self._panel and self._panel.whole)),
                ),
                ConditionalContainer(self._text(self._footer, 1), high),
            ]
        )
        colours = None if self.colour else ColorDepth.DEPTH_1_BIT
        app: Application[None] = Application(
            layout=Layout(layout, focused_element=field),
            key_bindings=self._keys(typing, asked),
            style=STYLE,
            input=create_input(),
            output=create_output(),
            color_depth=colours,
            erase_when_done=True,
            min_redraw_interval=0.02,
            terminal_size_polling_interval=0.25,
        )
        app.ttimeoutlen = app.timeoutlen = ESCAPE
        app.output.enable_cpr = False  # pyright: ignore[reportAttributeAccessIssue]
        return app

    def _text(self, what: Callable[[], Any], height: int | None = None) -> Window:
        control = FormattedTextControl(what, focusable=False)
        return Window(control, height=height, dont_extend_height=True, wrap_lines=False)

    def _panel_text(self) -> StyleAndTextTuples:
        if self._panel is None:
            return []
        width, height = self.size
        out: StyleAndTextTuples = []
        for style, text in self._panel.lines(width, height - 2):
            out += [(style, text_for_encoding(text, self._encoding)), ("", "\n")]
        return out[:-1]

    def _footer(self) -> StyleAndTextTuples:
        return [
            (
                "class:footer",
                text_for_encoding(footer_line(self.status, self.size[0]), self._encoding),
            )
        ]

    def _completion_lines(self) -> StyleAndTextTuples:
        state = self._buffer.complete_state
        return [] if state is None else completion_lines(state, self.size[0])

    # --- keys

    def _keys(self, typing: Filter, asked: Filter) -> KeyBindings:
        keys = KeyBindings()
        empty = Condition(lambda: not self._buffer.text)

        def on(work: Callable[[], None], *names: str, where: Filter = typing) -> None:
            def on_press(event: KeyPressEvent) -> None:
                del event
                work()

            keys.add(*names, filter=where, eager=where is asked)(on_press)

        on(self._enter, "enter")
        on(partial(self._buffer.insert_text, "\n"), "escape", "enter")
        on(self._interrupt, "c-c")
        on(self._escape, "escape")
        on(partial(self._said.put, None), "c-d", where=typing & empty)
        on(partial(self._said.put, "/calls"), "c-o")
        on(partial(self._said.put, "/tasks"), "c-t")
        names = ("up", "down", "left", "right", "pageup", "pagedown", "enter", "escape", "tab")
        on(self._interrupt_panel, "c-c", where=asked)
        for name in (*names, "backspace", "c-d"):
            on(partial(self._press, name), name, where=asked)
        keys.add(Keys.Any, filter=asked)(self._handle_key)
        on(lambda: None, Keys.BracketedPaste, where=asked)
        return keys

    def _handle_key(self, event: KeyPressEvent) -> None:
        self._press(event.data)

    def _press(self, key: str) -> None:
        if self._panel is not None:
            self._panel.press(key)
            self._app.invalidate()

    def _enter(self) -> None:
        buffer = self._buffer
        state = buffer.complete_state
        if state is not None and state.current_completion is not None:
            buffer.complete_state = None
            return
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
            return
        text = buffer.text.strip()
        if text:
            buffer.reset(append_to_history=True)
            if self.status.used is None:  # the engine loads: show that it was taken
                self._live = text_for_encoding(
                    f"{self._live}{PROMPT}{line(text, 200)}\n", self._encoding
                )
            self._said.put(text)

    def _escape(self) -> None:
        if self._buffer.complete_state is not None:
            self._buffer.cancel_completion()
        elif self._live.strip():
            self._signal()

    def _interrupt(self) -> None:
        if self._buffer.text:
            self._buffer.reset()
        else:
            self._signal()

    def _interrupt_panel(self) -> None:
        """A dialog is left; a question is cancelled with the turn that asked it."""
        if self._panel is not None and self._panel.whole:
            self._press("c-c")
        else:
            self._signal()

    def _signal(self) -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
