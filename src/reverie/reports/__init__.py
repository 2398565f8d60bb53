"""What a home holds and what it cost, as people look at it."""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {"plots": "MAX_POINTS PlotMark Series areas lines ratios shares short stacked steps thinned"},
)
