"""Reverie: memory and context for LLM agents.

The public names, loaded when first used: `import reverie` itself costs almost nothing.
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False  # as `typing` has it, without importing it
if TYPE_CHECKING:
    from reverie.errors import ReverieError
    from reverie.session.session import Session
    from reverie.settings import Settings
    from reverie.wire.given import tool_result, user
    from reverie.world import Model, Reply

__all__ = ["Model", "Reply", "ReverieError", "Session", "Settings", "tool_result", "user"]

_PLACES = {
    "Model": "reverie.world",
    "Reply": "reverie.world",
    "ReverieError": "reverie.errors",
    "Session": "reverie.session.session",
    "Settings": "reverie.settings",
    "tool_result": "reverie.wire.given",
    "user": "reverie.wire.given",
}


def __getattr__(name: str) -> object:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(place), name)
