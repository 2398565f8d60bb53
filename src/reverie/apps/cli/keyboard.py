"""Reading what a person types at a prompt: editing, history, and messages of several lines.

Pasted text arrives as one message, whatever line ends it has. Alt-Enter begins a new line, and so
does Enter behind a backslash. What was sent is kept in `<home>/history.jsonl`, for this person
alone, and comes back with the arrow keys; without a home to keep it in, or without the system's
readline, reading goes on without it. Answers to questions are no history.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

FILE = "history.jsonl"
MOST = 1_000  # messages that are kept
MORE = "… "
_KEYS = (
    "set enable-bracketed-paste on",
    r'"\e\C-m": "\C-v\C-j"',
    r'"\e\C-j": "\C-v\C-j"',
)


class KeptHistory:
    """What was sent at prompts, in the file of one home; without a home nothing is kept."""

    def __init__(self, home: Path | None) -> None:
        self._file = None if home is None else home / FILE
        self._last = ""

    def messages(self) -> list[str]:
        """The last of them, oldest first."""
        found = _kept(self._file)
        self._last = found[-1] if found else ""
        return found

    def keep(self, message: str) -> None:
        """Keep a message, unless it is the one before again."""
        if message == self._last:
            return
        self._last = message
        if self._file is not None:
            with suppress(OSError):
                _keep(self._file, message)


class Keyboard:
    """Lines from a terminal, and the history of one home."""

    def __init__(self, home: Path | None) -> None:
        self._kept = KeptHistory(home)
        self._readline: Any = None
        with suppress(ImportError):
            self._readline = import_module("readline")
        if self._readline is not None:
            self._readline.set_auto_history(False)
            if "libedit" not in (self._readline.__doc__ or ""):
                for key in _KEYS:
                    self._readline.parse_and_bind(key)
            for message in self._kept.messages():
                self._readline.add_history(message)

    def read(self, prompt: str) -> str:
        """A whole message; EOFError or KeyboardInterrupt where the person leaves."""
        text = input(prompt)
        while text.endswith("\\"):
            text = text[:-1] + "\n" + input(MORE)
        return text.strip()

    def remember(self, message: str) -> None:
        """Keep a message that was sent, unless it is the one before again."""
        lines = self._readline
        if lines is not None:
            last = lines.get_current_history_length()
            if last and lines.get_history_item(last) == message:
                return
            lines.add_history(message)
        self._kept.keep(message)

    @property
    def buffer(self) -> str:
        """What stands at the prompt and is not sent yet."""
        return str(self._readline.get_line_buffer()) if self._readline is not None else ""


def _keep(path: Path, message: str) -> None:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n")


def _kept(path: Path | None) -> list[str]:
    """The last messages, oldest first; a longer file is cut to them."""
    if path is None:
        return []
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return []
    found: list[str] = []
    for line in lines:
        with suppress(ValueError):
            value = json.loads(line)
            if isinstance(value, str):
                found.append(value)
    if len(found) > 2 * MOST:
        _cut(path, found[-MOST:])
    return found[-MOST:]


def _cut(path: Path, messages: list[str]) -> None:
    beside = path.with_suffix(f".{os.getpid()}.tmp")
    with suppress(OSError):
        for message in messages:
            _keep(beside, message)
        beside.replace(path)
