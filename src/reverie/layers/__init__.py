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

# pyright: reportUnsupportedDunderAll=false
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
        "collapse": "FOLDED SEALED",
        "collapse.lines": "seal_lines",
        "collapse.price": "priced",
        "collapse.words": "PASTE",
        "compaction": "CompactionFailed",
        "compaction.summary": "stand",
        "dreaming": "Gates MAX_LISTED MAX_SENT",
        "extraction": "WordsSaid closed fresh is_listed saved_since turns_since user_words",
        "microcompaction": "CLEARED COMPACTABLE by_cache_edit by_time context_management "
        "managed_options",
        "order": "BEFORE_A_REQUEST COMPACTION WHEN_ADDED",
        "own": "Layer Record View World attach before_a_request clear replace store",
        "ready": "CLASSIC COLLAPSE",
        "session_memory.compaction": "INTRO",
        "snip": "SNIPPED",
        "tool_results": "cut ends file_name per_message per_result",
    },
)
