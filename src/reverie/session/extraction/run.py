"""Layer 5 in a session: after a turn, a fork writes what is worth keeping.

One run is the same for a session that is open and for one that was recorded long ago: a fork, the
view it was made from, and the memory it is for. It writes drafts alone; `land` is what saves.

`consider` asks the gates and starts one job; a turn that ends during a run is kept, only the
newest, and looked at once after it. The cursor moves where a run came to its end, also to none;
where anything failed, was abandoned at exit or could not land, it stays, and the next run starts
from it. What the main agent saved itself is told to the fork, and nothing is passed over for it.
Nothing here raises into a turn.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from reverie.errors import BudgetExceeded, NotAvailable
from reverie.light import dataclass
from reverie.session import worker as forks
from reverie.session.extraction import acceptance, drafts, repetition, speakers
from reverie.session.extraction import trigger as layer
from reverie.session.extraction.acceptance import (
    ExtractionResult,
    TextSource,
    format_reasons,
)
from reverie.session.extraction.drafts import MemoryDraft, PrivateGuard
from reverie.session.extraction.speakers import ConversationText
from reverie.session.extraction.trigger import (
    NAME,
    NewMessages,
    head_text,
    recalled_texts,
    shown_texts,
)
from reverie.session.worker import Fork, Worker
from reverie.store import transaction
from reverie.store.memory_store import MemoryStore
from reverie.store.paths import beneath
from reverie.store.transaction import JobFence
from reverie.toolbox.file_access import UnconfinedFiles
from reverie.toolbox.guard import READING, SHELL, WRITING, Guards
from reverie.toolbox.kit import standard
from reverie.toolbox.sandbox import Sandbox
from reverie.toolbox.tool import ToolContext
from reverie.topics.manifest import ManifestLine
from reverie.transcript.records import Extracted, Failed
from reverie.transcript.tasks import ExtractTask, KnownMemory
from reverie.transcript.view import View
from reverie.world import ForkSpec, Notice, Say, World

if TYPE_CHECKING:
    from reverie.session.host import JobContext

__all__ = [
    "ExtractionContext",
    "ExtractionRun",
    "format_reasons",
    "guards_at",
    "inside",
    "land",
    "record",
    "run",
    "say",
]
TOOLS = (*sorted(READING), *sorted(WRITING), SHELL)


@dataclass(frozen=True, slots=True)
class ExtractionContext:
    """What a run stands on: whose memory, whose words, which guards."""

    memories: MemoryStore
    world: World
    guards: Guards
    source: TextSource
    dry: bool = False
    fence: JobFence | None = None  # where it is a job that may be tried again

    @classmethod
    def of(cls, host: JobContext) -> ExtractionContext:
        """The ground of an open host."""
        if host.memories is None:  # pragma: no cover - the gates ask before
            raise ValueError("the session has no memory")
        guards = host.guards
        if not isinstance(guards, Guards):  # a caller's own loop: our tools, within our walls
            root = Path(host.view.started.project if host.view.started else os.getcwd())
            guards = guards_at(root, host.library.path, host.memories, host.world)
        team = bool(host.world.flags.get("team_memory"))
        source = TextSource(host.id, team=team)
        return cls(host.memories, host.world, guards, source)


def inside(memories: MemoryStore, cwd: str) -> Callable[[str], bool]:
    """Whether a path, as a tool was given it in `cwd`, leads into the memory folder."""
    root = Path(os.path.realpath(memories.root))

    def leads(path: str) -> bool:
        if "\0" in path:
            return False
        named = os.path.join(cwd, os.path.expanduser(path))
        return beneath(root, Path(os.path.realpath(named)))

    return leads


def guards_at(root: Path, sessions: Path, memories: MemoryStore, world: World) -> Guards:
    """Guards for a project without an agent's toolbox."""
    home = memories.home
    context = ToolContext(
        root, root, UnconfinedFiles(root), world.clock, settings=world.settings, say=world.say
    )
    refused = (home, Path(os.path.expanduser("~")) / ".ssh")
    return Guards(standard(), lambda: context, (root, sessions), refused, Sandbox())


@dataclass(frozen=True, slots=True)
class ExtractionRun:
    """What a fork left behind."""

    drafts: tuple[MemoryDraft, ...]
    heard: Callable[[], ConversationText]  # worked out where there is something to judge
    text: str = ""
    rounds: int = 0
    denials: tuple[str, ...] = field(default=())


