"""Recall: at the start of a turn, the memories that clearly help with what the user just said;
at a tool boundary, those that name what the calls touched.

The look begins beside the model's work: a request takes a selection that is ready, waiting for
the local selector a moment at the turn's first, longer at the session's first, and for a model
not at all. Where a model selects, the turn's first request has the local choice, so that a turn
without a tool call has its memories too; what the model adds comes with a later one. A selection
joins the newest message that was not sent yet, or is dropped with its turn.
What became of every candidate is in the ledger. A look that fails or hangs, fails or hangs alone.

Nothing here changes a memory, and nothing is put into a message that was sent.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import anyio
from anyio import to_thread

from reverie.concurrency import alone
from reverie.errors import StoreError
from reverie.recall import gate
from reverie.session.jobs import StartsTasks
from reverie.session.recall import selection as choice
from reverie.session.recall.excerpts import (
    INTRODUCTION,
    TOUCHED,
    RecalledMemory,
    RecalledNotes,
    attachment,
)
from reverie.session.recall.project_index import MemoryIndex, RankedMemories
from reverie.session.recall.query import ToolQuery
from reverie.session.recall.selection import RecallHistory, ask
from reverie.store.project import work_root
from reverie.store.recall.index import RecallHit
from reverie.transcript.records import Candidate, Failed, Recalled, Record
from reverie.transcript.tasks import RecallTask
from reverie.world import Model, Notice

if TYPE_CHECKING:
    from reverie.session.host import JobContext

T = TypeVar("T")

NAME = "recall"
TOLD = 10
"""Candidates that a ledger names beside those that were chosen."""
ENDED = "the turn ended first"
CHECK_SHARE = 0.7
"""The part of a local selector's time after which no more claims are checked."""
CHECK_LEAST = 0.002
CHECK_UNASKED = 0.2
"""Seconds for checking claims: at least so many, and where a model selects, which nobody awaits."""
FIRST = 0.25
"""Seconds that the first prompt of a session may wait for a local selector."""
CLOSING = 1.0
"""Seconds that closing waits for a look that was left behind."""


class CandidateSource(Protocol):
    """Where candidates come from; called in worker threads: `settle` beside a look, others in
    turn. `rehearse` is a look for nothing, so that the next one finds all it needs loaded."""

    def look(self, text: str, now: float, without: frozenset[str]) -> RankedMemories: ...
    def rehearse(self, now: float) -> RankedMemories: ...
    def settle(self) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class RecallSelection:
    """What a look came to."""

    considered: int = 0
    chosen: tuple[RecalledMemory, ...] = ()
    left: tuple[Candidate, ...] = ()
    selector: str = "embedded"
    why: str = ""


@dataclass
class _RecallRun:
    """A look under way, for one message."""

    message: str
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    some: anyio.Event = field(default_factory=anyio.Event)  # there is something to take
    done: anyio.Event = field(default_factory=anyio.Event)
    local: RecallSelection | None = None  # what stands in until a model has chosen
    selection: RecallSelection | None = None
    waited: bool = False
    touched: ToolQuery | None = None  # what a round of calls touched, where that is asked about
    before: _RecallRun | None = None  # the look for the same round's calls, that this adds to
    considered: int = 0
    taken: frozenset[str] = frozenset()  # files that the local choice brought

    def stand_in(self, selection: RecallSelection) -> None:
        self.local = selection
        self.some.set()

    def settle(self, selection: RecallSelection) -> None:
        kept = tuple(one for one in selection.chosen if one.key not in self.taken)
        self.selection = replace(selection, chosen=kept)
        self.some.set()
        self.done.set()


