"""An answer read on its way past: put together for the shadow session, never held back.

What cannot be read is no answer for the shadow, and passes to the client all the same.
"""

from __future__ import annotations

from reverie.errors import InvalidMessage, ReverieError
from reverie.wire.chat import ChatAnswer
from reverie.wire.failures import Setback
from reverie.wire.messages import Assembly
from reverie.wire.reading import Format
from reverie.wire.reply import Reply, as_reply
from reverie.wire.responses import ResponsesAnswer
from reverie.wire.sse import BadStream, Events

LARGEST = 64 * 1024 * 1024
WHERE = "the provider's answer"


class Passing:
    """One answer, in one piece or as a stream of events."""

    def __init__(self, form: Format, *, streamed: bool) -> None:
        self._events = Events() if streamed else None
        self._taken = _assembly(form)
        self._whole = bytearray()
        self._lost = False

    def take(self, piece: bytes) -> None:
        """A few bytes that passed."""
        if self._lost:
            return
        try:
            if self._events is None:
                self._whole += piece
                self._lost = len(self._whole) > LARGEST
                return
            for event in self._events.feed(piece):
                self._taken.take(event.data)
        except (BadStream, InvalidMessage, ReverieError, Setback, KeyError, ValueError):
            self._lost = True

    @property
    def is_whole(self) -> bool:
        """Whether a stream ended as one does that was not cut; True where nobody can tell."""
        return self._events is None or self._lost or self._taken.done or self._taken.ended()

    def reply(self) -> Reply | None:
        """The answer, where it is whole."""
        if self._lost:
            return None
        try:
            if self._events is None:
                return as_reply(self._whole.decode())
            return self._taken.reply() if self.is_whole else None
        except (InvalidMessage, ReverieError, Setback, UnicodeDecodeError, KeyError):
            return None


def _assembly(form: Format) -> Assembly | ChatAnswer | ResponsesAnswer:
    if form == "chat":
        return ChatAnswer(None, WHERE)
    return ResponsesAnswer(None, WHERE) if form == "responses" else Assembly(WHERE)