async def run(
    child: Worker, view: View, fresh: NewMessages, ground: ExtractionContext
) -> ExtractionRun:
    """Run the fork to its end; nothing is saved yet."""
    memories, settings = ground.memories, ground.world.settings
    records = await to_thread.run_sync(memories.folder.scan)
    folder = str(memories.root)
    shown, head = records[: settings.recall_manifest_files], layer.head_words(view)
    manifest = [one.line for one in shown if not layer.is_listed(head, one.key, one.description)]
    leads_in = inside(memories, view.started.cwd if view.started else "")
    by_rules = _by_rules(ground.world)
    spec = ForkSpec(
        NAME,
        layer.extraction_prompt(
            fresh,
            folder,
            manifest,
            settings.extract_rounds,
            head=head,
            listed=len(shown) - len(manifest),
            hidden=len(records) - len(shown),
            saved=layer.saved_since(fresh, leads_in),
            dates=layer.dates(layer.user_words(view, fresh.items)),
            pointers=not layer.skips_index(ground.world),
        ),
        _task(view, fresh, folder, records, by_rules=by_rules),
        settings.extract_rounds,
        TOOLS,
        (folder,),
    )
    model = ground.world.model
    writes = (
        model is not None and model.capabilities.tools and layer.tools(view) & set(layer.WRITERS)
    )
    if model is not None and not (by_rules or writes):
        return await _in_words(child, spec, view, fresh, ground)
    guard = PrivateGuard.of(ground.guards, spec)
    await to_thread.run_sync(
        guard.note_shown, memories.root, shown_texts(view), partial(drafts.content, memories)
    )
    try:
        done = await forks.run(
            child, spec, ground.world.model, guard, guard.begin_round, lambda: guard.done
        )
        guard.check_disk()
    finally:
        guard.close()
    denials = tuple(f"{one.tool}: {one.reason}" for one in guard.denials)
    return ExtractionRun(
        guard.drafts, partial(speakers.heard_words, view, fresh), done.text, done.rounds, denials
    )


def _by_rules(world: World) -> bool:
    """Whether fixed rules do the work: they may use our tools, which nobody has to be told of."""
    return world.model is not None and world.model.capabilities.rules


async def _in_words(
    child: Worker, spec: ForkSpec, view: View, fresh: NewMessages, ground: ExtractionContext
) -> ExtractionRun:
    """The same where the conversation has no tool to write with."""
    model, task = ground.world.model, spec.task
    if model is None or not isinstance(task, ExtractTask):  # pragma: no cover - asked before
        raise NotAvailable("there is no model to run a background agent with", where=NAME)
    found = await drafts.write_drafts(
        child, model, spec.instruction, task, ground.memories, spec.rounds, shown_texts(view)
    )
    heard = partial(speakers.heard_words, view, fresh)
    return ExtractionRun(found.drafts, heard, "", found.rounds, found.denials)


def _task(
    view: View,
    fresh: NewMessages,
    folder: str,
    records: Sequence[ManifestLine],
    *,
    by_rules: bool,
) -> ExtractTask:
    words = layer.user_words(view, fresh.items)
    return ExtractTask(
        folder=folder,
        since=fresh.since,
        times=tuple((one.source, one.at) for one in words),
        memories=tuple(
            KnownMemory(one.key, one.type, "", "", one.modified)  # its name alone is taken
            if one.superseded
            else KnownMemory(one.key, one.type, one.name, one.description, one.modified)
            for one in records
        ),
        injected=tuple(recalled_texts(view)),
        instructions=head_text(view),
        any_tool=by_rules,
    )


async def land(run: ExtractionRun, ground: ExtractionContext) -> ExtractionResult:
    """Save what the run wrote, through memory's own door."""

    def work() -> ExtractionResult:
        # Its own way in: who writes is kept with the door, and the main agent uses the other.
        with _same(ground.memories, ground.world) as memories, _in_time(memories, ground.fence):
            pointers = not layer.skips_index(ground.world)
            return acceptance.land(
                run.drafts, memories, run.heard(), ground.source, dry=ground.dry, pointers=pointers
            )

    return await to_thread.run_sync(work) if run.drafts else ExtractionResult()


@contextmanager
def _in_time(memories: MemoryStore, fence: JobFence | None) -> Generator[None]:
    """Nobody else lands meanwhile, and a try that came too late does not."""
    if fence is None:
        yield
        return
    with memories.folder.locked():
        transaction.check(memories, fence)
        yield


def _same(memories: MemoryStore, world: World) -> MemoryStore:
    own = MemoryStore(
        memories.root,
        memories.beside.root,
        memories.home,
        now=world.clock.now,
        say=world.say,
        settings=world.settings,
    )
    own.project = memories.project  # whose rules are compiled when it closes
    return own


def record(last: str, landed: ExtractionResult) -> Extracted:
    """The cursor's new place, and what came of it."""
    parts = [f"{len(landed.queued)} wait for review"] if landed.queued else []
    parts += [f"not saved: {format_reasons(landed.refused)}"] if landed.refused else []
    parts += [f"unverified: {', '.join(landed.unverified)}"] if landed.unverified else []
    written = (*landed.written, *landed.unverified)
    return Extracted(last, "written" if written else "nothing", written, "; ".join(parts))


def say(landed: ExtractionResult, say: Say) -> None:
    """What a person is told: the topic files that were written, and what was not."""
    if landed.written:
        say(Notice(NAME, f"remembered: {', '.join(landed.written)}"))
    if landed.unverified:
        keys = ", ".join(landed.unverified)
        text = f"kept without a pointer until you review it, for tools or files said so: {keys}"
        say(Notice(NAME, text, "warning"))
    if landed.queued:
        keys = ", ".join(landed.queued)
        text = f"from what tools or files said, waiting for your review: {keys}"
        say(Notice(NAME, text, "warning"))
    if landed.refused:
        say(Notice(NAME, f"not saved: {format_reasons(landed.refused)}", "warning"))


