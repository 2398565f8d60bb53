"""Layer 5 in a session: after a turn, a fork writes what is worth keeping.

One run is the same for a session that is open and for one that was recorded long ago: the model is
asked, with the view it is about and the memory it is for. It writes drafts alone; `land` is what
saves. In an open session it is asked in a fork that reads the cached prefix, or apart with the new
messages abridged, whichever costs less by the model's prices; what was compared is kept in the
transcript of the conversation apart.

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
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from reverie.errors import BudgetExceeded, NotAvailable
from reverie.light import dataclass
from reverie.providers.costs import fork_usage
from reverie.session.abridgement import abridge
from reverie.session.extraction import acceptance, drafts, repetition, speakers
from reverie.session.extraction import trigger as layer
from reverie.session.extraction.acceptance import (
    ExtractionResult,
    TextSource,
    format_reasons,
)
from reverie.session.extraction.drafts import MemoryDraft
from reverie.session.extraction.speakers import ConversationText
from reverie.session.extraction.trigger import (
    NAME,
    NewMessages,
    head_text,
    recalled_texts,
    shown_texts,
)
from reverie.session.worker import Worker
from reverie.store import transaction
from reverie.store.memory_store import MemoryStore
from reverie.store.paths import beneath
from reverie.store.transaction import JobFence
from reverie.topics.manifest import ManifestLine
from reverie.transcript.blocks import estimate
from reverie.transcript.records import Extracted, Failed, Usage
from reverie.transcript.tasks import ExtractTask, KnownMemory
from reverie.transcript.view import View
from reverie.wire.request import so_far
from reverie.world import Notice, Say, World

if TYPE_CHECKING:
    from reverie.session.host import JobContext

__all__ = [
    "ExtractionContext",
    "ExtractionRun",
    "format_reasons",
    "inside",
    "land",
    "record",
    "run",
    "say",
]
MAX_LISTED = 60
"""Memories that a model is shown by name."""


@dataclass(frozen=True, slots=True)
class ExtractionContext:
    """What a run stands on: whose memory, whose words, which guards."""

    memories: MemoryStore
    world: World
    source: TextSource
    dry: bool = False
    fence: JobFence | None = None  # where it is a job that may be tried again

    @classmethod
    def of(cls, host: JobContext) -> ExtractionContext:
        """The ground of an open host."""
        if host.memories is None:  # pragma: no cover - the gates ask before
            raise ValueError("the session has no memory")
        team = bool(host.world.flags.get("team_memory"))
        return cls(host.memories, host.world, TextSource(host.id, team=team))


def inside(memories: MemoryStore, cwd: str) -> Callable[[str], bool]:
    """Whether a path, as a tool was given it in `cwd`, leads into the memory folder."""
    root = Path(os.path.realpath(memories.root))

    def leads(path: str) -> bool:
        if "\0" in path:
            return False
        named = os.path.join(cwd, os.path.expanduser(path))
        return beneath(root, Path(os.path.realpath(named)))

    return leads


@dataclass(frozen=True, slots=True)
class ExtractionRun:
    """What a fork left behind."""

    drafts: tuple[MemoryDraft, ...]
    heard: Callable[[], ConversationText]  # worked out where there is something to judge
    rounds: int = 0


async def run(
    child: Worker, view: View, fresh: NewMessages, ground: ExtractionContext
) -> ExtractionRun:
    """Ask the model to the end; nothing is saved yet."""
    model, memories = ground.world.model, ground.memories
    if model is None:  # pragma: no cover - asked before
        raise NotAvailable("there is no model to run a background agent with", where=NAME)
    records = await to_thread.run_sync(memories.folder.scan)
    apart = child.words is not None
    if apart:
        child.words = abridge(view, fresh.items)
    found = await drafts.write_drafts(
        child,
        model,
        _prompt(view, fresh, ground, records, abridged=apart),
        _task(view, fresh, str(memories.root), records),
        memories,
        ground.world.settings.extract_rounds,
        "" if apart else shown_texts(view),
    )
    heard = partial(speakers.heard_words, view, fresh)
    return ExtractionRun(found.drafts, heard, found.rounds)


def _prompt(
    view: View,
    fresh: NewMessages,
    ground: ExtractionContext,
    records: Sequence[ManifestLine],
    *,
    abridged: bool,
) -> str:
    settings, words = ground.world.settings, layer.user_words(view, fresh.items)
    shown = layer.manifest_lines(records, words, min(MAX_LISTED, settings.recall_manifest_files))
    leads_in = inside(ground.memories, view.started.cwd if view.started else "")
    return layer.extraction_prompt(
        fresh,
        shown,
        abridged=abridged,
        hidden=len(records) - len(shown),
        saved=layer.saved_since(fresh, leads_in),
        dates=layer.dates(words),
        pointers=not layer.skips_index(ground.world),
    )


def _by_rules(world: World) -> bool:
    """Whether fixed rules do the work: they read the conversation as it is."""
    return world.model is not None and world.model.capabilities.rules


def why_apart(view: View, world: World) -> str:
    """Why an extraction is asked outside the conversation, with both costs in input tokens; ""
    where a fork that reads the cached prefix costs less. What both send counts for neither."""
    model = world.model
    if model is None or model.capabilities.rules:
        return ""
    words = estimate(abridge(view, layer.fresh(view, _cursor.get()).items))
    own = world.prices.cost(Usage(words))
    last, now = view.last_assistant_at, world.clock.now()
    warm = last is not None and now - last < world.prices.short
    warm = warm and world.model_name in ("", model.name)  # another's cache is not read
    context = so_far(view).tokens
    there = world.prices.cost(fork_usage(context if warm else 0, 0 if warm else context, 0))
    return "" if there <= own else f"abridged costs {own:,.0f}, the prefix {there:,.0f}"


def _task(
    view: View, fresh: NewMessages, folder: str, records: Sequence[ManifestLine]
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
        view = host.view
        async with host.forked(NAME, why_apart(view, host.world)) as child:
            if child.words is None:
                view = host.view  # as it was when the fork began: nothing is awaited in between
            if not _passed_over(host, view):
                await _run(host, child, view)
    except BudgetExceeded as error:
        _say_once(host, str(error))


async def _run(host: JobContext, child: Worker, view: View) -> None:
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
