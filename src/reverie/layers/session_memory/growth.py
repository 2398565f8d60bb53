"""When notes are due, and what they cover.

Growth is counted in what was said since the last update, or since the last compaction:
messages alone, without the head, attachments and what stands for older messages. An
update that failed leaves nothing behind, so it is due again at the next response; after
three in a row only once the conversation has grown by another update's worth. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from reverie.settings import Settings
from reverie.transcript.messages import Item
from reverie.transcript.records import (
    AssistantMessage,
    Attached,
    Failed,
    NotesTaken,
    UserMessage,
)
from reverie.transcript.view import View
from reverie.world import World

NAME = "session_memory"
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
    if taken is None:
        grown = _grown(view, since, settings.notes_first_tokens, 0)
    else:
        grown = _grown(view, since, settings.notes_growth_tokens, settings.notes_tool_calls)
    if not grown:
        return False
    failed = _failed_since(view, settings.compact_breaker_failures)
    return failed is None or _grown(view, failed, settings.notes_growth_tokens, 0)


def _place(view: View, entry: str) -> int:
    found = view.entries.place(entry.partition(":")[0])  # synthetic results hang on a message
    return -1 if found is None else found


def _grown(view: View, since: int, tokens: int, calls: int) -> bool:
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


def covered(view: View) -> int:
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
