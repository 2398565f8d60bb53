"""Memory in a list: what joins the newest message of the user's.

The first time it is the index and what fits, later what fits and was not shown yet. Each stands
behind its message for good, so that the prompt cache holds; it is framed as memory and goes as a
reminder, so no system prompt is needed. What is unsure stays out: silence beats a guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reverie.errors import ReverieError
from reverie.world import Notice, Say

if TYPE_CHECKING:
    from reverie.api.memory import Memory

FIRST = 2_000
"""Tokens of the first reminder, with the index."""
LATER = 1_000
"""Tokens of each later one."""


class Joining:
    """What a conversation was told of a memory."""

    def __init__(self, memory: Memory, say: Say) -> None:
        self._memory = memory
        self._say = say
        self.texts: dict[str, str] = {}  # by part; "" where nothing fits

    def look(self, part: str, words: str) -> None:
        """Find what joins a message, once; a memory that cannot be read joins nothing."""
        if part in self.texts:
            return
        shown = "\n".join(self.texts.values())
        try:
            found = self._found(words, shown)
        except ReverieError as error:
            self._say(Notice("recall", f"memory did not join the list: {error}", "warning"))
            found = ""
        self.texts[part] = f"<system-reminder>\n{found}\n</system-reminder>" if found else ""

    def _found(self, words: str, shown: str) -> str:
        if not shown:
            return self._memory.context(words, tokens=FIRST)
        return self._memory.reminder(words, shown=shown, tokens=LATER)
