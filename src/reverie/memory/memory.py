"""Long-term memory in three lines: `Memory`, at one address.

    memory = reverie.Memory("path/to/project")
    memory.add("Integration tests hit a real database")
    memory.search("should I mock the db?")

Nothing is opened until it is used, and nothing is made until something is written. Writes go to
exactly the address, reads from it outwards. Each write is a version with its origin and is on the
disk when it returns, so a memory need not be closed; once closed it raises. What is refused is
refused in words about the text that was handed in: no error names a file that its caller did not.
Any thread may use it; `aio` is the same for tasks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any

from reverie.errors import InvalidInput, NotFound, ScanFailed, SecretFound, StoreError
from reverie.store.project import Project, check_part, folder_or_name
from reverie.topics.trust import Trust
from reverie.topics.versions import By, Origin

if TYPE_CHECKING:
    import builtins
    from datetime import datetime
    from pathlib import Path

    from reverie.memory.async_memory import AsyncMemory
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
    from reverie.session.open_memory import OpenMemory
    from reverie.session.report import Report
    from reverie.settings.catalog import Settings
    from reverie.store.memory_store import SaveOutcome, UndoOutcome
    from reverie.toolbox.toolset import Toolset
    from reverie.topics.entry import TopicFile
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

    _trust = Trust.USER
    _tool = "reverie.Memory"

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
        user, agent = user or "", agent or ""
        check_part(user, agent)
        folder, name = folder_or_name(project)
        at = partial(Project.at, folder or name, user=user, agent=agent, is_name=folder is None)
        self._find = partial(at, home=os.path.abspath(home) if home else None, settings=settings)
        self._label = " / ".join(p[:80] for p in (str(folder or name), user, agent) if p)
        self._writer = agent
        self._begin(on_notice)

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
        at = os.path.abspath(home) if home else None
        made._find = partial(Project.personal, home=at, settings=settings)
        made._label, made._writer = "personal", ""
        made._begin(on_notice)
        return made

    def _begin(self, on_notice: Callable[[Notice], object] | None) -> None:
        self._on_notice = on_notice
        self._known: Project | None = None
        self._closed = False

    # Keeping and finding

    def add(self, text: str, *, type: str = "", name: str = "", description: str = "") -> Saved:  # noqa: A002
        """Keep one text as it stands; it is on disk when this returns.

        `type` is `user`, `feedback`, `project` or `reference`; `name` and `description` are what
        the index shows, made from the text where they are not given. SecretFound where it holds
        one.
        """
        from reverie.memory.search import check_type

        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            given = text.__class__.__name__
            raise InvalidInput("What is added is a text", where=given, do="Give one string")
        check_type(type)
        if not text.strip():
            raise InvalidInput("There is nothing to add", do="Give a text that is not blank")
        self._check_text(text)
        with self._open() as one, _name_no_file():
            origin = self._origin("save")
            done = one.store.remember(text, origin, name=name, description=description, type=type)
            return _saved(one, done)

    def learn(
        self, messages: Sequence[object], *, model: Model | None = None
    ) -> builtins.list[Saved]:
        """Keep what is worth keeping in a conversation: by rules, or by a model handed in."""
        from reverie.memory import work

        return work.learn(self.__project__, messages, model, self._say)

    def learn_recorded(
        self, file: str | os.PathLike[str], *, model: Model | None = None
    ) -> builtins.list[Saved]:
        """The same from a recorded session of Claude Code, pi or Reverie, from where the last
        time ended."""
        from reverie.memory import work

        return work.learn_recorded(self.__project__, file, model, self._say)

    def record(
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
        conversation. `at` is when it was. Only with `learn` are memories made from it.
        """
        from reverie.memory import dialogues

        done = dialogues.record(self.__project__, messages, session, at, self._say)
        if learn:
            self.learn(dialogues.learned_from(messages))
        return done

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
        from reverie.memory import search as reading

        return reading.search(self.__project__, query, limit, kind, type, self._say)

    def ask(self, question: str) -> Answered:
        """An answer in the words of memories and past sessions, with sources; no model is asked."""
        from reverie.memory import search as reading

        return reading.ask(self.__project__, question, self._say)

    def context(self, query: str = "", *, tokens: int = 2000) -> str:
        """What a prompt should hold of this memory now: memories and turns of recorded
        conversations that fit a query, best first; without one the index."""
        from reverie.memory import context as prompt

        return prompt.context(self.__project__, query, tokens, self._say)

    def reminder(self, query: str, *, shown: str = "", tokens: int = 1000) -> str:
        """What is clearly about a query and does not stand in `shown` yet; "" for nothing."""
        from reverie.memory import context as prompt

        return prompt.reminder(self.__project__, query, tokens, shown, self._say)

    # One, all, change, remove

    def get(self, file: str) -> Found:
        """One memory, by its file or its name."""
        from reverie.memory import search as reading

        return reading.get(self.__project__, file, self._say)

    def list(self, *, type: str = "") -> builtins.list[Found]:  # noqa: A002
        """All memories, those of the narrowest part first, in it the newest first."""
        from reverie.memory import search as reading

        return reading.list_all(self.__project__, type, self._say)

    def update(self, file: str, text: str) -> Saved:
        """Put another text in a memory's place."""
        from reverie.store.fs import digest
        from reverie.store.memory_store import SaveOutcome

        if not text.strip():
            raise InvalidInput("There is nothing to keep", do="Give a text, or remove the memory")
        self._check_text(text)
        with self._find_file(file) as (one, topic), _name_no_file():
            made = topic.with_body(text)
            if made.data == topic.data:
                return _saved(one, SaveOutcome(topic.key))
            before = digest(topic.data)
            done = one.store.save(made.key, made.data, self._origin("edit"), expect=before)
            return _saved(one, done)

    def remove(self, file: str) -> Saved:
        """Take a memory out; `undo` brings it back."""
        from reverie.memory.values import Saved

        with self._find_file(file) as (one, topic):
            one.store.remove(topic.key, self._origin("remove"))
            text = topic.body.strip()
            return Saved("removed", topic.key, text, one.newest_change(topic.key))

    # What was

    def history(self, file: str = "") -> builtins.list[Change]:
        """Every version of one memory, or of all at this address, the oldest first."""
        from reverie.memory import search as reading

        return reading.history(self.__project__, file, self._say)

    def undo(self, change: str = "") -> Undone:
        """Take one change back, without an argument the newest; what others wrote since stays."""
        self._check_there("There is nothing to undo")
        with self._open() as one:
            return _undone(one, one.store.undo(change, self._origin("undo")))

    def revert(self, *, session: str = "", agent: str = "", tool: str = "") -> Undone:
        """Take back all that came from one session, agent or tool."""
        given: builtins.list[tuple[By, str]] = [
            ("session", session),
            ("agent", agent),
            ("tool", tool),
        ]
        wanted = [one for one in given if one[1]]
        if len(wanted) != 1:
            do = "Give session=, agent= or tool="
            raise InvalidInput("Exactly one origin is taken back", do=do)
        by, value = wanted[0]
        self._check_there(f"Nothing came from this {by}")
        with self._open() as one:
            return _undone(one, one.store.revert(by, value, self._origin("undo")))

    def forget(self, words: str, *, dry_run: bool = False) -> Forgotten:
        """Erase words everywhere in this home for good, and search again to prove it."""
        from reverie.memory import work

        return work.forget(self.__project__, words, dry_run=dry_run)

    # What waits for a person's look

    def pending(self) -> builtins.list[Pending]:
        """What waits, the oldest first."""
        from reverie.memory import search as reading

        return reading.pending(self.__project__, self._say)

    def accept(self, item: str) -> Saved:
        """Save something that waits."""
        self._check_there("Nothing of this name waits")
        with self._open() as one:
            one.record_changes()
            found = one.store.review.find(item)
            note = f"from {found.origin.agent or found.origin.kind}"
            return _saved(one, one.store.accept(found, self._origin("accept", note)))

    def reject(self, item: str) -> None:
        """Drop something that waits."""
        self._check_there("Nothing of this name waits")
        with self._open() as one:
            one.store.drop(one.store.review.find(item))

    # Upkeep

    def check(self, *, fix: bool = False) -> Checked:
        """The faults of this memory; with `fix` also the repairs that lose nothing."""
        from reverie.memory import work

        return work.check(self.__project__, self._origin("check"), self._say, fix=fix)

    def dream(self, *, model: Model | None = None, dry_run: bool = False) -> Dreamt:
        """Tidy the memory, by rules or by a model handed in."""
        from reverie.memory import work

        return work.dream(self.__project__, model, self._say, dry_run=dry_run)

    # The memory itself

    @property
    def tools(self) -> Toolset:
        """Tools for the model: `search_memory`, and `remember`, which keeps a text."""
        from reverie.memory.model_tools import memory_tools

        return memory_tools(self)

    @property
    def folder(self) -> Path:
        """Where the Markdown files lie, or will once there are some."""
        return self.__project__.memory_folder

    @property
    def aio(self) -> AsyncMemory:
        """The same methods for tasks, each through a worker thread."""
        from reverie.concurrency import AsyncFacade

        face: Any = AsyncFacade(self)
        return face

    def close(self) -> None:
        """End it: from now on every use raises. May be called again."""
        self._closed = True

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Memory {self._label}{' (closed)' if self._closed else ''}>"

    def __report__(self, since: float) -> Report:
        """What `reverie.report` tells of it."""
        from reverie.memory import search as report

        return report.of_memory(self.__project__, since, self._say)

    # What others of the library build on

    @property
    def __project__(self) -> Project:
        """Where it lies, and whose it is; found at the first use."""
        if self._closed:
            raise StoreError("This memory was closed", do="Make another one of the same address")
        if self._known is None:
            self._known = self._find()
        return self._known

    def __as_model__(self, tool: str, *, agent: str = "", is_trusted: bool = True) -> Memory:
        """Return it as a model writes to it: an agent's word, never a person's."""
        made = copy(self)
        made._trust = Trust.AGENT if is_trusted else Trust.UNTRUSTED
        made._tool, made._writer = tool, self._writer or agent
        return made

    def __of_user__(self, user: str) -> Memory:
        """Return the memory of one user at this address; itself where it is somebody's already."""
        if not user or self._find.keywords.get("user", "set") != "":
            return self
        made = copy(self)
        made._find, made._known = partial(self._find, user=user), None
        made._label = f"{self._label} / {user[:80]}"
        return made

    def _origin(self, action: str, note: str = "") -> Origin:
        who = f"agent:{self._writer}" if self._writer else "user"
        return Origin(action, self._trust, agent=who, tool=self._tool, note=note)

    def _say(self, notice: Notice) -> None:
        if self._on_notice is not None:
            self._on_notice(notice)
            return
        from reverie.world import log_notice

        log_notice(notice)

    @contextmanager
    def _open(self) -> Generator[OpenMemory]:
        """Open the memory, made where it is missing, with no other writer in it."""
        from reverie.session.open_memory import lend_memory

        with lend_memory(self.__project__, self._say) as one, one.store.folder.locked():
            yield one

    @contextmanager
    def _find_file(self, file: str) -> Generator[tuple[OpenMemory, TopicFile]]:
        """Open a memory of this very address."""
        from reverie.memory.search import missing

        if not self.__project__.has_memory:
            raise missing(file)
        with self._open() as one:
            try:
                topic = one.store.find(file)
            except NotFound as error:
                raise error if error.code == "ambiguous" else missing(file) from None
            yield one, topic

    def _check_there(self, what: str) -> None:
        if not self.__project__.has_memory:
            raise NotFound(what)

    def _check_text(self, text: str) -> None:
        """Refuse secrets and forgotten words by the lines of the text; the write looks again."""
        from reverie.secrets.scanner import check_clean
        from reverie.session.open_memory import lend_memory

        data = text.encode("utf-8", "replace")
        check_clean(data)
        with lend_memory(self.__project__, self._say) as one:
            one.store.forgotten.guard("", data)


