"""Notes as the summary, and when notes are due.

Session-memory compaction: the notes are the summary, and no model is called.

All messages the notes do not cover stay, and as many before them as make a usable tail.
Calls stay with their results, thinking with its message; on a provider that binds thinking
to what precedes it, the thinking that stays is stripped in the same record. The layer gives
up, with the reason, where there are no notes, where they leave too much uncovered, and where
what is left would still be over the threshold: then nothing has changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from reverie.errors import NotFound, StoreError
from reverie.layers.session_memory.notes import KEY, is_blank, notes_within_budget
from reverie.light import dataclass
from reverie.settings.catalog import DEFAULTS, Settings
from reverie.text import safety
from reverie.text.format import plural
from reverie.transcript.blocks import TEXT_BYTES, text_block
from reverie.transcript.fold import apply
from reverie.transcript.messages import Item
from reverie.transcript.records import (
    AssistantMessage,
    Attached,
    Boundary,
    Entry,
    Failed,
    NotesTaken,
    Record,
    Replaced,
    Stand,
    UserMessage,
)
from reverie.transcript.view import View
from reverie.world import Notice, World

if TYPE_CHECKING:
    from reverie.transcript.audit import Audit

REASON = "session_memory"
READ = 8  # times the notes' budget that is read of their file, at most
MISSING, SHOWN = 20, 200  # of what did not survive: how many are recorded, characters of each
INTRO = (
    "[The earlier part of this conversation was taken out of the context to make room. These are "
    "the notes that were kept while it went on; the newest messages follow as they were.]"
)
OUTRO = "[Go on from there. What the notes answer need not be asked again.]"
HOOKS = "A hook of the user's asks that this be minded:"


@dataclass(frozen=True, slots=True)
class NotesUnusable:
    """Why the notes could not stand in; full compaction is next."""

    why: str


async def settle(view: View, world: World) -> Sequence[Record]:
    """Wait, bounded, for an update under way: what it hands in reaches the next layer's view."""
    if world.wait is not None and _over(view, world):
        await world.wait(NAME, world.settings.notes_wait_seconds)
    return ()


async def compact(view: View, world: World) -> Sequence[Record]:
    """Let the notes stand in, where the context is over its threshold."""
    if not _over(view, world):
        return ()
    found = await attempt(view, world)
    if isinstance(found, NotesUnusable):
        world.say(Notice(NAME, f"the notes cannot stand in for a summary: {found.why}"))
        return ()
    return found


def _over(view: View, world: World) -> bool:
    """Whether automatic compaction is wanted now, and the notes may do it."""
    on = is_kept(view, world) and bool(world.flags.get("session_memory_compaction"))
    over = view.tokens > world.settings.compact_threshold(world.window)
    return on and over and not world.collapses


async def attempt(view: View, world: World) -> tuple[Record, ...] | NotesUnusable:
    """The records of a compaction by the notes, or why there is none."""
    settings = numbers(world)
    if view.notes is None:
        return NotesUnusable("none were taken yet")
    text = await _read(world, settings)
    if isinstance(text, NotesUnusable):
        return text
    kept = kept_from(view, world, settings)
    if isinstance(kept, NotesUnusable):
        return kept
    cut = _CutPoint(view, world, settings, text, kept)
    record = cut.record()
    return cut.gives_up(cut.ahead(record)) or await cut.with_what_is_around(record)


async def _read(world: World, settings: Settings) -> str | NotesUnusable:
    limit = settings.notes_total_tokens * TEXT_BYTES * READ
    try:
        data = await world.disk.read(KEY, limit)
    except NotFound:
        return NotesUnusable("their file is gone")
    except StoreError as error:
        return NotesUnusable(f"their file cannot be read: {error}")
    text = data.decode("utf-8", "replace")
    return NotesUnusable("they are empty") if is_blank(text) else text


# --- what is kept


def kept_from(view: View, world: World, settings: Settings) -> int | NotesUnusable:
    """The first item that stays: everything uncovered, and a usable tail before it."""
    items, last = view.items, min(last_covered(view), _first_unanswered(view) - 1)
    if view.open_calls:
        # their message keeps its thinking, so nothing before it may change
        if world.unbound(items):
            return NotesUnusable("calls still wait for their results")
        waiting = set(view.open_calls)
        last = min(last, *(n - 1 for n, i in enumerate(items) if waiting.intersection(i.calls)))
    if last < _first(view):
        return NotesUnusable("they cover nothing of what is in the context")
    most = settings.notes_compact_max_tokens
    size = sum(item.tokens for item in items.since(last + 1))
    if size > most:
        return NotesUnusable(f"{size:,} tokens came since the last update, more than {most:,}")
    at = _tail(items.since(0), last + 1, view.live, settings)
    if at is None:
        return NotesUnusable(f"no whole round fits {most:,} tokens with what came since")
    return NotesUnusable("there is nothing before what must stay") if at <= _first(view) else at


