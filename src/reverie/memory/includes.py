"""`@path` in a Markdown text: which files it asks to be read along.

A mention counts where it begins a word outside code. Fenced blocks, inline code and indented
code are passed over, so a decorator in an example is none. One pass over the lines, linear in
the text; whether a file is there, and may be read, is for others to say.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

MAX = 200
"""Mentions in one text that are looked at."""
LONGEST = 1_024

_FENCE = re.compile(r"(?:[ \t>]|(?:[-*+]|\d{1,9}[.)])[ \t])*(`{3,}|~{3,})(.*)")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_INDENTED = re.compile(r"(?: {4}|[ ]{0,3}\t)")
_TICKS = re.compile(r"`+")
_MENTION = re.compile(r"(?:(?<=^)|(?<=[\s(\[{>*_\"']))@((?:\\ |[^\s\\`])+)", re.MULTILINE)
_END = ".,;:!?)]}>\"'*_"
_START = re.compile(r"~/|/|\.{1,2}/|[\w.-]")
_NEVER = re.compile(r"[\x00-\x1f\x7f\"<>|*?]")


def find(text: str) -> tuple[str, ...]:
    """The paths that a text mentions, in their order, each once."""
    found: dict[str, None] = {}
    for paragraph in _paragraphs(text):
        if "@" not in paragraph:
            continue
        for match in _MENTION.finditer(_without_code(paragraph)):
            path = _path(match[1])
            if path:
                found[path] = None
            if len(found) == MAX:
                return tuple(found)
    return tuple(found)


def resolve(path: str, *, file: str, user: str) -> str:
    """A mentioned path made absolute: beside the file that mentions it, or the user's own."""
    if path.startswith("~/"):
        return posixpath.normpath(posixpath.join(user, path[2:]))
    return posixpath.normpath(posixpath.join(posixpath.dirname(file), path))


def _path(raw: str) -> str:
    text = raw.replace("\\ ", " ").partition("#")[0].rstrip(_END)
    if len(text) > LONGEST or not _START.match(text) or _NEVER.search(text):
        return ""
    return "" if text.strip("./~") == "" else text


def _paragraphs(text: str) -> Iterator[str]:
    """The runs of lines between blank lines and code."""
    fence = ""
    lines: list[str] = []
    blank, listed = True, False
    for line in text.splitlines():
        if fence:
            fence = "" if _closes(line, fence) else fence
            continue
        fence = _opened(line)
        code = not fence and blank and not listed and bool(_INDENTED.match(line))
        if fence or code or not line.strip():
            yield "\n".join(lines)
            lines = []
            blank = blank if fence else True
            continue
        listed = bool(_ITEM.match(line)) or (listed and (not blank or line[0] in " \t"))
        blank = False
        lines.append(line)
    yield "\n".join(lines)


def _opened(line: str) -> str:
    """The fence that a line opens, or ""."""
    found = _FENCE.match(line)
    if found is None or (found[1][0] == "`" and "`" in found[2]):
        return ""
    return found[1]


def _closes(line: str, fence: str) -> bool:
    bare = line.strip(" \t>")
    return bare.startswith(fence) and not bare.strip(fence[0])


def _without_code(text: str) -> str:
    """A paragraph with its inline code blanked out."""
    runs = [m.span() for m in _TICKS.finditer(text)]
    following: dict[int, int] = {}
    partner = [-1] * len(runs)
    for n in range(len(runs) - 1, -1, -1):
        length = runs[n][1] - runs[n][0]
        partner[n] = following.get(length, -1)
        following[length] = n
    kept: list[str] = []
    at = n = 0
    while n < len(runs):
        shut = partner[n]
        if shut < 0 or text[runs[n][0] - 1 : runs[n][0]] == "\\":
            n += 1
            continue
        kept += [text[at : runs[n][0]], "`"]
        at = runs[shut][1]
        n = shut + 1
    return "".join([*kept, text[at:]])
