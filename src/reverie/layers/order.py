"""The layers, cheapest first: the one list of the order they run in."""

from __future__ import annotations

from typing import cast

from reverie.layers import collapse, compaction, microcompaction, tool_results
from reverie.layers.custom import OwnLayer
from reverie.layers.session_memory.compaction import compact, settle
from reverie.world import Layer

WHEN_ADDED: tuple[tuple[str, Layer], ...] = (
    ("tool_results", tool_results.per_result),  # 1: large results go to disk
)
"""Run on what is added, before it is acknowledged."""

COMPACTION: tuple[tuple[str, Layer], ...] = (
    ("session_memory_compaction", settle),  # 3: notes under way are waited for
    ("session_memory_compaction", compact),  # 3: the notes stand in, uncalled
    ("compaction", compaction.automatic),  # 4: a summary takes the place of the rest
)
"""Tried in this order once the threshold is passed, or a provider refused a request as too
long; the first that makes room leaves nothing to do for the next."""

BEFORE_A_REQUEST: tuple[tuple[str, Layer], ...] = (
    ("tool_results", tool_results.per_message),  # 1: all results of a round fit together
    ("microcompaction", microcompaction.by_time),  # 2: a cold cache makes clearing free
    ("microcompaction", microcompaction.by_cache_edit),  # 2: the provider drops old results
    ("collapse", collapse.seal),  # 2: old rounds become lines, where it pays
    *COMPACTION,
)
"""Run by `prepare`, in this order."""


# --- Ready tuples of layers, to take whole or to put one's own beside.


COLLAPSE = cast("tuple[OwnLayer, ...]", (tool_results.per_message, collapse.seal))
"""Large results become their two ends, old rounds a line each, where it pays."""

CLASSIC = cast(
    "tuple[OwnLayer, ...]",
    (tool_results.per_message, microcompaction.by_time, microcompaction.by_cache_edit),
)
"""Large results become their beginning; old ones go when the cache is cold anyway."""
