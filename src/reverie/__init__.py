"""Reverie: memory and context for LLM agents.

The public names, loaded when first used: `import reverie` itself costs almost nothing. Public are
those of `__all__` and the modules `errors`, `layers`, `models` and `testing`; anything else may
change at any time.
"""

from __future__ import annotations

import sys
from types import ModuleType

__version__ = "0.1.0"

if sys.platform == "win32":
    raise ImportError(
        "Reverie does not run on Windows: it needs a POSIX system's file locks. "
        "Use it under WSL 2, or on Linux or macOS."
    )

TYPE_CHECKING = False  # as `typing` has it, without importing it
if TYPE_CHECKING:
    from reverie import errors as errors
    from reverie import layers as layers
    from reverie import models as models
    from reverie import testing as testing
    from reverie.agent.agent import Agent
    from reverie.api.bridge import blocking
    from reverie.api.fitting import Fitted, Fitter, fit
    from reverie.api.memory import Memory
    from reverie.api.values import Found, Saved
    from reverie.api.wrap import wrap
    from reverie.errors import ReverieError
    from reverie.session.report import Report, report
    from reverie.session.rules import MatchedRule
    from reverie.session.session import Session
    from reverie.session.turn import Event, Turn
    from reverie.settings import Settings
    from reverie.tools.toolset import Owner, Toolset, tools
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

_PLACES = {
    "Agent": "reverie.agent.agent",
    "Event": "reverie.session.turn",
    "Request": "reverie.wire.request",
    "ToolCall": "reverie.wire.reply",
    "Turn": "reverie.session.turn",
    "blocking": "reverie.api.bridge",
    "Found": "reverie.api.values",
    "MatchedRule": "reverie.session.rules",
    "Memory": "reverie.api.memory",
    "Fitted": "reverie.api.fitting",
    "Fitter": "reverie.api.fitting",
    "Model": "reverie.world",
    "Notice": "reverie.world",
    "Reply": "reverie.wire.reply",
    "Report": "reverie.session.report",
    "ReverieError": "reverie.errors",
    "Saved": "reverie.api.values",
    "Session": "reverie.session.session",
    "Settings": "reverie.settings",
    "report": "reverie.session.report",
    "wrap": "reverie.api.wrap",
    "Toolset": "reverie.tools.toolset",
    "fit": "reverie.api.fitting",
    "tools": "reverie.tools.toolset",
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


class _Tools(ModuleType):
    """`reverie.tools` is a function; the package of that name may be called like it."""

    def __call__(self, *owners: Owner, names: dict[str, str] | None = None) -> Toolset:
        from reverie.tools.toolset import tools

        return tools(*owners, names=names)


class _Reverie(ModuleType):
    """This package: a part of it that is loaded does not hide a public name."""

    def __setattr__(self, name: str, value: object) -> None:
        if name == "tools" and isinstance(value, ModuleType):
            value.__class__ = _Tools
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Reverie
