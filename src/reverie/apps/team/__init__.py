"""The team server: HTTP over `team.store`, and nothing that another door needs."""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "server": "app batch_in",
    },
)
