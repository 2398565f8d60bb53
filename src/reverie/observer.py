"""What is told of a run: the observer, the clock.

Who watches what runs: one port, and nobody stands at it unless somebody was put there.

A watcher is told of the records of every conversation once they are written, of layers that did
something, and of background work that ended. It is told in order and on the thread of the event
loop, so it must be quick. What it raises never reaches what it watches; it is told to nobody but
`logging`, once for each sentence. It gets values and cannot change anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import anyio

from reverie.concurrency import isolate_sync
from reverie.light import dataclass

if TYPE_CHECKING:
    from reverie.settings.catalog import Settings
    from reverie.transcript.records import Entry

WorkKind: TypeAlias = Literal["layer", "job"]
_told: set[str] = set()


@dataclass(frozen=True, slots=True)
class ObservedConversation:
    """Which conversation it is: of a session the main one, or that of an agent behind it."""

    session: str
    source: str
    agent: str
    project: str
    settings: Settings


class Observer(Protocol):
    """Somebody who watches."""

    def saw(self, of: ObservedConversation, entries: Sequence[Entry]) -> None:
        """Records of a conversation, now that they are written."""
        ...

    def closed(self, of: ObservedConversation, at: float) -> None:
        """A conversation is over, or its session was left."""
        ...

    def ran(
        self,
        kind: WorkKind,
        name: str,
        session: str,
        times: tuple[float, float],
        error: str,
    ) -> None:
        """A layer that did something, or background work: from when to when, and what failed."""
        ...


_watchers: list[Observer] = []


def is_watched() -> bool:
    return bool(_watchers)


def tell(what: Callable[[Observer], None]) -> None:
    """Tell whoever watches; a watcher that fails fails alone."""
    for watcher in tuple(_watchers):
        _, error = isolate_sync(lambda one=watcher: what(one), None)
        if error and error not in _told:
            import logging

            _told.add(error)
            logging.getLogger("reverie.telemetry").warning("what watches failed: %s", error)


def put(watcher: Observer) -> None:
    _watchers.append(watcher)


def take_away(watcher: Observer) -> None:
    if watcher in _watchers:
        _watchers.remove(watcher)


# --- Time, as a parameter: the system's clock as the Clock port sees it.


class SystemClock:
    def now(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)
