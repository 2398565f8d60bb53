"""Tools of clients that read one file, or a range of it, by its path; no shell, and none of MCP.

What such a tool gives was asked for. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

TOOLS: Mapping[str, tuple[str, ...]] = {
    "Read": ("file_path", "filepath"),  # Claude Code; Continue
    "NotebookRead": ("notebook_path",),  # Claude Code, older
    "read": ("filePath", "path"),  # opencode; pi
    # qwen and codex; gemini, older; cline and Zed; Continue; Copilot; Cursor
    "read_file": ("file_path", "absolute_path", "path", "filepath", "filePath", "target_file"),
    "view": ("file_path", "path"),  # crush; Copilot
}
"""By tool: the members of its input that name a file, each as one client or another has it."""
_NUMBER = re.compile(r"( *)([0-9]{1,9})(→|\t|\| |: )")
_AROUND = re.compile(
    r"(?>(?s:<system-reminder>.*?</system-reminder>)|<(\w+)>[^\n<]*</\1>|</?\w+>|\([^\n]*\)|\n)*+"
)
"""What clients put around the lines of a file."""


def reads_file(tool: str, given: object) -> bool:
    """Whether a call reads a file by its path."""
    members = TOOLS.get(tool, ()) if isinstance(given, Mapping) else ()
    value = cast("Mapping[str, object]", given)
    return any(isinstance(value.get(name), str) and value[name] for name in members)


def stays_whole(tool: str, given: object, text: str, limit: int) -> bool:
    """Whether a result is a file read by its path, of so many bytes at most."""
    return reads_file(tool, given) and len(text.encode("utf-8", "replace")) <= limit


def undecorated(tool: str, given: object, text: str) -> str:
    """What a read gave without the numbers that the tool put before each line; as it is where
    that is not certain."""
    around = _AROUND.match(text)
    begin = around.end() if around else 0
    first = _NUMBER.match(text, begin)
    if first is None or not reads_file(tool, given) or not _is_certain(tool, given, first):
        return text
    lines = text[begin:].split("\n")
    for at, line in enumerate(lines):
        found = _NUMBER.match(line)
        if found is None or found[3] != first[3] or int(found[2]) != int(first[2]) + at:
            if _AROUND.fullmatch("\n".join(lines[at:])) is None:
                return text
            break
        lines[at] = line[found.end() :]
    return text[:begin] + "\n".join(lines)


def _is_certain(tool: str, given: object, first: re.Match[str]) -> bool:
    """Whether numbers are a tool's: some files have a column of them, so the form has to tell."""
    pad, digits, sign = first.groups()
    if sign == "\t":
        return tool == "Read" or bool(pad)
    if sign == ": ":
        return tool == "read" and "filePath" in cast("Mapping[str, object]", given)
    return sign == "→" or len(digits) > 4
