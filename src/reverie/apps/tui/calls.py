"""Tool calls as one line each: a name, what it was given, how it ended and how long it took.

A call that failed opens itself; of an open one a dozen lines are shown, and where the rest is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from reverie.apps.tui.boxes import apart, cut
from reverie.apps.tui.markdown import shown
from reverie.text.format import plural
from reverie.text.terminal import line
from reverie.wire.reply import ToolCall

OPEN_LINES = 12
_NAMED = ("path", "file_path", "command", "pattern", "query", "url", "prompt", "description")
_REFERENCE = re.compile(r"\br:[a-z]+[0-9a-z]*\b")


@dataclass
class ShownCall:
    """One call, as far as it has come."""

    name: str
    given: str
    began: float
    seconds: float = 0.0
    text: str = ""
    failed: bool = False
    over: bool = False

    @classmethod
    def of(cls, call: ToolCall, now: float) -> ShownCall:
        arguments = call.arguments
        first = next((arguments[key] for key in _NAMED if key in arguments), None)
        given = first if isinstance(first, str) else call.raw if arguments else ""
        return cls(shown(call.name), line(shown(given), 400), now)

    def end(self, text: str, failed: bool, now: float) -> None:
        self.text, self.failed, self.over = shown(text).strip("\n"), failed, True
        self.seconds = now - self.began

    @property
    def outcome(self) -> str:
        stored = _REFERENCE.search(self.text[:400])
        if self.failed:
            return "failed"
        if stored:
            return f"stored whole → {stored[0]}"
        return plural(self.text.count("\n") + 1, "line") if self.text else "no output"

    def head(self, width: int, *, opened: bool = False) -> str:
        """The one line."""
        sign = "▾" if opened else "▸"
        right = f"  {self.outcome}  {self.seconds:.1f} s" if self.over else ""
        return apart(f"{sign} {self.name} {self.given}", right, width)

    def body(self, width: int, rows: int = OPEN_LINES) -> list[str]:
        """The lines of an open call; the last says how much more there is."""
        lines = self.text.split("\n")
        out = [f"  │ {cut(row, width - 4)}" for row in lines[:rows]]
        if len(lines) > rows:
            more = plural(len(lines) - rows, "line")
            out.append(apart(f"  │ … {more} more", "ctrl-o opens", width))
        return out
