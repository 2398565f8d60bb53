"""The types of `Memory.aio`, made from `Memory` by `python -m scripts.faces --write`.

Every method is the one of the same name, as a coroutine; nothing here runs.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol

from reverie.memory.values import (
    Answered,
    Change,
    Checked,
    Dreamt,
    Forgotten,
    Found,
    Pending,
    Saved,
    Undone,
)
from reverie.toolbox.toolset import Toolset
from reverie.world import Model


class AsyncMemory(Protocol):
    """`Memory` for tasks."""

    async def add(
        self,
        text: str,
        *,
        type: str = "",  # noqa: A002
        name: str = "",
        description: str = "",
    ) -> Saved:
        """Keep one text as it stands; it is on disk when this returns.

        `type` is `user`, `feedback`, `project` or `reference`; `name` and `description` are what
        the index shows, made from the text where they are not given. SecretFound where it holds
        one."""
        ...

    async def learn(
        self,
        messages: Sequence[object],
        *,
        model: Model | None = None,
    ) -> builtins.list[Saved]:
        """Keep what is worth keeping in a conversation: by rules, or by a model handed in."""
        ...

    async def learn_recorded(
        self,
        file: str | os.PathLike[str],
        *,
        model: Model | None = None,
    ) -> builtins.list[Saved]:
        """The same from a recorded session of Claude Code, pi or Reverie, from where the last
        time ended."""
        ...

    async def record(
        self,
        messages: Sequence[object],
        *,
        session: str = "",
        at: datetime | float | None = None,
        learn: bool = False,
    ) -> Saved:
        """Keep a conversation as it was said; `search(kind="session")` and `context` find it.

        `messages` are those of an API, in any of the three formats, or pairs of speaker and text.
        What a `session` has already is not kept twice; without one, the same messages are the same
        conversation. `at` is when it was. Only with `learn` are memories made from it."""
        ...

    async def search(
        self,
        query: str,
        *,
        limit: int = 5,
        kind: str = "memory",
        type: str = "",  # noqa: A002
    ) -> builtins.list[Found]:
        """What answers a query, best first; `kind="session"` looks in past conversations.

        At most `limit`, of one `type` where it is given. `found.clear` says whether it is clearly
        about the query; the others are merely the nearest."""
        ...

    async def ask(self, question: str) -> Answered:
        """An answer in the words of memories and past sessions, with sources; no model is asked."""
        ...

    async def context(self, query: str = "", *, tokens: int = 2000) -> str:
        """What a prompt should hold of this memory now: memories and turns of recorded
        conversations that fit a query, best first; without one the index."""
        ...

    async def reminder(self, query: str, *, shown: str = "", tokens: int = 1000) -> str:
        """What is clearly about a query and does not stand in `shown` yet; "" for nothing."""
        ...

    async def get(self, file: str) -> Found:
        """One memory, by its file or its name."""
        ...

    async def list(self, *, type: str = "") -> builtins.list[Found]:  # noqa: A002
        """All memories, those of the narrowest part first, in it the newest first."""
        ...

    async def update(self, file: str, text: str) -> Saved:
        """Put another text in a memory's place."""
        ...

    async def remove(self, file: str) -> Saved:
        """Take a memory out; `undo` brings it back."""
        ...

    async def history(self, file: str = "") -> builtins.list[Change]:
        """Every version of one memory, or of all at this address, the oldest first."""
        ...

    async def undo(self, change: str = "") -> Undone:
        """Take one change back, without an argument the newest; what others wrote since stays."""
        ...

    async def revert(self, *, session: str = "", agent: str = "", tool: str = "") -> Undone:
        """Take back all that came from one session, agent or tool."""
        ...

    async def forget(self, words: str, *, dry_run: bool = False) -> Forgotten:
        """Erase words everywhere in this home for good, and search again to prove it."""
        ...

    async def pending(self) -> builtins.list[Pending]:
        """What waits, the oldest first."""
        ...

    async def accept(self, item: str) -> Saved:
        """Save something that waits."""
        ...

    async def reject(self, item: str) -> None:
        """Drop something that waits."""
        ...

    async def check(self, *, fix: bool = False) -> Checked:
        """The faults of this memory; with `fix` also the repairs that lose nothing."""
        ...

    async def dream(self, *, model: Model | None = None, dry_run: bool = False) -> Dreamt:
        """Tidy the memory, by rules or by a model handed in."""
        ...

    @property
    def tools(self) -> Toolset:
        """Tools for the model: `search_memory`, and `remember`, which keeps a text."""
        ...

    @property
    def folder(self) -> Path:
        """Where the Markdown files lie, or will once there are some."""
        ...

    async def close(self) -> None:
        """End it: from now on every use raises. May be called again."""
        ...

    async def __aenter__(self) -> AsyncMemory: ...

    async def __aexit__(self, *ended: object) -> None: ...
