"""A session: one conversation, its layers, its background work.

    async with Session.open(project, model="claude-opus-5-5") as s:
        await s.add(user("Fix the failing test"))
        while True:
            reply = await s.observe(await my_client.send(await s.prepare()))
            if not reply.tool_calls:
                break
            await s.add(*run_tools(reply))
        await s.end_turn()

It never owns the loop. What is open twice is open once: a second opener is told who
holds the session, and may read it or go on in a copy of its own.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import anyio
from anyio import to_thread

import reverie
from reverie import layers
from reverie.alone import alone
from reverie.clock import SystemClock
from reverie.errors import InvalidInput, NotFound, PromptTooLong
from reverie.layers.compaction import STOPPED, broken
from reverie.layers.dreaming import NAME as DREAM
from reverie.session.background import AFTER_A_RESPONSE, AFTER_A_TURN, Consider
from reverie.session.budget import Budget
from reverie.session.compaction import compacting
from reverie.session.compaction.summariser import NamedSummariser, summariser_for
from reverie.session.conversation import Log
from reverie.session.dream.watch import DreamWatch
from reverie.session.fork import Fork, Parent
from reverie.session.head import Content, Head, resumed_head
from reverie.session.jobs import Jobs, process_limit
from reverie.session.library import Begun, Library
from reverie.session.recall.recall import Recall
from reverie.session.recall.select import begins_turn, spoken
from reverie.settings import Flags, Settings, environment, load
from reverie.store import home as places
from reverie.store.disk import NoDisk, SessionDisk
from reverie.store.files import Folder
from reverie.store.lists import learned_window
from reverie.store.memories import Memories
from reverie.tools.runner import MakeGuard, NoTools
from reverie.transcript.fold import apply
from reverie.transcript.records import Entry, Failed, Rewound, Started, TurnEnded
from reverie.transcript.request import MAIN, Request, Task
from reverie.wire.given import Addable, Observable
from reverie.world import (
    BOUND_THEMSELVES,
    Clock,
    Model,
    Notice,
    Reply,
    Say,
    World,
    say_nothing,
)


class Session(Parent):
    """An open session. Use `Session.open`."""

    id: str
    library: Library
    jobs: Jobs
    memories: Memories | None
    interactive: bool
    home: Path | None  # where what is learned is kept; None in a private session
    dreams: DreamWatch
    recall: Recall | None = None
    _named: NamedSummariser | None = None  # the model of the setting `summary_model`
    _shortened: bool = False  # the last request stands in for one that was too long
    _disk: SessionDisk | NoDisk
    _first_byte: anyio.Event

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        project: str | Path = ".",
        *,
        model: str | Model = "",
        system: Content = "",
        tools: Sequence[Mapping[str, Any]] = (),
        context: Content = "",
        options: Mapping[str, Any] | None = None,
        resume: str = "",
        on_held: Literal["refuse", "fork"] = "refuse",
        private: bool = False,
        home: str | Path | None = None,
        environ: Mapping[str, str] | None = None,
        settings: Settings | None = None,
        clock: Clock | None = None,
        say: Say = say_nothing,
        tool_limits: Mapping[str, int | None] | None = None,
        guards: MakeGuard = NoTools,
        memories: Memories | None = None,
        selector: Model | None = None,
        summariser: Model | None = None,
        interactive: bool = True,
        new_id: Callable[[], str] = lambda: str(uuid4()),
    ) -> AsyncGenerator[Session]:
        """Start a session in a project, or go on with one (`resume=ID`)."""
        known = environment() if environ is None else environ
        base = Path(home) if home is not None else places.home(known)
        root = places.canonical_root(_absolute(project))
        loaded = load(known, home=base, root=root)
        for problem in loaded.problems:
            say(Notice("settings", str(problem), "warning"))
        numbers = settings or loaded.settings
        library = Library.of(base, root, known, claim=not private)
        begun = library.begin(resume, on_held, private)
        world = World(
            clock or SystemClock(),
            begun.disk,
            Flags(known, home=base, root=root, settings=numbers),
            numbers,
            None if isinstance(model, str) else model,
            say=say,
            model_name=_name(model),
            betas=tuple((options or {}).get("betas", ())),
            learned_window=learned_window(base, _name(model)),
            tool_limits={**BOUND_THEMSELVES, **(tool_limits or {})},
        )
        session = cls._of(begun, library, world, guards, new_id)
        session.memories = None if private else memories
        session.interactive = interactive
        session.home = None if private else base
        session.budget = None if private else Budget(Folder(base), numbers, world.clock)
        session._summarise(summariser, known)
        head = Head(_name(model), system, tools, context, options)
        try:
            async with anyio.create_task_group() as group:
                limit = process_limit(numbers.background_processes)
                session.jobs = Jobs(group, limit, say, session._job_failed)
                here = _absolute(project)
                session.recall = Recall.of(session, group, here, selector=selector)
                try:
                    await session._begin(begun, head, root)
                    if session.recall is not None:
                        session.recall.warm()
                    yield session
                finally:
                    await session._close(numbers.extract_drain_seconds)
                    group.cancel_scope.cancel()
        except BaseExceptionGroup as many:  # jobs never raise: it is the caller's own error
            raise many.exceptions[0] from None

    @classmethod
    def _of(
        cls,
        begun: Begun,
        library: Library,
        world: World,
        guards: MakeGuard,
        new_id: Callable[[], str],
    ) -> Session:
        session = cls(
            begun.log,
            begun.disk,
            begun.transcript.view,
            world,
            when_added=layers.WHEN_ADDED,
            before_a_request=layers.BEFORE_A_REQUEST,
            new_id=new_id,
        )
        session.id = begun.id
        session.dreams = DreamWatch()
        session.library = library
        session.guards = guards
        ask = partial(compacting.ask, session)
        session.world = replace(world, fork=session.run_fork, wait=session._wait, ask=ask)
        session._disk = begun.disk
        session._first_byte = anyio.Event()
        return session

    def _summarise(self, model: Model | None, environ: Mapping[str, str]) -> None:
        """Who writes summaries, where it is not the session's own model: one that was handed
        in, which is the caller's to close, or the one that a setting names."""
        world = self.world
        if model is None:
            self._named = summariser_for(world.settings, environ, world.window, world.clock)
            self.world = replace(world, summariser=self._named)
            return

        async def given() -> Model:
            return model

        self.world = replace(world, summariser=given)

    async def _begin(self, begun: Begun, head: Head, root: Path) -> None:
        for fault in begun.transcript.faults:
            self.world.say(Notice("transcript", fault, "warning"))
        if self.view.started is None or begun.copied:
            await self.append(
                Started(self.id, str(root), str(root), reverie.__version__, self.source)
            )
        if broken(self.view, self.world):
            failures = self.view.compaction_failures
            self.world.say(Notice("compaction", STOPPED.format(failures=failures), "warning"))
        recorded = self.view.head
        if recorded is None:
            await self.append(head.record())
        else:
            changed = resumed_head(recorded, head)
            if changed is not None:
                self.world.say(Notice("transcript", f"resumed with another {changed.reason}"))
                await self.append(changed)

    async def _close(self, seconds: float) -> None:
        with anyio.CancelScope(shield=True):
            if self.recall is not None:
                self.hand(*self.recall.ended())
            self.jobs.cancel(DREAM)  # nobody waits for one; the next session may dream again
            left = await self.jobs.drain(seconds)
            for name in left:
                self.world.say(Notice(name, "given up at exit; it may run again later", "warning"))
            self._in_flight = False
            try:
                await self.flush()
                await self.sync()
            finally:
                self.close()
                if self._named is not None:
                    await self._named.aclose()

    def close(self) -> None:
        """Give back the transcript's lock and every open folder."""
        super().close()
        self.library.close()
        if self.recall is not None:
            self.recall.close()
        if self.budget is not None:
            self.budget.close()

    def _job_failed(self, name: str, error: str) -> None:
        self.hand(Failed(name, error))

    async def _wait(self, name: str, seconds: float) -> bool:
        done = await self.jobs.wait(name, seconds)
        await self.flush()  # what it handed in reaches the next layer's view
        return done

    async def _consider(self, pieces: Sequence[tuple[str, Consider]]) -> None:
        """Let each piece of background work see whether it is due; one that fails, fails alone."""
        for name, consider in pieces:
            _, error = await alone(consider(self), None)
            if error:
                self.world.say(Notice(name, f"it could not be started: {error}", "warning"))
                self.hand(Failed(name, error))

    # --- turns

    async def end_turn(
        self, outcome: Literal["completed", "cancelled", "limit"] = "completed"
    ) -> None:
        """The turn is over: what was said is on the disk."""
        await self.settled()
        self._shortened = False
        if self.recall is not None:
            await self.append(*self.recall.ended())
        await self.append(TurnEnded(outcome))
        await self.sync()
        if outcome == "completed":
            await self._consider(AFTER_A_TURN)

    async def add(self, *said: Addable) -> None:
        """Something new for the model. What a user says begins a turn, and recall looks."""
        begins = self.recall is not None and begins_turn(self.view)
        await super().add(*said)
        text = spoken(self.view) if begins else ""
        if self.recall is not None and text:
            self.recall.begin(self.view.leaf, text)

    async def rewind(self, to: str) -> None:
        """Go back to behind a message; what came after stays in the transcript."""
        if self.view.entries.place(to) is None:
            raise NotFound("no such message in this session", where=to)
        await self._append_at(to, Rewound("asked for"))

    async def _append_at(self, parent: str, record: Rewound) -> None:
        entry = Entry(self._new_id(), parent, self.world.clock.now(), record)
        async with self._lock:
            await to_thread.run_sync(self.write, [entry])
            self.view = apply(self.view, entry)

    async def set_head(self, head: Head, reason: str) -> None:
        """Another system prompt, tool set or model: an announced change."""
        await self.append(head.record(reason))

    # --- compaction

    async def compact(self, instructions: str = "", **part: Any) -> compacting.Compacted:
        """Put a summary in the place of the conversation, or of a part of it; `part` as
        `compacting.compact` takes it: `from_`, `up_to`, `by_provider`."""
        if self._in_flight:
            raise InvalidInput("a request is on its way", do="Observe its answer first")
        return await compacting.compact(self, instructions, **part)

    async def too_long(self, error: PromptTooLong) -> Request:
        """The provider refused the last request as too long: what to send instead, once."""
        again, self._shortened = self._shortened, True
        return await compacting.too_long(self, error, again=again)

    async def settled(self) -> None:
        """No request is on its way any more; what was handed in is appended."""
        self._in_flight = False
        self._first_byte.set()
        await self.flush()

    # --- forks

    async def prepare(self, task: Task = MAIN) -> Request:
        self._first_byte.set()  # who waits for an answer that never came goes on
        self._first_byte = anyio.Event()
        if self.recall is not None:
            await self.flush()
            seconds = self.world.settings.selector_milliseconds / 1_000
            await self.append(*await self.recall.ready(seconds))
        return await super().prepare(task)

    def responding(self) -> None:
        """The first byte of an answer is here: the prompt is in the provider's cache."""
        self._first_byte.set()

    async def observe(self, reply: Observable) -> Reply:
        found = await super().observe(reply)
        self._shortened = False
        self._first_byte.set()
        await self._consider(AFTER_A_RESPONSE)
        return found

    def agent_log(self, agent: str) -> Log:
        if isinstance(self._disk, NoDisk):
            return super().agent_log(agent)
        return self.library.agent_log(self.id, agent)

    async def fork(self, source: str) -> Fork:
        """A fork of the conversation, once its last request is in the provider's cache."""
        if self._in_flight and not self.view.is_fork:
            await self._first_byte.wait()
        return await super().fork(source)


def _absolute(project: str | Path) -> Path:
    return Path(os.path.abspath(project))


def _name(model: str | Model) -> str:
    return model if isinstance(model, str) else model.name