class Recall:
    """The recall of one session. `begin` at a turn's start, `ready` before each request,
    `ended` at its end; `close` with the session."""

    def __init__(
        self,
        host: JobContext,
        tasks: StartsTasks,
        *,
        finder: CandidateSource,
        notes: RecalledNotes,
        selector: Model | None = None,
    ) -> None:
        self._host = host
        self._tasks = tasks
        self._finder = finder
        self._notes = notes
        self._selector = selector
        self._turn = threading.Lock()
        self._look: _RecallRun | None = None
        self._is_first = True
        self._touched: set[str] = set()  # what was asked about already

    @classmethod
    def of(
        cls,
        host: JobContext,
        tasks: StartsTasks,
        cwd: Path,
        *,
        selector: Model | None = None,
    ) -> Recall | None:
        """The recall of a session; None where there is no memory to recall from. Memories are
        checked against the working tree around `cwd`."""
        memories, world = host.memories, host.world
        if memories is None or world.settings.memory_off():
            return None
        finder = MemoryIndex(
            memories.root, host.library.path, settings=world.settings, say=world.say
        )
        root, alone = work_root(cwd), finder.alone
        notes = RecalledNotes(memories, root, host.id, world.settings, alone)
        return cls(host, tasks, finder=finder, notes=notes, selector=selector)

    @property
    def index(self) -> MemoryIndex | None:
        """Where it looks, for others that search the same past; it closes with the session."""
        return self._finder if isinstance(self._finder, MemoryIndex) else None

    def warm(self) -> None:
        """Open the index, load what a look needs and bring it up to date before the first turn
        asks for it."""
        self._tasks.start_soon(self._rehearse)

    def close(self) -> None:
        """Close the index; a look that hangs keeps it."""
        if self._turn.acquire(timeout=CLOSING):
            self._finder.close()
            self._turn.release()

    # A turn

    def begin(self, message: str, text: str) -> None:
        """The user has said something, and a turn begins: look for what helps with it."""
        self._host.hand(*self.ended("another message came first"))
        host = self._host
        if not text or not host.world.flags.get(NAME):
            return
        look = self._look = _RecallRun(message)
        known = choice.past(host.view)
        why = choice.skip_reason(text, known, host.world.settings)
        if why:
            look.settle(RecallSelection(why=why))
            return
        self._tasks.start_soon(partial(self._run, look, text, known))

    def touch(self, message: str, found: ToolQuery) -> None:
        """Calls touch files, or have failed: look for what clearly belongs to them, each once,
        while they run. A look of the turn's own goes first."""
        host, before = self._host, self._look
        names = tuple(name for name in found.names if name not in self._touched)
        fresh = ToolQuery(names, found.errors)
        is_taken = before is not None and before.touched is None
        if is_taken or not fresh.text or not host.world.flags.get(NAME):
            return
        known = choice.past(host.view)
        if known.size >= host.world.settings.recall_total_bytes:
            return
        self._touched.update(names)
        look = self._look = _RecallRun(message, touched=fresh, before=before)
        self._tasks.start_soon(partial(self._run, look, fresh.text, known))

    async def ready(self, seconds: float) -> Sequence[Record]:
        """What joins the next request: an attachment and the ledger, or nothing yet. The first
        time of a turn a local selector is given so long to finish."""
        look = self._look
        if look is None:
            return ()
        if not look.some.is_set() and not look.waited:
            look.waited = True
            with anyio.move_on_after(max(seconds, FIRST) if self._is_first else seconds):
                await look.some.wait()
        self._is_first = False
        if not self._host.view.unsent():
            return ()
        if look.selection is None:
            return self._stand_in(look)
        self._look = None
        if look.touched is not None and not look.selection.chosen:
            return ()  # of a round that brought nothing, nothing is told
        if look.touched is not None:
            return self._records(self._host.view.leaf, look.selection, TOUCHED)
        return self._records(look.message, look.selection)

    def _stand_in(self, look: _RecallRun) -> Sequence[Record]:
        """The local choice, while a model has none."""
        local, look.local = look.local, None
        if local is None or not local.chosen:
            return ()
        look.taken = frozenset(one.key for one in local.chosen)
        return self._records(look.message, local)

    def ended(self, why: str = ENDED) -> Sequence[Record]:
        """The turn is over: a look under way is cancelled, a selection not taken is dropped."""
        look, self._look = self._look, None
        if look is None:
            return ()
        look.scope.cancel()
        found = look.selection
        if look.touched is not None and (found is None or not found.chosen):
            return ()
        if found is None:
            name = self._selector_name
            return (Recalled(look.message, look.considered, selector=name, why=why),)
        if not found.chosen:
            return (_ledger(look.message, found, ()),)
        dropped = [Candidate(c.key, c.score, "dropped", why) for c in found.chosen]
        return (_ledger(look.message, found, dropped),)

    @property
    def _selector_name(self) -> str:
        return "embedded" if self._selector is None else self._selector.name

    def _records(
        self, message: str, found: RecallSelection, introduction: str = INTRODUCTION
    ) -> Sequence[Record]:
        host = self._host
        read = choice.read_itself(host.view, self._notes.folder)
        told: list[Candidate] = []
        texts: list[str] = []
        for one in found.chosen:
            if one.key in read:
                told.append(Candidate(one.key, one.score, "left", "the agent has read it itself"))
                continue
            texts.append(one.text)
            told.append(Candidate(one.key, one.score, "injected", one.why, one.size))
        ledger = _ledger(message, found, told)
        return (attachment(texts, introduction), ledger) if texts else (ledger,)

    # The look

    async def _run(self, look: _RecallRun, text: str, known: RecallHistory) -> None:
        host = self._host
        with look.scope:
            found, error = await alone(self._select(look, text, known), RecallSelection())
            if error:
                host.world.say(Notice(NAME, f"nothing was recalled: {error}", "warning"))
                host.hand(Failed(NAME, error))
                found = RecallSelection(why=f"the look failed: {error}")
            look.settle(found)
        await self._settle_finder()

    async def _rehearse(self) -> None:
        now, nothing = self._host.world.clock.now(), RecallHistory()

        def look() -> RankedMemories:
            choice.skip_reason(NAME, nothing, self._host.world.settings)
            return self._finder.rehearse(now)

        found, _ = await alone(self._run_in_thread(look), RankedMemories(0))
        if self._look is None:  # else it loads the rest itself
            compose = partial(self._notes.compose, found.hits, nothing, now, CHECK_UNASKED)
            await alone(self._run_in_thread(compose), None)
        await self._settle_finder()

    async def _settle_finder(self) -> None:
        await alone(to_thread.run_sync(self._finder.settle, abandon_on_cancel=True), None)

    async def _run_in_thread(self, work: Callable[[], T]) -> T:
        """In a worker thread, one at a time; one that is cancelled goes on alone."""
        patience = self._host.world.settings.recall_timeout_seconds

        def in_turn() -> T:
            if not self._turn.acquire(timeout=patience):
                raise StoreError(f"an earlier look has not ended in {patience:g} s")
            try:
                return work()
            finally:
                self._turn.release()

        return await to_thread.run_sync(in_turn, abandon_on_cancel=True)

    async def _select(self, look: _RecallRun, text: str, known: RecallHistory) -> RecallSelection:
        now, started = self._host.world.clock.now(), anyio.current_time()
        looked = await self._run_in_thread(partial(self._finder.look, text, now, known.injected))
        look.considered = looked.considered
        if look.touched is None:
            clear = gate.joining(looked.hits)
        else:
            clear = await self._run_in_thread(partial(self._belonging, looked.hits, look.touched))
        compose = partial(self._notes.compose, clear, known, now, self._left(started))
        local = _selection(looked, await self._run_in_thread(compose), "embedded", "")
        if look.before is not None:
            await look.before.done.wait()
            local = _joined(look.before.selection or local, local)
        if self._selector is None or look.touched is not None:
            return local
        look.stand_in(local)
        chosen, why = await self._ask_selector(self._selector, text, known)
        if chosen is None:
            return replace(local, why="; ".join(filter(None, (why, local.why))))
        scored = {hit.file: hit for hit in looked.hits}
        hits = [scored.get(name, RecallHit(name, 0.0, "memory")) for name in chosen]
        compose = partial(self._notes.compose, hits, known, now, CHECK_UNASKED)
        composed = await self._run_in_thread(compose)
        return _selection(looked, composed, self._selector.name, why)

    def _belonging(self, hits: Sequence[RecallHit], touched: ToolQuery) -> list[RecallHit]:
        """Of memories that fit what calls touched, those that name a file of it or tell of an
        error that came back."""
        clear = (hit for hit in hits if hit.clear)
        return [hit for hit in clear if touched.is_in(self._notes.text(hit.file))]

    def _left(self, started: float) -> float:
        """Time for checking claims, so that the request that waits can still have them."""
        whole = self._host.world.settings.selector_milliseconds / 1_000
        whole = max(whole, FIRST) if self._is_first else whole
        return max(CHECK_LEAST, CHECK_SHARE * whole - (anyio.current_time() - started))

    async def _ask_selector(
        self, model: Model, text: str, known: RecallHistory
    ) -> tuple[tuple[str, ...] | None, str]:
        """The files that a model chose; None and the reason where it gave no answer in time."""
        host = self._host
        manifest = await self._run_in_thread(partial(self._notes.manifest, known.injected))
        most = host.world.settings.recall_files
        task = RecallTask(query=text, memories=manifest, tools=known.tools, files=most)
        return await ask(host, model, task)


