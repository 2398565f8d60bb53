"""Whether something that was opened may still be used: not closed, same process, same loop."""

from __future__ import annotations

import os

from reverie.errors import InvalidInput, StoreError


class Holding:
    """Where something was opened, and whether it was closed since."""

    __slots__ = ("_kind", "_loop", "_name", "_process", "closed")

    def __init__(self, kind: str, name: str) -> None:
        from anyio.lowlevel import current_token

        self._kind = kind
        self._name = name
        self._loop = current_token()
        self._process = os.getpid()
        self.closed = False

    @property
    def is_here(self) -> bool:
        """Whether this is the process that opened it."""
        return self._process == os.getpid()

    def check(self) -> None:
        """Raise where it cannot be used, in words for whoever tried."""
        if self.closed:
            raise StoreError(
                f"this {self._kind} was closed", where=self._name, do="Open it again with resume="
            )
        if not self.is_here:
            raise StoreError(
                f"this {self._kind} was opened in another process",
                where=self._name,
                do="Open one in this process, after the fork",
            )
        self.check_loop()

    def check_loop(self) -> None:
        """Raise in another event loop than the one that opened it."""
        from anyio.lowlevel import current_token

        if current_token() != self._loop:
            raise InvalidInput(
                f"this {self._kind} was opened in another event loop",
                where=self._name,
                do="Use it in the loop that opened it, or through reverie.blocking",
            )
