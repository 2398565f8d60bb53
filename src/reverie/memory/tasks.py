"""Background work as tasks: a dream, learning, hygiene and a sync, each over one memory.

A task is handed a place, a model and, where it is a job that may be tried again, its fence. It
opens the memory, does its work and says what came of it as a value: done, passed over or failed.
The session's own background work runs on the same functions below; `dream --all`, `memory learn`
and the fleet call these. A job that has landed before does nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from anyio import to_thread

from reverie.errors import Held, NotFound, PathRefused
from reverie.light import dataclass
from reverie.memory.check import fix_memory
from reverie.observer import SystemClock
from reverie.session import transfer
from reverie.session.budget import Budget
from reverie.session.compaction import NamedSummariser, summariser_for
from reverie.session.context import index_files
from reverie.session.dream.branch import Dream
from reverie.session.dream.context import DreamContext, guards_at
from reverie.session.dream.results import describe_dream
from reverie.session.dream.run import DreamTrigger, run_dream
from reverie.session.dream.schedule import DreamGates, count_undistilled_days, count_used_sessions
from reverie.session.extraction.acceptance import TextSource
from reverie.session.extraction.past_sessions import (
    LearnProgress,
    LearnResult,
    PastSession,
    count_learned_sessions,
    ignore_progress,
    learn,
)
from reverie.session.extraction.run import ExtractionContext
from reverie.session.library import SessionLibrary, find_session
from reverie.session.open_memory import find_memory
from reverie.session.options import RequestHead
from reverie.session.worker import worker_world
from reverie.settings.schema import read_object
from reverie.store import home as places
from reverie.store import transaction
from reverie.store.consolidation_lock import ConsolidationLock
from reverie.store.files import Folder
from reverie.store.home import address_folders
from reverie.store.memory_store import MemoryStore
from reverie.store.project import Project
from reverie.store.transaction import JobFence
from reverie.topics.trust import Trust
from reverie.topics.versions import Origin
from reverie.transcript.records import HeadSet
from reverie.world import Model, Notice, Say, say_nothing

Result: TypeAlias = Literal["done", "passed over", "failed"]
Shown: TypeAlias = Callable[[Dream], None]


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
    """What every task is handed beside its project."""

    model: Model
    fence: JobFence | None = None
    say: Say = say_nothing
    counted: bool = True  # in the day's budget of this home


@asynccontextmanager
async def enter_memory(project: Project, run: TaskRun) -> AsyncGenerator[MemoryStore | TaskOutcome]:
    """The memory, or why there is nothing to do. Whoever has the memory just now is waited for
    beside the loop: other jobs and a worker's signs of life go on."""
    with ExitStack() as opened:
        yield await to_thread.run_sync(_enter, opened, project, run)


def _enter(opened: ExitStack, project: Project, run: TaskRun) -> MemoryStore | TaskOutcome:
    memories = opened.enter_context(find_memory(project, run.say))
    if memories is None:
        return GONE
    if run.fence is not None and not transaction.enter(memories, run.fence):
        return ALREADY
    return memories


def _record_finish(memories: MemoryStore, run: TaskRun) -> None:
    """A task that lands in several steps has come to its end."""
    if run.fence is not None:
        with memories.folder.locked():
            transaction.check(memories, run.fence)
            transaction.record(memories, run.fence)


# Where there is something to do


def roots(project: Project) -> Iterator[Path]:
    """The projects of a home whose own folder is still there."""
    above = project.home / "projects"
    for name in sorted(os.listdir(above)) if above.is_dir() else ():
        owner = read_object(above / name / places.OWNER)[0].get("root")
        if isinstance(owner, str) and os.path.isdir(owner):
            yield Path(owner)


def memory_roots(project: Project) -> Iterator[Path]:
    """The roots of all memories under a home: projects, and in them users and agents."""
    for root in roots(project):
        yield root
        folder = places.find_project_folder(project.home, root)
        yield from address_folders(places.transcripts_folder(folder, project.home, project.environ))


# Dreaming


