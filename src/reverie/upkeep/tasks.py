"""Background work as tasks: a dream, learning, hygiene and a sync, each over one memory.

A task is handed a place, a model and, where it is a job that may be tried again, its fence. It
opens the memory, does its work and says what came of it as a value: done, passed over or failed.
The session's own background work runs on the same functions below; `dream --all`, `memory learn`
and the fleet call these. A job that has landed before does nothing.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from anyio import to_thread

from reverie.errors import Held, NotFound, PathRefused
from reverie.light import dataclass
from reverie.memory.trust import Trust
from reverie.memory.versions import Origin
from reverie.store import fences
from reverie.store.addresses import address_folders
from reverie.store.fences import Fence
from reverie.store.memories import Memories, history_folder
from reverie.upkeep import transfer
from reverie.upkeep.memory import find_memory
from reverie.upkeep.place import ProjectPlace, find_session
from reverie.world import Model, Notice, Say, say_nothing

if TYPE_CHECKING:
    from reverie.session.budget import Budget
    from reverie.session.dream.branch import Dream
    from reverie.session.dream.run import Dreamer
    from reverie.session.extraction.past import Learned, LearnProgress, PastSession
    from reverie.session.extraction.run import ExtractionContext

Result: TypeAlias = Literal["done", "passed over", "failed"]
Shown: TypeAlias = "Callable[[Dream], None]"


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """What came of a task. `code` is one of few words; `reason` is for the people whose memory it
    is, and may quote it; `ident` names what was made."""

    result: Result
    code: str = ""
    reason: str = ""
    files: int = 0
    requests: int = 0
    cost: float = 0.0
    ident: str = ""


GONE = TaskOutcome("passed over", "no-memory", "it has no memory")
ALREADY = TaskOutcome("done", "already", "it was done before")


@dataclass(frozen=True, slots=True)
class TaskRun:
    """What every task is handed beside its place."""

    model: Model
    fence: Fence | None = None
    say: Say = say_nothing
    counted: bool = True  # in the day's budget of this home


@asynccontextmanager
async def entered(place: ProjectPlace, run: TaskRun) -> AsyncGenerator[Memories | TaskOutcome]:
    """The memory, or why there is nothing to do. Whoever has the memory just now is waited for
    beside the loop: other jobs and a worker's signs of life go on."""
    with ExitStack() as opened:
        yield await to_thread.run_sync(_enter, opened, place, run)


def _enter(opened: ExitStack, place: ProjectPlace, run: TaskRun) -> Memories | TaskOutcome:
    memories = opened.enter_context(find_memory(place, run.say))
    if memories is None:
        return GONE
    if run.fence is not None and not fences.enter(memories, run.fence):
        return ALREADY
    return memories


def _finished(memories: Memories, run: TaskRun) -> None:
    """A task that lands in several steps has come to its end."""
    if run.fence is not None:
        with memories.folder.locked():
            fences.check(memories, run.fence)
            fences.record(memories, run.fence)


# Where there is something to do


def roots(place: ProjectPlace) -> Iterator[Path]:
    """The projects of a home whose own folder is still there."""
    for owner, library in place.libraries():
        library.close()
        if owner and os.path.isdir(owner):
            yield Path(owner)


def memory_roots(place: ProjectPlace) -> Iterator[Path]:
    """The roots of all memories under a home: projects, and in them users and agents."""
    for root in roots(place):
        yield root
        kept = history_folder(place.home, root, place.environ).parent
        yield from address_folders(kept)


# Dreaming


async def dream_memory(
    place: ProjectPlace,
    run: TaskRun,
    *,
    due: bool = True,
    dry_run: bool = False,
    shown: Shown = lambda _: None,
) -> tuple[TaskOutcome, Dream | None]:
    """Tidy one memory, where it is `due` by its gates or whether it is or not."""
    async with entered(place, run) as memories:
        if isinstance(memories, TaskOutcome):
            return memories, None
        from reverie.upkeep.background import closing, dreaming

        settings = place.settings
        parts = (place, settings, memories, run.model, run.say)
        with dreaming(*parts, fence=run.fence, counted=run.counted) as dreamer:
            shut = dream_gates(place, memories, dreamer.clock.now()) if due else ""
            if shut:
                return TaskOutcome("passed over", "not-due", shut), None
            async with closing(dreamer):
                return await _dreamt(dreamer, run.fence, dry_run, shown)


async def _dreamt(
    dreamer: Dreamer, fence: Fence | None, dry_run: bool, shown: Shown
) -> tuple[TaskOutcome, Dream | None]:
    from reverie.session.dream.run import dream, told

    try:
        done = await dream(dreamer, "auto", dry_run=dry_run, shown=shown)
    except Held as error:
        return TaskOutcome("passed over", "held", error.what), None
    about = (told(done), len(done.changed), done.requests, done.weighted, done.id)
    if done.status in ("completed", "waiting"):
        return TaskOutcome("done", done.status, *about), done
    if fence is not None and fences.landed(dreamer.memories, fence.job):
        return ALREADY, done
    return TaskOutcome("failed", f"dream-{done.status}", *about), done


