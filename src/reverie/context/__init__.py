"""A list of messages, fitted to a window: `fit`, `Fitter`, framework messages."""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "async_fitter": "AsyncFitter",
    },
)