def _first_unanswered(view: View) -> int:
    """The first item of what the user said and nobody has answered: notes that were taken
    behind it cover it, and it stays all the same."""
    at = len(view.items)
    while at:
        item = view.items[at - 1]
        if item.role != "user" or item.kind == "replaced" or item.results:
            break
        at -= 1
    return at


def _first(view: View) -> int:
    """The first item that may be replaced."""
    return 1 if len(view.items) and view.items[0].kind == "head" else 0


def _tail(items: Sequence[Item], last: int, first: int, settings: Settings) -> int | None:
    """Backwards from `last`, which must stay, to the first place that keeps enough. A place
    will do only if no result behind it has its call before it."""
    size = texts = 0
    joined, waiting = False, set[str]()
    best: int | None = None
    for at in range(len(items), first - 1, -1):
        if at < len(items):
            item = items[at]
            size += item.tokens
            texts += _has_text(item)
            waiting = waiting.union(item.results).difference(item.calls)
            joined = item.kind in ("attached", "synthetic")  # to the message before it
        if at > last or waiting or joined:
            continue
        if size > settings.notes_compact_max_tokens:
            break
        best = at
        enough = texts >= settings.notes_compact_min_messages
        if enough and size >= settings.notes_compact_min_tokens:
            break
    return best


def _has_text(item: Item) -> bool:
    said = (p.block for p in item.pieces if p.block.type == "text")
    return item.kind == "message" and any(not block.blank for block in said)


# --- the record


@dataclass(frozen=True, slots=True)
class _CutPoint:
    """One place to cut at, and what would come of it."""

    view: View
    world: World
    settings: Settings
    notes: str
    kept: int

    @property
    def gone(self) -> list[Item]:
        return self.view.items[_first(self.view) : self.kept]

    @property
    def stays(self) -> list[Item]:
        return self.view.items.since(self.kept)

    def record(self, asked: str = "", restored: Sequence[Record] = ()) -> Replaced:
        """The notes in the place of what goes; what the audit misses is added to them."""
        notes = notes_within_budget(self.notes, self.settings)
        parts = [INTRO, safety.frame(notes, session=self.view.session)]
        if asked:
            parts.append(f"{HOOKS} {asked}")
        gone = self.gone
        from reverie.transcript.audit import audit_replacement, with_earlier_words

        found = audit_replacement(
            with_earlier_words(self.view, gone),
            [*parts, *_words(self.stays), *_attached_texts(restored)],
            keep_tokens=self.settings.compact_keep_list_tokens,
        )
        text = "\n\n".join(part for part in (*parts, found.keep, OUTRO) if part)
        return Replaced(
            gone[0].id,
            gone[-1].id,
            (Stand("user", (text_block(text),)),),
            REASON,
            strips=self.world.unbound(self.stays),
            boundary=self._boundary(found),
            why=f"{self.view.tokens:,} tokens; the notes cover {plural(len(gone), 'message')}",
        )

    def _boundary(self, found: Audit) -> Boundary:
        stays, anchor = self.stays, self.gone[-1].id
        return Boundary(
            tokens_before=self.view.tokens,
            tools=tuple(self.view.called),
            kept=(stays[0].id, anchor, stays[-1].id) if stays else ("", anchor, ""),
            fidelity=found.fidelity,
            missing=tuple(one.text[:SHOWN] for one in found.lost[:MISSING]),
        )

    def ahead(self, *records: Record) -> View:
        """The view as it would be; not to keep."""
        view, now = self.view, self.world.clock.now()
        for n, record in enumerate(records):
            view = apply(view, Entry(f"ahead-{n}", view.leaf, now, record))
        return view

    def gives_up(self, after: View) -> NotesUnusable | None:
        """Why the result would not do: still over the threshold, or too little gained."""
        window, settings = self.world.window, self.world.settings
        left = after.tokens
        if left > settings.compact_threshold(window):
            return NotesUnusable(f"{left:,} tokens would be left, still over the threshold")
        freed = self.view.tokens - left
        if freed < window * settings.compact_must_free_share:
            return NotesUnusable(f"only {freed:,} tokens would be free")
        return None

    async def with_what_is_around(self, record: Replaced) -> tuple[Record, ...] | NotesUnusable:
        """The user's hooks before, what is restored after, and the count with all of it. Files
        come back only where there is room: they can be read again."""
        restored: Sequence[Record] = ()
        around = self.world.around
        if around is not None:
            asked = await around.before("auto", "")
            restored = await around.after(self.ahead(record), "auto")
            if self.gives_up(self.ahead(record, *restored)):
                restored = [r for r in restored if not _is_file(r)]
            record = self.record(asked, restored)
        after = self.ahead(record, *restored)
        boundary = replace(record.boundary or Boundary(), tokens_after=after.tokens)
        return self.gives_up(after) or (replace(record, boundary=boundary), *restored)


