"""What a home holds and what it cost: timelines, figures, the doctor."""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "cache": "place_value",
        "doctor": "EXTRAS",
        "memory_index": "COUNTED MemoryQuery",
        "plots": "MAX_POINTS PlotMark Series areas lines ratios shares short stack_chart steps "
        "thin_values",
        "session_index": "NAME PAGE",
        "stats": "Savings project_stats",
        "timeline": "KINDS kinds_of",
    },
)