def _selection(
    looked: RankedMemories,
    composed: tuple[Sequence[RecalledMemory], Sequence[Candidate]],
    selector: str,
    why: str,
) -> RecallSelection:
    chosen, left = composed
    told = {one.key for one in chosen} | {one.file for one in left}
    others = [hit for hit in looked.hits if hit.file not in told][:TOLD]
    unclear = [Candidate(hit.file, hit.score, "left", _unclear(hit, selector)) for hit in others]
    if not chosen:
        why = "; ".join(filter(None, (why, "nothing is clearly useful")))
    return RecallSelection(looked.considered, tuple(chosen), (*left, *unclear), selector, why)


def _joined(first: RecallSelection, then: RecallSelection) -> RecallSelection:
    """What two looks for one round came to, each memory once."""
    chosen = {one.key: one for one in (*then.chosen, *first.chosen)}
    left = [one for one in (*first.left, *then.left) if one.file not in chosen]
    both = {one.file: one for one in left}
    return replace(then, chosen=tuple(chosen.values()), left=tuple(both.values()))


def _unclear(hit: RecallHit, selector: str) -> str:
    if selector != "embedded":
        return "the model did not choose it"
    return "there are better ones" if hit.clear else "not clearly about it"


def _ledger(message: str, found: RecallSelection, chosen: Sequence[Candidate]) -> Recalled:
    candidates = (*chosen, *found.left)
    return Recalled(message, found.considered, candidates, found.selector, found.why)
