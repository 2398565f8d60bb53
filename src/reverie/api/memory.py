"""Long-term memory in three lines: `Memory`, at one address.

    memory = reverie.Memory("path/to/project")
    memory.add("Integration tests hit a real database")
    memory.search("should I mock the db?")

Nothing is opened until it is used, and nothing is made until something is written. Writes go to
exactly the address, reads from it outwards. Any thread may use it; `aio` is the same for tasks.
What was acknowledged is on disk, so it need not be closed; once closed it raises.

The methods hand on; what they do stands in `reading`, `writing` and `work`, which are loaded when
they are due.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reverie.api.address import Address
from reverie.errors import StoreError

if TYPE_CHECKING:
    import builtins
    from pathlib import Path

    from reverie.api.async_memory import AsyncMemory
    from reverie.api.pool import Ground
    from reverie.api.reading import MemoryReader
    from reverie.api.report import Report
    from reverie.api.values import (
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
    from reverie.api.writing import Writer
    from reverie.settings import Settings
    from reverie.tools.toolset import Toolset
    from reverie.world import Model, Notice


class Memory:
    """The long-term memory at one address: a project, in it a user, for either an agent.

    - `project`: a folder, whose worktrees share one memory; or, where there is none, a name.
    - `user`, `agent`: a part of it for one user, or one kind of agent. Writes go to exactly this
      address; reads go outwards, to the user and the project, never sideways.
    - `home`: where files lie, in place of `REVERIE_HOME` and `~/.reverie`.
    - `settings`: a `Settings`, or a dict by the names of settings.
    - `on_notice`: is handed each notice; without it they are logged under `reverie`.
    """

    def __init__(
        self,
        project: str | os.PathLike[str] = ".",
        *,
        user: str = "",
        agent: str = "",
        home: str | os.PathLike[str] | None = None,
        settings: Settings | Mapping[str, object] | None = None,
        on_notice: Callable[[Notice], object] | None = None,
    ) -> None:
        self._begin(Address.of(project, user or "", agent or ""), home, settings, on_notice)

    def _begin(
        self,
        address: Address,
        home: str | os.PathLike[str] | None,
        settings: Settings | Mapping[str, object] | None,
        on_notice: Callable[[Notice], object] | None,
    ) -> None:
        self._address = address
        self._home = os.path.abspath(home) if home else ""
        self._settings = settings
        self._on_notice = on_notice
        self._known: tuple[Ground, ...] = ()
        self._closed = False

    @classmethod
    def personal(
        cls,
        *,
        home: str | os.PathLike[str] | None = None,
        settings: Settings | Mapping[str, object] | None = None,
        on_notice: Callable[[Notice], object] | None = None,
    ) -> Memory:
        """The memory of the person who runs the process, in all projects."""
        made = cls.__new__(cls)
        made._begin(Address(), home, settings, on_notice)
        return made

    # Keeping and finding

    def add(self, text: str, *, type: str = "", name: str = "", description: str = "") -> Saved:  # noqa: A002
        """Keep one text as it stands; it is on disk when this returns.

        `type` is `user`, `feedback`, `project` or `reference`; `name` and `description` are what
        the index shows, made from the text where they are not given. SecretFound where it holds
        one.
        """
        from reverie.api import writing

        return writing.add(self._writer(), text, type, name, description)

    def learn(
        self, messages: Sequence[object], *, model: Model | None = None
    ) -> builtins.list[Saved]:
        """Keep what is worth keeping in a conversation: by rules, or by a model handed in."""
        from reverie.api import work

        return work.learn(self._writer(), messages, model)

    def learn_recorded(
        self, file: str | os.PathLike[str], *, model: Model | None = None
    ) -> builtins.list[Saved]:
        """The same from a recorded session of Claude Code, pi or Reverie, from where the last
        time ended."""
        from pathlib import Path

        from reverie.api import work

        return work.learn_recorded(self._writer(), Path(file), model)

    def search(
        self,
        query: str,
        *,
        limit: int = 5,
        kind: str = "memory",
        type: str = "",  # noqa: A002
    ) -> builtins.list[Found]:
        """What answers a query, best first; `kind="session"` looks in past conversations.

        At most `limit`, of one `type` where it is given. `found.clear` says whether it is clearly
        about the query; the others are merely the nearest.
        """
        from reverie.api import reading

        return reading.search(self._reader(), query, limit, kind, type)

    def ask(self, question: str) -> Answered:
        """An answer in the words of memories and past sessions, with sources; no model is asked."""
        from reverie.api import answering

        return answering.ask(self._reader(), question)

    def context(self, query: str = "", *, tokens: int = 2000) -> str:
        """What a prompt should hold of this memory now: the index, and what fits the query."""
        from reverie.api import reading

        return reading.context(self._reader(), query, tokens)

    def reminder(self, query: str, *, shown: str = "", tokens: int = 1000) -> str:
        """What is clearly about a query and does not stand in `shown` yet; "" for nothing."""
        from reverie.api import reading

        return reading.notes(self._reader(), query, tokens, shown)

    # One, all, change, remove

    def get(self, file: str) -> Found:
        """One memory, by its file or its name."""
        from reverie.api import reading

        return reading.get(self._reader(), file)

    def list(self, *, type: str = "") -> builtins.list[Found]:  # noqa: A002
        """All memories, those of the narrowest part first, in it the newest first."""
        from reverie.api import reading

        return reading.entries(self._reader(), type)

    def update(self, file: str, text: str) -> Saved:
        """Put another text in a memory's place."""
        from reverie.api import writing

        return writing.update(self._writer(), file, text)

    def remove(self, file: str) -> Saved:
        """Take a memory out; `undo` brings it back."""
        from reverie.api import writing

        return writing.remove(self._writer(), file)

    # What was

    def history(self, file: str = "") -> builtins.list[Change]:
        """Every version of one memory, or of all at this address, the oldest first."""
        from reverie.api import reading

        return reading.history(self._reader(), file)

    def undo(self, change: str = "") -> Undone:
        """Take one change back, without an argument the newest; what others wrote since stays."""
        from reverie.api import writing

        return writing.undo(self._writer(), change)

    def revert(self, *, session: str = "", agent: str = "", tool: str = "") -> Undone:
        """Take back all that came from one session, agent or tool."""
        from reverie.api import writing

        return writing.revert(self._writer(), session, agent, tool)

    def forget(self, words: str, *, dry_run: bool = False) -> Forgotten:
        """Erase words everywhere in this home for good, and search again to prove it."""
        from reverie.api import work

        return work.forget(self._writer(), words, dry_run)

    # What waits for a person's look

    def pending(self) -> builtins.list[Pending]:
        """What waits, the oldest first."""
        from reverie.api import reading

        return reading.pending(self._reader())

    def accept(self, item: str) -> Saved:
        """Save something that waits."""
        from reverie.api import writing

        return writing.accept(self._writer(), item)

    def reject(self, item: str) -> None:
        """Drop something that waits."""
        from reverie.api import writing

        writing.reject(self._writer(), item)

    # Upkeep

    def check(self, *, fix: bool = False) -> Checked:
        """The faults of this memory; with `fix` also the repairs that lose nothing."""
        from reverie.api import work

        return work.check(self._writer(), fix)

    def dream(self, *, model: Model | None = None, dry_run: bool = False) -> Dreamt:
        """Tidy the memory, by rules or by a model handed in."""
        from reverie.api import work

        return work.dream(self._writer(), model, dry_run)

    # The memory itself

    @property
    def tools(self) -> Toolset:
        """Tools for the model: `search_memory`, and `remember`, which keeps a text."""
        from reverie.api.offering import memory_tools

        return memory_tools(self)

    @property
    def folder(self) -> Path:
        """Where the Markdown files lie, or will once there are some."""
        return self._grounds()[0].folder

    @property
    def aio(self) -> AsyncMemory:
        """The same methods for tasks, each through a worker thread."""
        from reverie.concurrency import Aio

        face: Any = Aio(self)
        return face

    def close(self) -> None:
        """End it: from now on every use raises. May be called again."""
        self._closed = True

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Memory {self._address}{' (closed)' if self._closed else ''}>"

    def __report__(self, since: float) -> Report:
        """What `reverie.report` tells of it."""
        from reverie.api import report

        return report.of_memory(self._reader(), since)

    def _reader(self) -> MemoryReader:
        from reverie.api.reading import MemoryReader

        return MemoryReader(self._grounds(), self._say)

    def _writer(self) -> Writer:
        from reverie.api.writing import Writer

        return Writer(self._grounds()[0], self._address.agent, self._say)

    def _grounds(self) -> tuple[Ground, ...]:
        if self._closed:
            raise StoreError("This memory was closed", do="Make another one of the same address")
        if not self._known:
            from reverie.api.pool import grounds

            self._known = grounds(self._address, self._home, self._settings)
        return self._known

    def _say(self, notice: Notice) -> None:
        if self._on_notice is not None:
            self._on_notice(notice)
            return
        from reverie.world import log_notice

        log_notice(notice)


def writer_for_a_model(memory: Memory, *, trusted: bool, tool: str, agent: str = "") -> Writer:
    """The writer of what a model asks to keep: an agent's word, never a person's."""
    from dataclasses import replace

    from reverie.memory.trust import Trust

    writer = memory._writer()  # pyright: ignore[reportPrivateUsage]
    level = Trust.AGENT if trusted else Trust.UNTRUSTED
    return replace(writer, trust=level, tool=tool, agent=writer.agent or agent)


def grounds_of(memory: Memory) -> tuple[Ground, ...]:
    """Where a memory lies and those around it, for what is made of one."""
    return memory._grounds()  # pyright: ignore[reportPrivateUsage]
