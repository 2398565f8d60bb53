"""Markdown as it streams: whole blocks for the scroll-back, the last one for what still changes.

A block is over at an empty line outside a fence; a long one is cut where an item or a line of
code ends, so that what is live stays small. A table wider than the window becomes a list.
"""

from __future__ import annotations

import io
import re

from reverie.text.safety import clean, reveal, without_sequences

LONG = 24  # lines of a block that are still waited for
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ITEM = re.compile(r" {0,3}([-*+]|\d+[.)])\s")
_TABLE = re.compile(r"^\s*\|?(\s*:?-+:?\s*\|)+(\s*:?-+:?\s*)?$")


class MarkdownStream:
    """Text that comes in pieces."""

    def __init__(self) -> None:
        self._lines: list[str] = [""]
        self._fence = ""

    def add(self, text: str) -> list[str]:
        """The blocks that are over with this piece."""
        first, *more = text.split("\n")
        self._lines[-1] += first
        found: list[str] = []
        for line in more:
            found += self._line_over()
            self._lines.append(line)
        return found

    def rest(self) -> str:
        """What is not over yet."""
        return "\n".join(self._lines)

    def end(self) -> str:
        """The rest; the next piece begins anew."""
        text = self.rest()
        self.__init__()
        return text

    def _line_over(self) -> list[str]:
        line = self._lines[-1]
        mark = _FENCE.match(line)
        if mark and not self._fence:
            self._fence = mark[1]
        elif mark and mark[1].startswith(self._fence):
            self._fence = ""
            return self._take_lines(len(self._lines))
        if self._fence:
            return []
        if not line.strip():
            return self._take_lines(len(self._lines))
        if len(self._lines) > LONG and _ITEM.match(line):
            return self._take_lines(len(self._lines) - 1)
        return []

    def _take_lines(self, count: int) -> list[str]:
        text = "\n".join(self._lines[:count])
        self._lines = self._lines[count:]
        return [text] if text.strip() else []


def terminal_text(text: str) -> str:
    """A text of others as a terminal may show it: nothing it obeys, nothing hidden."""
    return clean(reveal(without_sequences(text.replace("\r\n", "\n")))).expandtabs(4)


def render_markdown(text: str, width: int, *, colour: bool = True) -> str:
    """Markdown as lines for a terminal of this width."""
    from rich.console import Console

    from reverie.apps.tui.markdown_rich import QuietMarkdown

    out = io.StringIO()
    console = Console(
        file=out,
        width=max(1, width),
        force_terminal=True,
        no_color=not colour,
        color_system="standard" if colour else None,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
    )
    console.print(QuietMarkdown(_narrow_tables(terminal_text(text), width)))
    lines = [_trim_line(line) for line in out.getvalue().split("\n")]
    while lines and not _CODES.sub("", lines[-1]):
        lines.pop()
    while lines and not _CODES.sub("", lines[0]):
        lines.pop(0)
    return "\n".join(lines)


_CODES = re.compile(r"\x1b\[[0-9;]*m")


def _trim_line(line: str) -> str:
    """Without the space that fills a line up, which would wrap in a window that shrinks; its codes
    stay."""
    codes: list[str] = []
    while True:
        line = line.rstrip(" \t")
        at = line.rfind("\x1b[")
        if at < 0 or not _CODES.fullmatch(line, at):
            return line + "".join(reversed(codes))
        codes.append(line[at:])
        line = line[:at]


def _narrow_tables(text: str, width: int) -> str:
    """Tables that do not fit become lists."""
    lines = text.split("\n")
    out: list[str] = []
    at = 0
    while at < len(lines):
        if at + 1 < len(lines) and "|" in lines[at] and _TABLE.match(lines[at + 1]):
            end = at + 2
            while end < len(lines) and "|" in lines[end]:
                end += 1
            table = lines[at:end]
            out += _table_items(table) if max(map(len, table)) > width else table
            at = end
        else:
            out.append(lines[at])
            at += 1
    return "\n".join(out)


def _table_items(table: list[str]) -> list[str]:
    heads = _cells(table[0])
    out: list[str] = []
    for row in table[2:]:
        pairs = zip(heads, _cells(row), strict=False)
        out.append("- " + "; ".join(f"{head}: {cell}" for head, cell in pairs if cell))
    return out


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().strip("|").split("|")]
