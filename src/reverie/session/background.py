"""What runs unasked behind a conversation, and when: two tuples, and nowhere else.

Each piece is asked after a response or after a turn whether it is due; it answers at once,
and does its work as one of the session's jobs. A piece that raises fails alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from reverie.session.session import Session

Consider: TypeAlias = "Callable[[Session], Awaitable[None]]"

AFTER_A_RESPONSE: tuple[tuple[str, Consider], ...] = ()
"""Asked by `observe`."""

AFTER_A_TURN: tuple[tuple[str, Consider], ...] = ()
"""Asked by `end_turn`, where the turn was completed."""
