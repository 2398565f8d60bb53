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

from typing import TYPE_CHECKING

from reverie.light import offered

if TYPE_CHECKING:
    from reverie.layers.order import BEFORE_A_REQUEST, COMPACTION, WHEN_ADDED
    from reverie.layers.own import (
        Layer,
        Record,
        View,
        World,
        attach,
        before_a_request,
        clear,
        replace,
        store,
    )
    from reverie.layers.ready import CLASSIC, COLLAPSE

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
        "order": "BEFORE_A_REQUEST COMPACTION WHEN_ADDED",
        "own": "Layer Record View World attach before_a_request clear replace store",
        "ready": "CLASSIC COLLAPSE",
    },
)
