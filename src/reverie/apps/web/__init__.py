"""The web page: what Reverie did and knows, for a person in a browser, on this machine alone."""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "app": "application",
        "desk": "Ask Desk HERE SHOWN_PROJECTS",
        "events": "EventStream Hub MAX_CLIENTS MAX_QUEUED OpenPage RELOAD",
        "figures": "Commands",
        "gate": "Gate HEADERS",
        "keeper": "Keeper",
        "memories": "save",
        "recall": "RESULTS",
        "savings": "work",
        "switcher": "Switcher",
    },
)
