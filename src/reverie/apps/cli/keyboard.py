"""Prompt input, editor, first run.

Reading what a person types at a prompt: editing, history, and messages of several lines.

Pasted text arrives as one message, whatever line ends it has. Alt-Enter begins a new line, and so
does Enter behind a backslash. What was sent is kept in `<home>/history.jsonl`, for this person
alone, and comes back with the arrow keys; without a home to keep it in, or without the system's
readline, reading goes on without it. Answers to questions are no history.
"""

from __future__ import annotations

import json
import os
import shlex
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from shutil import rmtree
from typing import Any, TypeVar

import reverie
from reverie import programs
from reverie.apps.cli.output import note
from reverie.errors import InvalidInput, ReverieError, StoreError, WriteFailed
from reverie.settings.catalog import Settings
from reverie.settings.sources import environment
from reverie.store.files import Folder
from reverie.store.project import Project, is_on

T = TypeVar("T")
FILE = "history.jsonl"
MOST = 1_000  # messages that are kept
MORE = "… "
_KEYS = (
    "set enable-bracketed-paste on",
    r'"\e\C-m": "\C-v\C-j"',
    r'"\e\C-j": "\C-v\C-j"',
)


class PromptHistory:
    """What was sent at prompts, in the file of one home; without a home nothing is kept."""

    def __init__(self, home: Path | None) -> None:
        self._file = None if home is None else home / FILE
        self._last = ""

    def messages(self) -> list[str]:
        """The last of them, oldest first."""
        found = _read_history(self._file)
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
        self._kept = PromptHistory(home)
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


def _read_history(path: Path | None) -> list[str]:
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


# --- The person's own editor, on a copy that is deleted once its text is saved.


def run_editor(before: bytes, key: str, save: Callable[[bytes], T]) -> T:
    """Save what a person makes of a memory in their editor; keep the text where that fails."""
    environ = environment()
    command = environ.get("VISUAL") or environ.get("EDITOR")
    if not command:
        raise InvalidInput("No editor is set", do="Set $VISUAL or $EDITOR, or give --with FILE")
    copy = Path(tempfile.mkdtemp(prefix="reverie-edit-"), os.path.basename(key))
    try:
        copy.write_bytes(before)
        done = save(_edit(command, copy, environ))
    except BaseException as error:
        _keep_text(copy, before, error)
        raise
    rmtree(copy.parent, ignore_errors=True)
    return done


def _edit(command: str, copy: Path, environ: Mapping[str, str]) -> bytes:
    try:
        line = [*shlex.split(command), str(copy)]
        terminal = dict.fromkeys(("stdin", "stdout", "stderr"))  # the person's own
        ended = programs.run(line, environ, os.getcwd(), seconds=None, **terminal)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"The editor cannot be run: {error}", where=command) from error
    if ended.returncode:
        raise WriteFailed("The editor failed; nothing was changed", where=command)
    try:
        return copy.read_bytes()
    except OSError as error:
        raise WriteFailed("The editor left no file; nothing was changed", where=command) from error


def _keep_text(copy: Path, before: bytes, error: BaseException) -> None:
    """Keep a changed text for its owner alone, under a name that says nothing of it."""
    kept = copy.with_name("edit.md")
    try:
        changed = copy.read_bytes() != before
    except OSError:
        changed = False
    if not changed:
        rmtree(copy.parent, ignore_errors=True)
        return
    copy.chmod(0o600)
    copy.rename(kept)
    way = f"Your text is in {kept}: correct it there, give it with --with FILE, then delete it"
    if isinstance(error, ReverieError):
        error.do = f"{error.do}. {way}" if error.do else way
    else:
        note(way)


# --- What a person is told the first time: what is stored where, what runs unasked, what that may
# cost, and how each is switched off.
#
# Shown once for each home, on stderr, and never again once it has been seen; a session that
# records nothing does not record this either.


MARKER = ".reverie-welcomed"
ROOM = 24  # letters of a line of 80 that a folder may take


def text(home: Path, settings: Settings) -> str:
    """The notice, with the places and numbers that hold here."""
    tokens, calls = settings.background_tokens_per_day, settings.background_calls_per_day
    return f"""\
Reverie {reverie.__version__}. Without a key its embedded model answers: no network, no cost.
Stored for you alone below {_short(home)}; --private records nothing.
Unasked: recall (local), notes, learning, one dream a day, hooks you set.
Its budget: {tokens:,} weighted tokens, {calls:,} calls a day, to your model alone.
Switch off: reverie flags (each kind), reverie off (here), --bare (this time).
More: /help, reverie doctor, reverie help chat"""


def _short(home: Path) -> str:
    """The folder as a person writes it, in a line's room."""
    told = str(home)
    own = str(Path.home())
    told = f"~{told[len(own) :]}" if told.startswith(f"{own}/") else told
    return told if len(told) <= ROOM else f"…{told[1 - ROOM :]}"


def tell_off(place: Project, say: Callable[[str], None] = note) -> None:
    """Say where memory is switched off: "remember …" keeps nothing there."""
    if not is_on(place).on:
        say("reverie: memory is off here, nothing is remembered; `reverie on` switches it on")


def welcome(
    home: Path, settings: Settings, *, private: bool, say: Callable[[str], None] = note
) -> bool:
    """Show the notice if this home has not seen it; says whether it was shown."""
    if (home / MARKER).exists():
        return False
    say(text(home, settings))
    if not private:
        try:
            with Folder(home) as folder:
                folder.write(MARKER, b"")
        except StoreError as error:
            say(f"reverie: this notice will come again: {error}")
    return True
