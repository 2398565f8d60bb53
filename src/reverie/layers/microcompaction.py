"""Old tool results are cleared.

Layer 2: microcompaction. Old tool results are cleared; nothing is summarised.

Only results of tools whose output can be had again are cleared, never the newest, never
what is still unsent, and never words or thinking. By time: once the marks that were really
sent have run out everything is written anew anyway, so the change is free. By
cache edit: where the provider can drop results from its own cached prefix, it is told to,
and the local messages stay as they were. Both stay out of the way where the provider
manages its context itself or the context is collapsed.

By the provider: `context_management` is the option that asks for that. The usage of an
answer counts what the model was shown, after such edits, so the canonical count follows
them by itself; `freed` says how much they were, and is never taken off again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import dropwhile
from typing import Any, cast

from reverie.errors import InvalidInput, NotFound
from reverie.text.format import plural
from reverie.transcript.blocks import Block, Json, Object, block_of, dump, text_block
from reverie.transcript.mentions import reference
from reverie.transcript.messages import Item
from reverie.transcript.records import Attached, Record, Replaced, ResultDecided, Stand, Strip
from reverie.transcript.rewrites import widen_range
from reverie.transcript.view import View
from reverie.wire.request import LONG
from reverie.world import World

CLEARED = "[Old tool result content cleared]"
CACHE_EDITS = "cache_edits"
CLEAR_TOOL_USES = "clear_tool_uses_20250919"
CLEAR_THINKING = "clear_thinking_20251015"
COMPACTABLE = frozenset(
    {"Read", "Bash", "Grep", "Glob", "WebSearch", "WebFetch", "Edit", "MultiEdit", "Write"}
)


async def by_time(view: View, world: World) -> Sequence[Record]:
    """Clear all but the newest results once the cache has surely run out."""
    if not world.flags.get("time_microcompact") or _stays_out(view, world):
        return ()
    if view.last_assistant_at is None or view.is_fork:  # a fork keeps its parent's bytes
        return ()
    idle = world.clock.now() - view.last_assistant_at
    if idle <= _lifetime(view, world):
        return ()
    old = _results(view, world)[: -max(1, world.settings.microcompact_kept)]
    wanted = [c for c in old if not _is_cleared(view, c)]
    if not wanted:
        return ()
    strips = world.unbound(dropwhile(lambda item: wanted[0] not in item.results, view.items))
    if view.open_calls and strips:  # their message keeps its thinking
        return ()
    why = f"idle for {idle / 60:.0f} minutes"
    return [_clear_decision(view, call, why, () if n else strips) for n, call in enumerate(wanted)]


async def by_cache_edit(view: View, world: World) -> Sequence[Record]:
    """Tell the provider to drop old results from its cached prefix."""
    if not world.flags.get("cache_edit_microcompact") or _stays_out(view, world):
        return ()
    can = world.model is not None and world.model.capabilities.cache_edits
    if not can or view.is_fork or not view.unsent():
        return ()
    most = world.settings.cache_edit_count
    if sum(view.called.get(name, 0) for name in COMPACTABLE | world.repeatable) <= most:
        return ()
    live = _live(view, world)
    if len(live) <= most:
        return ()
    old = live[: -max(1, world.settings.cache_edit_kept)]
    return (Attached((block_of({"type": CACHE_EDITS, "delete": old}),), CACHE_EDITS),)


def managed_options(
    world: World, tools: Iterable[str], options: Mapping[str, Any]
) -> Mapping[str, Any]:
    """A request's options, with the provider's own clearing where that is wanted and not given.
    Thinking is cleared where the options ask the model to think."""
    if not world.settings.api_context_management or "context_management" in options:
        return options
    asked = cast("Mapping[str, Any]", options.get("thinking") or {})
    thinks = asked.get("type", "disabled") != "disabled"
    found = context_management(world, tools, thinking=thinks)
    return {**options, "context_management": found} if found else options


def context_management(world: World, tools: Iterable[str], *, thinking: bool) -> Object | None:
    """The request option by which the provider clears old results (and thinking) itself;
    None where it cannot, or the context is collapsed. `tools` are those the request offers."""
    if world.model is None or not world.model.capabilities.context_management or world.collapses:
        return None
    settings = world.settings
    trigger, at_least = settings.api_clearing(world.window)
    excluded: list[Json] = [name for name in tools if name not in COMPACTABLE | world.repeatable]
    clearing: Object = {
        "type": CLEAR_TOOL_USES,
        "trigger": {"type": "input_tokens", "value": trigger},
        "clear_at_least": {"type": "input_tokens", "value": at_least},
        "exclude_tools": excluded,
    }
    turns = settings.api_thinking_kept_turns
    kept: Json = {"type": "thinking_turns", "value": turns}
    if settings.api_thinking_keep_all:
        kept = {"type": "all"}
    edits: list[Json] = [{"type": CLEAR_THINKING, "keep": kept}] if thinking else []
    return {"edits": [*edits, clearing]}


def _lifetime(view: View, world: World) -> float:
    """Seconds after which nothing of the last request is cached any more. A provider that takes
    no marks does not tell: then it is the longest."""
    settings = world.settings
    most = settings.microcompact_idle_minutes * 60
    takes_marks = world.model is None or world.model.capabilities.marks > 0
    if not takes_marks or not view.marks:
        return most
    long = any(mark.ttl == LONG for mark in view.marks)
    return min(most, (settings.cache_long_minutes if long else settings.cache_short_minutes) * 60)


def _stays_out(view: View, world: World) -> bool:
    """Whether somebody else keeps this context small."""
    managed = view.head is not None and '"context_management"' in view.head.options
    return managed or world.collapses


def _results(view: View, world: World) -> list[str]:
    """Calls whose results were sent and may be cleared, oldest first."""
    return [
        call
        for item in view.items.cut(view.sent_items)
        if item.kind == "message"
        for call in item.results
        if _may_go(view, world, call)
    ]


def _may_go(view: View, world: World, call: str) -> bool:
    known = view.calls.get(call)
    return known is not None and (known.name in COMPACTABLE or known.name in world.repeatable)


def _is_cleared(view: View, call: str) -> bool:
    decision = view.decisions.get(call)
    return decision is not None and decision.action == "cleared"


def _live(view: View, world: World) -> list[str]:
    """Results that were sent and that no edit names, oldest first. Looked for from the end:
    what lies before a result that an edit named was named too, so the walk stays short."""
    out: list[str] = []
    gone: set[str] = set()
    for at in reversed(range(len(view.items))):
        item = view.items[at]
        if item.kind == "attached":
            gone.update(*(_deleted_calls(piece.block) for piece in item.pieces))
        if at >= view.sent_items or item.kind != "message":
            continue
        for call in reversed(item.results):
            if call in gone:
                return out[::-1]
            if _may_go(view, world, call) and not _is_cleared(view, call):
                out.append(call)
    return out[::-1]


def _deleted_calls(block: Block) -> set[str]:
    """The calls an edit names."""
    named = block.value.get("delete") if block.type == CACHE_EDITS else None
    return {str(n) for n in named} if isinstance(named, list) else set()


def _clear_decision(view: View, call: str, why: str, strips: tuple[Strip, ...]) -> ResultDecided:
    """The decision; a stored result keeps its file and can still be read back."""
    before = view.decisions.get(call)
    kept = (before.path, before.size, before.sha256) if before else ("", 0, "")
    return ResultDecided(call, "cleared", why, dump(CLEARED), *kept, strips)


# --- History snip: a range of messages leaves the projection; the transcript keeps it.
#
# `snip_range` is a pure choice: it names the first and the last message of a range and gives the
# record that takes it out, with a marker in its place. The range is widened to whole rounds, so a
# call never stands without its result; a round that still waits for results, and what stands in
# front of the conversation, are left alone. Calls in it can still be read back by their reference.
# Nothing is summarised and no model is called.


SNIPPED = "snip"
NAMED = 20  # references that the marker names


def snip_range(view: View, first: str, last: str, world: World) -> Replaced:
    """The record that drops the messages from `first` to `last`."""
    if not world.flags.get("history_snip"):
        raise InvalidInput("snipping is switched off", where="history_snip")
    for ident in (first, last):
        if not any(item.holds(ident) for item in view.items):
            raise NotFound("no such message in the conversation", where=ident)
    bounds = widen_range(view, first, last)
    if bounds is None:
        raise InvalidInput(
            "this range cannot be snipped",
            where=f"{first} to {last}",
            do="Name messages of the conversation whose calls have their results",
        )
    start, end = bounds
    gone = view.items.since(start)[: end - start + 1]
    return Replaced(
        gone[0].id,
        gone[-1].id,
        (Stand("user", (text_block(_marker(gone)),)),),
        SNIPPED,
        seals=False,
        strips=world.unbound(view.items.since(end + 1)),
        why=f"{plural(len(gone), 'message')}, as asked",
    )


def _marker(gone: list[Item]) -> str:
    refs = [reference(call) for item in gone for call in item.calls]
    named = " ".join(refs[:NAMED]) + (" …" if len(refs) > NAMED else "")
    calls = f" Its calls can be read back: {named}" if refs else ""
    plural = "s" if len(gone) > 1 else ""
    return f"[{len(gone)} message{plural} snipped here.{calls}]"
