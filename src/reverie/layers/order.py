"""The layers, cheapest first: the one list of the order they run in."""

from __future__ import annotations

from reverie.layers import collapse, compaction, microcompaction, session_memory, tool_results
from reverie.world import Layer

WHEN_ADDED: tuple[tuple[str, Layer], ...] = (
    ("tool_results", tool_results.per_result),  # 1: large results go to disk
)
"""Run on what is added, before it is acknowledged."""

COMPACTION: tuple[tuple[str, Layer], ...] = (
    ("session_memory_compaction", session_memory.settle),  # 3: notes under way are waited for
    ("session_memory_compaction", session_memory.compact),  # 3: the notes stand in, uncalled
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
