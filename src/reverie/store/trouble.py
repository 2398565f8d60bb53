"""A folder that is gone, closed to us or failing: said once, and the session goes on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from typing import TypeVar

from reverie.errors import Held, NotFound, PathRefused, ReverieError, StoreError
from reverie.store.files import Changed
from reverie.world import Notice, Say

T = TypeVar("T")


class FolderTrouble:
    """The failures of one memory folder; each is said the first time."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._said: set[str] = set()

    def soft(self, look: Callable[[], T], instead: T) -> T:
        """What a look gives, or something else where the folder does not let us."""
        try:
            return look()
        except (StoreError, NotFound) as error:
            self._warn(error)
            return instead

    @contextlib.contextmanager
    def failing(self) -> Generator[None]:
        """Say a failure of the folder; the error goes on to whoever wanted the write."""
        try:
            yield
        except (PathRefused, Changed, Held):
            raise
        except (StoreError, NotFound) as error:
            self._warn(error)
            raise

    def _warn(self, error: ReverieError) -> None:
        if error.what not in self._said:
            self._said.add(error.what)
            text = f"long-term memory cannot be used as it should; the session goes on: {error}"
            self._say(Notice("memory", text, "warning"))