async def dream_memory(
    project: Project,
    run: TaskRun,
    *,
    due: bool = True,
    dry_run: bool = False,
    shown: Shown = lambda _: None,
) -> tuple[TaskOutcome, Dream | None]:
    """Tidy one memory, where it is `due` by its gates or whether it is or not."""
    async with enter_memory(project, run) as memories:
        if isinstance(memories, TaskOutcome):
            return memories, None
        parts = (project, memories, run.model, run.say)
        with open_dreamer(*parts, fence=run.fence, counted=run.counted) as dreamer:
            shut = dream_gates(project, memories, dreamer.clock.now()) if due else ""
            if shut:
                return TaskOutcome("passed over", "not-due", shut), None
            async with close_summariser(dreamer):
                trigger: DreamTrigger = "auto" if due else "manual"
                return await _dreamt(dreamer, run.fence, trigger, dry_run, shown)


async def _dreamt(
    dreamer: DreamContext,
    fence: JobFence | None,
    trigger: DreamTrigger,
    dry_run: bool,
    shown: Shown,
) -> tuple[TaskOutcome, Dream | None]:
    try:
        done = await run_dream(dreamer, trigger, dry_run=dry_run, shown=shown)
    except Held as error:
        return TaskOutcome("passed over", "held", error.what), None
    about = (describe_dream(done), len(done.changed), done.requests, done.weighted, done.id)
    if done.status in ("completed", "waiting"):
        return TaskOutcome("done", done.status, *about), done
    if fence is not None and transaction.is_committed(dreamer.memories, fence.job):
        return ALREADY, done
    return TaskOutcome("failed", f"dream-{done.status}", *about), done


@contextmanager
def open_dreamer(
    project: Project,
    memories: MemoryStore,
    model: Model,
    say: Say,
    *,
    fence: JobFence | None = None,
    counted: bool = True,
) -> Generator[DreamContext]:
    """Open everything a dream needs without a session. Its cost is `counted` in the day's budget of
    this home, unless whoever hands in the model counts it elsewhere."""
    clock, settings = SystemClock(), project.settings
    library = SessionLibrary.of(project)
    world = worker_world(model, settings, project.flags, clock, say=say)
    guards = guards_at(project.root, library.path, memories, world)
    budget = daily_budget(project, model) if counted else None
    try:
        yield DreamContext(
            memories,
            library,
            project.root,
            model,
            guards,
            clock,
            settings,
            project.flags,
            budget,
            summariser=summariser_for(settings, project.environ, world.window, clock),
            fence=fence,
        )
    finally:
        library.close()
        if budget is not None:
            budget.close()


@asynccontextmanager
async def close_summariser(dreamer: DreamContext) -> AsyncGenerator[None]:
    """Close the model for summaries that a dream opened, behind the dream."""
    try:
        yield
    finally:
        if isinstance(dreamer.summariser, NamedSummariser):
            await dreamer.summariser.aclose()


def dream_gates(project: Project, memories: MemoryStore, now: float) -> str:
    """Why no dream is due, or nothing."""
    settings, library = project.settings, SessionLibrary.find(project)
    lock = ConsolidationLock.of(memories.root, lambda: now, settings)

    def count_touched(since: float) -> int:
        own = count_used_sessions(library, since) if library else 0
        return max(own, count_learned_sessions(memories, since))  # a session may be in both

    days = partial(count_undistilled_days, memories)
    return DreamGates(project.flags, lock.last, count_touched, None, days).shut(settings, now)


def next_dream(project: Project, memories: MemoryStore) -> str:
    """Return why no dream is due now, also where one is running, or nothing."""
    seen = ConsolidationLock.of(memories.root, time.time, project.settings).look()
    if seen.state == "held":
        return f"one is running now, in process {seen.pid}"
    return dream_gates(project, memories, time.time())


# Learning


def daily_budget(project: Project, model: Model) -> Budget | None:
    """Return what may be spent today; None where nothing is billed."""
    if model.capabilities.free:
        return None
    return Budget(Folder(project.home), project.settings, SystemClock())


def learning_context(
    project: Project,
    memories: MemoryStore,
    model: Model,
    say: Say,
    *,
    dry: bool = False,
    fence: JobFence | None = None,
) -> ExtractionContext:
    """What an extraction over a past session stands on."""
    world = worker_world(model, project.settings, project.flags, SystemClock(), say=say)
    return ExtractionContext(memories, world, TextSource(""), dry, fence)


