"""Layer 2: microcompaction. Old tool results are cleared; nothing is summarised.

Only results of tools whose output can be had again are cleared, never the newest, never
what is still unsent, and never words or thinking. By time: once the provider's long
cache lifetime has passed everything is written anew anyway, so the change is free. By
cache edit: where the provider can drop results from its own cached prefix, it is told to,
and the local messages stay as they were. Both stay out of the way where the provider
manages its context itself or the context is collapsed.
"""

from __future__ import annotations

from collections.abc import Sequence

from reverie.transcript.blocks import block_of, dump
from reverie.transcript.records import Attached, Record, ResultDecided, Strip
from reverie.transcript.view import View
from reverie.world import World

NAME = "microcompaction"
CLEARED = "[Old tool result content cleared]"
CACHE_EDITS = "cache_edits"
COMPACTABLE = frozenset(
    {"Read", "Bash", "Grep", "Glob", "WebSearch", "WebFetch", "Edit", "MultiEdit", "Write"}
)


async def by_time(view: View, world: World) -> Sequence[Record]:
    """Clear all but the newest results once the cache has surely run out."""
    if not world.flags.get("time_microcompact") or _stays_out(view, world):
        return ()
    if view.last_assistant_at is None:
        return ()
    idle = world.clock.now() - view.last_assistant_at
    if idle <= world.settings.microcompact_idle_minutes * 60:
        return ()
    old = _results(view)[: -max(1, world.settings.microcompact_kept)]
    wanted = [c for c in old if not _is_cleared(view, c)]
    why = f"idle for {idle / 60:.0f} minutes"
    return [
        _cleared(view, call, why, _strips(view, world, call) if not n else ())
        for n, call in enumerate(wanted)
    ]


async def by_cache_edit(view: View, world: World) -> Sequence[Record]:
    """Tell the provider to drop old results from its cached prefix."""
    if not world.flags.get("cache_edit_microcompact") or _stays_out(view, world):
        return ()
    can = world.model is not None and world.model.capabilities.cache_edits
    if not can or view.is_fork or not view.unsent():
        return ()
    gone = _edited_away(view)
    live = [c for c in _results(view) if c not in gone and not _is_cleared(view, c)]
    if len(live) <= world.settings.cache_edit_count:
        return ()
    old = live[: -max(1, world.settings.cache_edit_kept)]
    return (Attached((block_of({"type": CACHE_EDITS, "delete": old}),), CACHE_EDITS),)


def _stays_out(view: View, world: World) -> bool:
    """Whether somebody else keeps this context small."""
    managed = view.head is not None and '"context_management"' in view.head.options
    return managed or world.collapses


def _results(view: View) -> list[str]:
    """Calls whose results were sent and may be cleared, oldest first."""
    out: list[str] = []
    for item in view.items.cut(view.sent_items):
        for call in item.results:
            known = view.calls.get(call)
            if known is not None and known.name in COMPACTABLE and item.kind == "message":
                out.append(call)
    return out


def _is_cleared(view: View, call: str) -> bool:
    decision = view.decisions.get(call)
    return decision is not None and decision.action == "cleared"


def _edited_away(view: View) -> set[str]:
    """What earlier cache edits named; they are sent again at the same place."""
    gone: set[str] = set()
    for item in view.items:
        if item.kind == "attached":
            for piece in item.pieces:
                named = piece.block.value.get("delete")
                if piece.block.type == CACHE_EDITS and isinstance(named, list):
                    gone.update(str(n) for n in named)
    return gone


def _cleared(view: View, call: str, why: str, strips: tuple[Strip, ...]) -> ResultDecided:
    """The decision; a stored result keeps its file and can still be read back."""
    before = view.decisions.get(call)
    kept = (before.path, before.size, before.sha256) if before else ("", 0, "")
    return ResultDecided(call, "cleared", why, dump(CLEARED), *kept, strips)


def _strips(view: View, world: World, call: str) -> tuple[Strip, ...]:
    """Thinking behind the first cleared result, where it is bound to what precedes it."""
    if world.model is None or not world.model.capabilities.thinking_binding:
        return ()
    found, out = False, list[Strip]()
    for item in view.items:
        found = found or call in item.results
        if found:
            out += [Strip(p.source, p.index) for p in item.pieces if p.block.thinking]
    return tuple(out)
