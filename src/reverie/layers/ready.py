"""Ready tuples of layers, to take whole or to put one's own beside."""

from __future__ import annotations

from typing import cast

from reverie.layers import collapse, microcompaction, tool_results
from reverie.layers.own import OwnLayer

COLLAPSE = cast("tuple[OwnLayer, ...]", (tool_results.per_message, collapse.seal))
"""Large results become their two ends, old rounds a line each, where it pays."""

CLASSIC = cast(
    "tuple[OwnLayer, ...]",
    (tool_results.per_message, microcompaction.by_time, microcompaction.by_cache_edit),
)
"""Large results become their beginning; old ones go when the cache is cold anyway."""
