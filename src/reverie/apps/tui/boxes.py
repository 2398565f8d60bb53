"""Boxes for dialogs, as lines of text: the same at every width, readable without colour."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

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


def filled(text: str, width: int) -> str:
    """The text in exactly so many columns."""
    text = cut(text, width)
    return text + " " * (width - wide(text))


def apart(left: str, right: str, width: int) -> str:
    """Two texts at the two ends of a line; the left one gives way."""
    right = cut(right, width)
    return filled(left, width - wide(right)) + right


def wrapped(text: str, width: int) -> Iterator[str]:
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
    lines += [(style, f"│ {filled(text, inner)} │") for style, text in body]
    lines.append(("class:edge", f"├{'─' * (width - 2)}┤"))
    lines += [("class:keys", f"│ {filled(row, inner)} │") for row in wrapped(keys, inner)]
    lines.append(("class:edge", f"╰{'─' * (width - 2)}╯"))
    return lines


def typed(text: str, key: str) -> str:
    """A text with one more key typed behind it."""
    if key == "backspace":
        return text[:-1]
    return text + key if len(key) == 1 and key.isprintable() else text
