"""What background work is given of the session it runs behind, and no more."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from reverie.session.budget import Budget
from reverie.session.fork import Fork
from reverie.session.jobs import Jobs
from reverie.session.library import Library
from reverie.tools.runner import MakeGuard
from reverie.transcript.records import Record
from reverie.transcript.view import View
from reverie.world import World

if TYPE_CHECKING:
    from reverie.store.memories import Memories


class Host(Protocol):
    """A conversation with work behind it. A `Session` is one."""

    @property
    def id(self) -> str: ...

    @property
    def view(self) -> View: ...

    @property
    def world(self) -> World: ...

    @property
    def jobs(self) -> Jobs: ...

    @property
    def library(self) -> Library: ...

    @property
    def memories(self) -> Memories | None: ...

    @property
    def guards(self) -> MakeGuard: ...

    @property
    def budget(self) -> Budget | None: ...

    @property
    def home(self) -> Path | None:
        """Where what is learned is kept; None in a private session."""
        ...

    @property
    def interactive(self) -> bool:
        """Whether a person is there."""
        ...

    def hand(self, *records: Record) -> None:
        """Records that join the conversation between two requests."""
        ...

    def forked(self, source: str) -> AbstractAsyncContextManager[Fork]:
        """A fork of the conversation, once its last request is in the provider's cache."""
        ...
