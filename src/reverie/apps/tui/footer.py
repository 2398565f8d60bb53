"""The status line and its signs.

How a session stands, in one line: from the left the model, the context, the cache, the money,
and at the right what runs in the background. What has no room is left out from the right.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reverie.apps.tui.markdown import terminal_text
from reverie.text.format import plural
from reverie.text.safety import line
from reverie.wire.reply import ToolCall

WIDE, SHORT, TINY = 100, 40, 20
COMPACTION, COLLAPSE = "compaction", "collapse"


@dataclass(frozen=True, slots=True)
class FooterStatus:
    """What is known of a session; a share that is not known is None."""

    model: str = ""
    used: float | None = None  # share of the window
    left: int = 0
    until: str = COMPACTION
    cache: float | None = None
    money: str = ""
    pill: str = ""


def footer_line(status: FooterStatus, width: int) -> str:
    """The line, as wide as the terminal at most."""
    if width < TINY:
        return ""
    pill = f"● {status.pill}" if status.pill else "/help"
    parts = [status.model, _context(status, width), _cache(status), status.money]
    between = "  ·  " if width >= WIDE else "  "
    while width >= SHORT and len(parts) > 1:
        left = between.join(part for part in parts if part)
        if len(left) + len(pill) + 2 <= width:
            return left + " " * (width - len(left) - len(pill)) + pill
        parts.pop()
    both = f"{_context(status, width)}  {pill if status.pill else ''}".rstrip()
    return (both if len(both) <= width else _context(status, width))[:width]


def status_text(status: FooterStatus) -> str:
    """The same in words, for a mode in which nothing moves."""
    parts = [] if status.used is None else [f"context {status.used * 100:.0f} percent"]
    if status.used is not None:
        parts.append(f"{status.left:,} tokens until {status.until}")
    if status.cache is not None:
        parts.append(f"cache {status.cache * 100:.0f} percent")
    parts += [f"cost {status.money}"] if status.money else []
    parts += [status.pill] if status.pill else []
    return f"status: {', '.join(parts)}"


def _context(status: FooterStatus, width: int) -> str:
    if status.used is None:
        return "loading"
    if width >= WIDE:
        return f"context {status.used:.0%}, {status.left:,} left until {status.until}"
    left = f"{status.left // 1_000}k" if status.left >= 1_000 else str(status.left)
    until = f"until {COLLAPSE}" if status.until == COLLAPSE else "left"
    return f"ctx {status.used:.0%}, {left} {until}"


def _cache(status: FooterStatus) -> str:
    return "cache –" if status.cache is None else f"cache {status.cache:.0%}"


# --- Boxes for dialogs, as lines of text: the same at every width, readable without colour.


Line = tuple[str, str]  # a style and a text


def wide(text: str) -> int:
    """The columns that a text takes."""
    if text.isascii():
        return len(text)
    return sum(_columns(sign) for sign in text)


def _columns(sign: str) -> int:
    if unicodedata.combining(sign):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def cut(text: str, width: int) -> str:
    """The text in so many columns at most."""
    if wide(text) <= width:
        return text
    taken, out = 0, ""
    for sign in text:
        taken += _columns(sign)
        if taken > width - 1:
            break
        out += sign
    return out + "…" if width > 0 else ""


def pad_or_truncate(text: str, width: int) -> str:
    """The text in exactly so many columns."""
    text = cut(text, width)
    return text + " " * (width - wide(text))


def apart(left: str, right: str, width: int) -> str:
    """Two texts at the two ends of a line; the left one gives way."""
    right = cut(right, width)
    return pad_or_truncate(left, width - wide(right)) + right


def wrap_lines(text: str, width: int) -> Iterator[str]:
    """A text in lines of so many columns, broken between words where that is possible."""
    for given in text.split("\n"):
        rest = given
        while wide(rest) > width > 0:
            head = cut(rest, width + 1).removesuffix("…")[:width] or rest[0]
            space = head.rfind(" ")
            head = head[:space] if space > width // 3 else head
            yield head
            rest = rest[len(head) :].lstrip(" ")
        yield rest


def box(title: str, body: Sequence[Line], keys: str, width: int) -> list[Line]:
    """A title, lines, and below them what the keys do."""
    inner = max(1, width - 4)
    head = cut(f" {title} ", max(1, width - 4))
    lines: list[Line] = [("class:edge", f"╭─{head}{'─' * (width - 3 - wide(head))}╮")]
    lines += [(style, f"│ {pad_or_truncate(text, inner)} │") for style, text in body]
    lines.append(("class:edge", f"├{'─' * (width - 2)}┤"))
    lines += [
        ("class:keys", f"│ {pad_or_truncate(row, inner)} │") for row in wrap_lines(keys, inner)
    ]
    lines.append(("class:edge", f"╰{'─' * (width - 2)}╯"))
    return lines


def apply_key(text: str, key: str) -> str:
    """A text with one more key typed behind it."""
    if key == "backspace":
        return text[:-1]
    return text + key if len(key) == 1 and key.isprintable() else text


# --- The few signs that are drawn, and what stands in for each where the terminal has no UTF-8.


_PLAIN = str.maketrans(
    {
        "›": ">",
        "▸": ">",
        "▾": "v",
        "│": "|",
        "─": "-",
        "╭": "+",
        "╮": "+",
        "╰": "+",
        "╯": "+",
        "├": "+",
        "┤": "+",
        "●": "*",
        "▌": "|",
        "█": "#",
        "·": ".",
        "…": "...",
        "–": "-",
        "→": "->",
        "↑": "^",
        "↓": "v",
        "•": "*",
    }
)


def text_for_encoding(text: str, encoding: str) -> str:
    """The text in signs that an encoding has; a letter that it has not is a question mark."""
    if encoding.lower().replace("-", "") == "utf8":
        return text
    return text.translate(_PLAIN).encode(encoding, "replace").decode(encoding)


# --- Tool calls as one line each: a name, what it was given, how it ended and how long it took.
#
# A call that failed opens itself; of an open one a dozen lines are shown, and where the rest is.


OPEN_LINES = 12
_NAMED = ("path", "file_path", "command", "pattern", "query", "url", "prompt", "description")
_REFERENCE = re.compile(r"\br:[a-z]+[0-9a-z]*\b")


@dataclass
class CallLine:
    """One call, as far as it has come."""

    name: str
    given: str
    began: float
    seconds: float = 0.0
    text: str = ""
    failed: bool = False
    over: bool = False

    @classmethod
    def of(cls, call: ToolCall, now: float) -> CallLine:
        arguments = call.arguments
        first = next((arguments[key] for key in _NAMED if key in arguments), None)
        given = first if isinstance(first, str) else call.raw if arguments else ""
        return cls(terminal_text(call.name), line(terminal_text(given), 400), now)

    def end(self, text: str, failed: bool, now: float) -> None:
        self.text, self.failed, self.over = terminal_text(text).strip("\n"), failed, True
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
