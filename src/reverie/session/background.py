"""What runs unasked behind a conversation, and when: two tuples, and nowhere else.

Each piece is asked after a response or after a turn whether it is due; it answers at once,
and does its work as one of the session's jobs. A piece that raises fails alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from reverie.session.dream import watch
from reverie.session.extraction import job as extraction
from reverie.session.notes import job as notes

if TYPE_CHECKING:
    from reverie.session.session import Session

Consider: TypeAlias = "Callable[[Session], Awaitable[None]]"

AFTER_A_RESPONSE: tuple[tuple[str, Consider], ...] = (
    ("session_memory", notes.consider),  # 3: notes, so that a summary is ready when it is needed
)
"""Asked by `observe`."""

AFTER_A_TURN: tuple[tuple[str, Consider], ...] = (
    ("extract_memories", extraction.consider),  # 5: what is worth keeping, by a fork
    ("dream", watch.consider),  # 6: the memory is tidied, once a day at most
)
"""Asked by `end_turn`, where the turn was completed."""