def learning_head(context: ExtractionContext) -> HeadSet:
    """The head of the conversation in which it is done."""
    index = "\n\n".join(one.text for one in index_files(context.memories.folder))
    return RequestHead(context.world.model_name, context=index).record("learn")


async def learn_session(
    project: Project, run: TaskRun, given: str, *, size: int = 0
) -> TaskOutcome:
    """Learn what a session of this place holds; one shorter than `size` was changed since. What
    a job names is a session and never a file: who may queue one need not be able to read here."""
    async with enter_memory(project, run) as memories:
        if isinstance(memories, TaskOutcome):
            return memories
        there = session_size(project, given)
        if there < max(size, 1):
            why = f"the transcript has {there:,} bytes, and had {size:,} when it was planned"
            return TaskOutcome("passed over", "transcript-shrank" if there else "no-session", why)
        ground = learning_context(project, memories, run.model, run.say, fence=run.fence)
        budget = daily_budget(project, run.model) if run.counted else None
        try:
            done = await learn_past(_session_of(given, project), ground, budget)
        finally:
            if budget is not None:
                budget.close()
        about = (len(done.written), done.calls, done.cost, done.session)
        if done.stopped:
            code = "budget" if done.over_budget else "changed-meanwhile"
            return TaskOutcome("failed", code, done.stopped, *about)
        await to_thread.run_sync(_record_finish, memories, run)
        return TaskOutcome("done", "learned", "", *about)


async def learn_past(
    past: PastSession,
    ground: ExtractionContext,
    budget: Budget | None,
    step: LearnProgress | None = None,
) -> LearnResult:
    """Go through one recorded session."""
    return await learn(past, ground, learning_head(ground), budget, step or ignore_progress)


def session_size(project: Project, session: str) -> int:
    """The bytes of a session's transcript; 0 where there is none."""
    library = SessionLibrary.find(project)
    if library is None:
        return 0
    try:
        return library.folder.stat(f"{session}.jsonl").size
    except (NotFound, PathRefused):
        return 0


def _session_of(given: str, project: Project) -> PastSession:
    """The recorded session of this project by its id."""
    library = SessionLibrary.find(project)
    session = find_session(library, given)
    entries = library.read(session).entries if library else ()
    return PastSession(session, entries, given, "reverie")


def past_of(given: str, project: Project, say: Say = say_nothing) -> PastSession:
    """The recorded session in a file, or of this project by its id."""
    path = Path(given)
    if not path.exists():
        if path.name.endswith(transfer.ENDINGS) or len(path.parts) > 1:
            raise NotFound("There is no such file", where=given)
        return _session_of(given, project)
    return transfer.past_in(path, lambda text: say(Notice("learn", text, "warning")))


# Hygiene and sync


async def tidy_memory(project: Project, run: TaskRun) -> TaskOutcome:
    """Make the repairs that lose nothing and need no model."""

    def work(memories: MemoryStore) -> TaskOutcome:
        origin = Origin("check", Trust.USER, agent="hygiene", tool="check")
        done = fix_memory(memories, project, origin, run.fence)
        files = len(done.files) + len(done.removed)
        if done.failed and not done.left:
            return TaskOutcome("failed", "not-fixed", done.failed)
        if not done.group:
            _record_finish(memories, run)
        return TaskOutcome("done", "fixed" if files else "nothing-to-fix", "", files)

    async with enter_memory(project, run) as memories:
        if isinstance(memories, TaskOutcome):
            return memories
        return await to_thread.run_sync(work, memories)


async def sync_memory(project: Project, run: TaskRun) -> TaskOutcome:
    """Take what teammates wrote, and push what is new here."""
    from reverie.session.team import missing, sync_team

    why = missing(project)
    if why:
        return TaskOutcome("passed over", "no-team", why[0])

    def work(memories: MemoryStore) -> TaskOutcome:
        done = sync_team(memories, project)
        _record_finish(memories, run)
        return TaskOutcome("done", "synced", "", len(done.pulled) + len(done.pushed))

    async with enter_memory(project, run) as memories:
        if isinstance(memories, TaskOutcome):
            return memories
        return await to_thread.run_sync(work, memories)
