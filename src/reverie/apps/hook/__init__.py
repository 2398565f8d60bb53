"""Programs that other agents run as hooks: small, alone, and quick to start."""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "before_call": "answer_event",
        "events": "main",
    },
)
