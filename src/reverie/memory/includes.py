"""`@path` in a Markdown text: which files it asks to be read along.

A mention counts where it begins a word outside code. Fenced blocks, inline code and indented
code are passed over, so a decorator in an example is none. Whether a file is there, and may be
read, is for others to say.
"""

from __future__ import annotations

import posixpath
import re

from reverie.text.markdown import without_code

MAX = 200
"""Mentions in one text that are looked at."""
LONGEST = 1_024

_MENTION = re.compile(r"(?:(?<=^)|(?<=[\s(\[{>*_\"']))@((?:\\ |[^\s\\`])+)", re.MULTILINE)
_END = ".,;:!?)]}>\"'*_"
_START = re.compile(r"~/|/|\.{1,2}/|[\w.-]")
_ANY = re.compile(r"[^\W_]")
_NEVER = re.compile(r"[\x00-\x1f\x7f\"<>|*?]")


def find(text: str) -> tuple[str, ...]:
    """The paths that a text mentions, in their order, each once."""
    found: dict[str, None] = {}
    for match in _MENTION.finditer(without_code(text)) if "@" in text else ():
        path = _path(match[1])
        if path:
            found[path] = None
        if len(found) == MAX:
            break
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
    return text if _ANY.search(text) else ""  # marks alone name no file