@contextmanager
def _name_no_file() -> Generator[None]:
    """Refusals say what is wrong with the text, not in which file of ours it would have been."""
    from reverie.store.lists import ForgottenTextRefused

    try:
        yield
    except (SecretFound, ScanFailed, ForgottenTextRefused) as error:
        raise type(error)(error.what, do=error.do, code=error.code) from None
    except NotFound:
        raise
    except InvalidInput as error:
        where = "" if error.where.endswith(".md") else error.where
        raise type(error)(error.what, where=where, do=error.do, code=error.code) from None


def _saved(one: OpenMemory, done: SaveOutcome) -> Saved:
    """Return what became of a text, in plain types."""
    from reverie.memory.values import Saved

    if done.queued is not None:
        return Saved("queued", done.key, done.queued.text, reason=done.queued.reason)
    text = one.store.folder.read(done.key).body.strip()
    if done.saved is None:
        return Saved("unchanged", done.key, text, reason="it is there already")
    return Saved("saved", done.key, text, one.newest_change(done.key))


def _undone(one: OpenMemory, done: UndoOutcome) -> Undone:
    from reverie.memory.values import Undone
    from reverie.topics.entry import is_index

    files = tuple(each.key for each in done.done if not is_index(each.key))
    left = tuple((each.key, each.refusal) for each in done.refused if not is_index(each.key))
    steps = [version.id for version in one.store.history.log() if version.group == done.group]
    return Undone(files, left, steps[-1] if steps else "")
