# pyright: reportUnsupportedDunderAll=false
"""The layers, and what one of your own is made of.

A layer takes a view and a world and returns records; it never edits a message and never
imports another layer. What one layer writes reaches the next through the view. One that raises
fails alone.

    async def hide_screenshots(view: layers.View, world: layers.World) -> list[layers.Record]:
        return [layers.clear(c.id) for c in view.calls.values() if c.name == "screenshot"]

    fitter = reverie.Fitter(model="gpt-5.6", layers=[*layers.COLLAPSE, hide_screenshots])

Public are `View`, `World`, `Record`, `Layer`, the makers of records `clear`, `store`, `replace`
and `attach`, and the ready tuples `COLLAPSE` and `CLASSIC`.
"""

from __future__ import annotations

from reverie.lazy import offered

__all__ = [
    "BEFORE_A_REQUEST",
    "CLASSIC",
    "COLLAPSE",
    "COMPACTION",
    "WHEN_ADDED",
    "Layer",
    "Record",
    "View",
    "World",
    "attach",
    "before_a_request",
    "clear",
    "replace",
    "store",
]

__getattr__ = offered(
    __name__,
    {
        "collapse": "explanation price_collapse seal",
        "collapse.excerpts": "excerpt",
        "collapse.lines": "FOLDED PASTE SAID SEALED seal_lines",
        "compaction.summary": "CompactionFailed read stand",
        "custom": "Layer Record View World attach before_a_request clear replace store",
        "microcompaction": "CLEARED COMPACTABLE SNIPPED by_cache_edit by_time context_management "
        "managed_options snip_range",
        "order": "BEFORE_A_REQUEST CLASSIC COLLAPSE COMPACTION WHEN_ADDED",
        "session_memory.compaction": "INTRO NotesUnusable attempt compact due last_covered settle",
        "session_memory.notes": "KEY TRUNCATED frame instruction is_blank notes_within_budget "
        "over_budget own rewritten template",
        "tool_results": "ResultBudgets TAG cut ends file_name per_message per_result",
    },
)