# --- behind a turn


_cursor: ContextVar[str] = ContextVar("reverie.extracted", default="")
"""Where the run before this one in the same job ended; its record may still wait to be joined."""


async def consider(host: JobContext, *, last: bool = False) -> None:
    """Start an extraction where one is due. A model is asked where there is something to keep;
    else the turn waits, for the next, an idle pause or the session's end (`last`)."""
    why = layer.why_not_due(
        host.view,
        host.world,
        has_memory=host.memories is not None,
        interactive=host.interactive,
        in_words=not isinstance(host.guards, Guards),
    )
    model = host.world.model
    if why or model is None or host.view.sent is None:
        return
    if (last or not model.capabilities.free) and not layer.asks_now(host.view, last=last):
        if not last:
            host.when_idle(partial(consider, host, last=True))
        return

    async def work() -> None:
        await _extract(host)

    host.jobs.start(NAME, work)


async def _extract(host: JobContext) -> None:
    """One run, from the cursor to the newest message."""
    if _passed_over(host, host.view) or host.memories is None:
        return
    if _by_rules(host.world) and not _find_by_rules(host.view):
        await _look_without_fork(host)
        return
    try:
        async with host.forked(NAME) as child:
            view = host.view  # as it was when the fork began: nothing is awaited in between
            if not _passed_over(host, view):
                await _run(host, child, view)
    except BudgetExceeded as error:
        _say_once(host, str(error))


async def _run(host: JobContext, child: Fork, view: View) -> None:
    fresh = layer.fresh(view, _cursor.get())
    ground = ExtractionContext.of(host)
    done = await run(child, view, fresh, ground)
    with anyio.CancelScope(shield=True):  # what lands and the word that it did belong together
        landed = await land(done, ground)
        if landed.given_up:
            files = format_reasons(landed.given_up)
            host.world.say(Notice(NAME, f"left for the next time: {files}", "warning"))
            host.hand(Failed(NAME, f"files changed meanwhile: {files}"))
            return
        _advance_cursor(host, record(fresh.last, landed))
        say(landed, host.world.say)
        await count_repeats(view, fresh, ground, host.id)


def _find_by_rules(view: View) -> bool:
    """Whether the rules that would answer find anything: a fork is made only where they do."""
    from reverie.embedded.findings import find_facts
    from reverie.embedded.sentences import typed_turns

    fresh = layer.fresh(view, _cursor.get())
    said = {one.source: one.at for one in layer.user_words(view, fresh.items)}
    pieces = [p for item in fresh.items if item.role == "user" for p in item.pieces]
    return bool(find_facts(typed_turns(pieces, said)))


async def _look_without_fork(host: JobContext) -> None:
    view, fresh = host.view, layer.fresh(host.view, _cursor.get())
    with anyio.CancelScope(shield=True):
        _advance_cursor(host, Extracted(fresh.last, "nothing"))
        await count_repeats(view, fresh, ExtractionContext.of(host), host.id)


async def count_repeats(
    view: View, fresh: NewMessages, ground: ExtractionContext, session: str
) -> None:
    """Count what the user had to say again on the rules that say so already."""
    words = layer.user_words(view, fresh.items)

    def work() -> list[repetition.RepeatedRule]:
        with _same(ground.memories, ground.world) as own:
            return repetition.said_again(words, own, session)

    found = await to_thread.run_sync(work)
    for notice in repetition.notices(found):
        ground.world.say(notice)


def _passed_over(host: JobContext, view: View) -> bool:
    """Whether there is nothing to do: nobody said anything since, or, by flag, the agent saw to
    memory itself."""
    fresh = layer.fresh(view, _cursor.get())
    if not fresh.items or not fresh.last:
        return True
    if not fresh.has_words:
        _advance_cursor(host, Extracted(fresh.last, "nothing", why="nobody said anything"))
        return True
    if host.world.flags.get("extraction_exclusive") and host.memories is not None:
        leads_in = inside(host.memories, view.started.cwd if view.started else "")
        if layer.saved_since(fresh, leads_in):
            _advance_cursor(
                host, Extracted(fresh.last, "skipped", why="the agent saved memory itself")
            )
            return True
    return False


def _advance_cursor(host: JobContext, record: Extracted) -> None:
    _cursor.set(record.last)
    host.hand(record)


def _say_once(host: JobContext, told: str) -> None:
    """A budget that is used up is said once, and the session goes on."""
    for at in range(len(host.view.entries) - 1, -1, -1):
        record = host.view.entries[at].record
        if isinstance(record, Failed) and record.layer == NAME:
            if record.error == told:
                return
            break
    host.world.say(Notice(NAME, f"background work stopped: {told}", "warning"))
    host.hand(Failed(NAME, told))