def _words(items: Sequence[Item]) -> list[str]:
    return [p.block.text for item in items for p in item.pieces]


def _attached_texts(records: Sequence[Record]) -> list[str]:
    return [b.text for r in records if isinstance(r, Attached) for b in r.blocks]


def _is_file(record: Record) -> bool:
    return isinstance(record, Attached) and record.kind == "file"


# --- When notes are due, and what they cover.
#
# Growth is counted in what was said since the last update, or since the last compaction: messages
# alone, without the head, attachments and what stands for older messages. An update that failed
# leaves nothing behind, so it is due again at the next response; after three in a row only once
# the conversation has grown by another update's worth. Pure.


NAME = "session_memory"
UPDATES = 4  # of the notes between the first and a compaction
_SAID = (UserMessage, AssistantMessage, Attached)


def numbers(world: World) -> Settings:
    """The settings for this window, with the numbers that the flag gives."""
    config = world.flags.get("session_memory_config")
    if isinstance(config, Mapping):
        return world.settings.with_notes(config).scaled(world.window)
    return world.scaled


def is_kept(view: View, world: World) -> bool:
    """Whether this conversation has notes at all: the main agent's, and nobody switched it off.
    A context that is collapsed is not summarised, so nothing would read them."""
    if view.is_fork or (view.started is not None and view.started.source != "main"):
        return False
    settings = world.settings
    on = settings.auto_compact_enabled and not settings.simple and not world.collapses
    return on and bool(world.flags.get("session_memory"))


def due(view: View, world: World) -> bool:
    """Whether the notes should be brought up to date now."""
    if world.model is None or view.sent is None or not is_kept(view, world):
        return False
    settings, taken = numbers(world), view.notes
    since = max(_place(view, taken.last if taken else ""), _place(view, view.boundary))
    first = _first_notes(settings, world)
    # each update reads the whole context: four on the way to a compaction are enough
    growth = max(settings.notes_growth_tokens, first // UPDATES)
    if taken is None:
        grown = _has_grown(view, since, first, 0)
    else:
        grown = _has_grown(view, since, growth, settings.notes_tool_calls)
    if not grown:
        return False
    failed = _failed_since(view, settings.compact_breaker_failures)
    return failed is None or _has_grown(view, failed, growth, 0)


def _first_notes(settings: Settings, world: World) -> int:
    """Tokens of the first notes: a compaction needs them at the threshold, so they begin at half
    of it, but where somebody set a number."""
    least = settings.notes_first_tokens
    if least != DEFAULTS.scaled(world.window).notes_first_tokens:
        return least
    return max(least, world.settings.compact_threshold(world.window) // 2)


def _place(view: View, entry: str) -> int:
    found = view.entries.place(entry.partition(":")[0])  # synthetic results hang on a message
    return -1 if found is None else found


def _has_grown(view: View, since: int, tokens: int, calls: int) -> bool:
    """Whether enough was said behind a place, with enough calls or a pause at its end."""
    if view.estimated < tokens:
        return False
    size = made = 0
    pause: bool | None = None
    for at in reversed(range(len(view.items))):
        item = view.items[at]
        if pause is None and item.role == "assistant":
            pause = not item.calls
        if _place(view, item.id) <= since:
            break
        if item.kind == "message":
            size += item.tokens
            made += len(item.calls)
        if size >= tokens and (pause or made >= calls):
            return True
    return size >= tokens and (bool(pause) or made >= calls)


def _failed_since(view: View, most: int) -> int | None:
    """Where the newest failure stands, if that many came since the last update."""
    newest: int | None = None
    count = 0
    for at in reversed(range(len(view.entries))):
        record = view.entries[at].record
        if isinstance(record, NotesTaken):
            break
        if isinstance(record, Failed) and record.layer == NAME:
            newest = at if newest is None else newest
            count += 1
            if count >= most:
                return newest
    return None


def last_covered(view: View) -> int:
    """The last item that the notes cover together with all before it; -1 for none.

    A summary or a seal counts as covered only if every message in it is. Notes that were
    taken on a branch that was left since cover nothing here.
    """
    last = view.notes.last if view.notes else ""
    limit = _place(view, last)
    if limit < 0 or not any(item.holds(last) for item in view.items):
        return -1
    for n, item in enumerate(view.items):
        if not _is_covered(view, item, limit):
            return n - 1
    return len(view.items) - 1


def _is_covered(view: View, item: Item, limit: int) -> bool:
    if item.kind == "head":
        return True
    if item.kind != "replaced":
        return _place(view, item.id) <= limit
    places = [p for entry in item.covers if (p := view.entries.place(entry)) is not None]
    return all(p <= limit for p in places if isinstance(view.entries[p].record, _SAID))
