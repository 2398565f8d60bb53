"""Reverie: memory and context for LLM agents.

The public names, loaded when first used: `import reverie` itself costs almost nothing. What is
not named in `__all__` may change at any time.
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False  # as `typing` has it, without importing it
if TYPE_CHECKING:
    from reverie.api.memory import Memory
    from reverie.api.report import Report, report
    from reverie.api.values import Found, Saved
    from reverie.errors import ReverieError
    from reverie.session.session import Session
    from reverie.settings import Settings
    from reverie.wire.given import tool_result, user
    from reverie.world import Model, Notice, Reply

__all__ = [
    "Found",
    "Memory",
    "Model",
    "Notice",
    "Reply",
    "Report",
    "ReverieError",
    "Saved",
    "Session",
    "Settings",
    "report",
    "tool_result",
    "user",
]

_PLACES = {
    "Found": "reverie.api.values",
    "Memory": "reverie.api.memory",
    "Model": "reverie.world",
    "Notice": "reverie.world",
    "Reply": "reverie.world",
    "Report": "reverie.api.report",
    "ReverieError": "reverie.errors",
    "Saved": "reverie.api.values",
    "Session": "reverie.session.session",
    "Settings": "reverie.settings",
    "report": "reverie.api.report",
    "tool_result": "reverie.wire.given",
    "user": "reverie.wire.given",
}


def __getattr__(name: str) -> object:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(place), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
