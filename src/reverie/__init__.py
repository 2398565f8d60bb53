"""Reverie: memory and context for LLM agents.

The public names, loaded when first used: `import reverie` itself costs almost nothing. Public are
those of `__all__` and the modules `errors`, `layers`, `models` and `testing`; anything else may
change at any time.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as `typing` has it, without importing it

if TYPE_CHECKING:
    from reverie import errors as errors
    from reverie import layers as layers
    from reverie import models as models
    from reverie import testing as testing
    from reverie.agent.agent import Agent
    from reverie.agent.blocking_facade import blocking
    from reverie.context.fitter import Fitter, fit
    from reverie.context.renderer import Fitted
    from reverie.errors import ReverieError
    from reverie.interception.wrap import wrap
    from reverie.memory.memory import Memory
    from reverie.memory.values import Found, Saved
    from reverie.session.report import Report, report
    from reverie.session.rules import MatchedRule
    from reverie.session.session import Session
    from reverie.session.turn import Event, Turn
    from reverie.settings.catalog import Settings
    from reverie.toolbox.toolset import Toolset, tools
    from reverie.wire.reply import Reply, ToolCall, tool_result, user
    from reverie.wire.request import Request
    from reverie.world import Model, Notice

__all__ = [
    "Agent",
    "Event",
    "Fitted",
    "Fitter",
    "Found",
    "MatchedRule",
    "Memory",
    "Model",
    "Notice",
    "Reply",
    "Report",
    "Request",
    "ReverieError",
    "Saved",
    "Session",
    "Settings",
    "ToolCall",
    "Toolset",
    "Turn",
    "blocking",
    "fit",
    "report",
    "tool_result",
    "tools",
    "user",
    "wrap",
]
__version__ = "0.1.0"

if sys.platform == "win32":
    raise ImportError(
        "Reverie does not run on Windows: it needs a POSIX system's file locks. "
        "Use it under WSL 2, or on Linux or macOS."
    )


_PLACES = {
    "Agent": "reverie.agent.agent",
    "Event": "reverie.session.turn",
    "Request": "reverie.wire.request",
    "ToolCall": "reverie.wire.reply",
    "Turn": "reverie.session.turn",
    "blocking": "reverie.agent.blocking_facade",
    "Found": "reverie.memory.values",
    "MatchedRule": "reverie.session.rules",
    "Memory": "reverie.memory.memory",
    "Fitted": "reverie.context.renderer",
    "Fitter": "reverie.context.fitter",
    "Model": "reverie.world",
    "Notice": "reverie.world",
    "Reply": "reverie.wire.reply",
    "Report": "reverie.session.report",
    "ReverieError": "reverie.errors",
    "Saved": "reverie.memory.values",
    "Session": "reverie.session.session",
    "Settings": "reverie.settings.catalog",
    "report": "reverie.session.report",
    "wrap": "reverie.interception.wrap",
    "Toolset": "reverie.toolbox.toolset",
    "fit": "reverie.context.fitter",
    "tools": "reverie.toolbox.toolset",
    "tool_result": "reverie.wire.reply",
    "user": "reverie.wire.reply",
}


_MODULES = ("errors", "layers", "models", "testing")
"""Public too: `reverie.errors.NotFound` needs no import of its own."""


def __getattr__(name: str) -> object:
    place = _PLACES.get(name)
    if place is None and name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    if place is None:
        return import_module(f"{__name__}.{name}")
    found = getattr(import_module(place), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
