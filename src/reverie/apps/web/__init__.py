"""The web page: what Reverie did and knows, for a person in a browser, on this machine alone."""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "app": "Gate HEADERS application",
        "dream": "show_dream",
        "events": "EventHub EventStream FigureProcesses MAX_CLIENTS MAX_QUEUED OpenPage RELOAD",
        "format": "ago cut prose share",
        "health": "show_health",
        "memories": "RESULTS list_memories save show_memory show_recall",
        "projects": "ProjectRouter",
        "review": "list_review",
        "savings": "show_savings work",
        "sessions": "list_sessions show_session",
        "workspace": "HERE IndexRefresher SHOWN_PROJECTS ScreenRequest Workspace",
    },
)