def dream_gates(place: ProjectPlace, memories: Memories, now: float) -> str:
    """Why no dream is due, or nothing."""
    from reverie.layers.dreaming import Gates
    from reverie.session.dream.watch import touched, undistilled
    from reverie.store.consolidation import Consolidation

    settings, library = place.settings, place.library()
    lock = Consolidation.of(memories.root, lambda: now, settings)

    def counted(since: float) -> int:
        return touched(library, since) if library else 0

    days = partial(undistilled, memories)
    return Gates(place.flags(), lock.last, counted, None, days).shut(settings, now)


# Learning


async def learn_session(
    place: ProjectPlace, run: TaskRun, given: str, *, size: int = 0
) -> TaskOutcome:
    """Learn what a session of this place holds; one shorter than `size` was changed since. What
    a job names is a session and never a file: who may queue one need not be able to read here."""
    async with entered(place, run) as memories:
        if isinstance(memories, TaskOutcome):
            return memories
        from reverie.upkeep.background import daily_budget, learning_context

        there = session_size(place, given)
        if there < max(size, 1):
            why = f"the transcript has {there:,} bytes, and had {size:,} when it was planned"
            return TaskOutcome("passed over", "transcript-shrank" if there else "no-session", why)
        settings = place.settings
        ground = learning_context(place, settings, memories, run.model, run.say, fence=run.fence)
        budget = daily_budget(place, settings, run.model) if run.counted else None
        try:
            done = await learn_past(_session_of(given, place), ground, budget)
        finally:
            if budget is not None:
                budget.close()
        about = (len(done.written), done.calls, done.cost, done.session)
        if done.stopped:
            code = "budget" if done.over_budget else "changed-meanwhile"
            return TaskOutcome("failed", code, done.stopped, *about)
        await to_thread.run_sync(_finished, memories, run)
        return TaskOutcome("done", "learned", "", *about)


async def learn_past(
    past: PastSession,
    ground: ExtractionContext,
    budget: Budget | None,
    step: LearnProgress | None = None,
) -> Learned:
    """Go through one recorded session."""
    from reverie.session.extraction.past import learn, unwatched
    from reverie.upkeep.background import learning_head

    return await learn(past, ground, learning_head(ground), budget, step or unwatched)


def session_size(place: ProjectPlace, session: str) -> int:
    """The bytes of a session's transcript; 0 where there is none."""
    library = place.library()
    if library is None:
        return 0
    try:
        return library.folder.stat(f"{session}.jsonl").size
    except (NotFound, PathRefused):
        return 0


def _session_of(given: str, place: ProjectPlace) -> PastSession:
    """The recorded session of this project by its id."""
    from reverie.session.extraction.past import PastSession

    library = place.library()
    session = find_session(library, given)
    entries = library.read(session).entries if library else ()
    return PastSession(session, entries, given, "reverie")


def past_of(given: str, place: ProjectPlace, say: Say = say_nothing) -> PastSession:
    """The recorded session in a file, or of this project by its id."""
    path = Path(given)
    if not path.exists():
        if path.name.endswith(transfer.ENDINGS) or len(path.parts) > 1:
            raise NotFound("There is no such file", where=given)
        return _session_of(given, place)
    from reverie.upkeep.past_files import past_in

    return past_in(path, lambda text: say(Notice("learn", text, "warning")))


# Hygiene and sync


async def tidy_memory(place: ProjectPlace, run: TaskRun) -> TaskOutcome:
    """Make the repairs that lose nothing and need no model."""
    from reverie.upkeep.check import fix_memory

    def work(memories: Memories) -> TaskOutcome:
        origin = Origin("check", Trust.USER, agent="hygiene", tool="check")
        done = fix_memory(memories, place, origin, run.fence)
        files = len(done.files) + len(done.removed)
        if done.failed and not done.left:
            return TaskOutcome("failed", "not-fixed", done.failed)
        if not done.group:
            _finished(memories, run)
        return TaskOutcome("done", "fixed" if files else "nothing-to-fix", "", files)

    async with entered(place, run) as memories:
        if isinstance(memories, TaskOutcome):
            return memories
        return await to_thread.run_sync(work, memories)


async def sync_memory(place: ProjectPlace, run: TaskRun) -> TaskOutcome:
    """Take what teammates wrote, and push what is new here."""
    from reverie.session.team import TeamPlace, missing, sync_team

    team = TeamPlace(place.home, place.root, place.environ, place.settings, place.flags())
    why = missing(team)
    if why:
        return TaskOutcome("passed over", "no-team", why[0])

    def work(memories: Memories) -> TaskOutcome:
        done = sync_team(memories, team)
        _finished(memories, run)
        return TaskOutcome("done", "synced", "", len(done.pulled) + len(done.pushed))

    async with entered(place, run) as memories:
        if isinstance(memories, TaskOutcome):
            return memories
        return await to_thread.run_sync(work, memories)
