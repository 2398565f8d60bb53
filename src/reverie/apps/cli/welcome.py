"""What a person is told the first time: what is stored where, what runs unasked, what
that may cost, and how each is switched off.

Shown once for each home, on stderr, and never again once it has been seen; a session
that records nothing does not record this either.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import reverie
from reverie.apps.cli.show import note
from reverie.errors import StoreError
from reverie.settings import Settings
from reverie.store.files import Folder

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
