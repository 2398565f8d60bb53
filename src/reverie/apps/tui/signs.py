"""The few signs that are drawn, and what stands in for each where the terminal has no UTF-8."""

from __future__ import annotations

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


def drawn(text: str, encoding: str) -> str:
    """The text in signs that an encoding has; a letter that it has not is a question mark."""
    if encoding.lower().replace("-", "") == "utf8":
        return text
    return text.translate(_PLAIN).encode(encoding, "replace").decode(encoding)
