"""Reverie: memory and context for LLM agents.

The public names, loaded when first used: `import reverie` itself costs almost nothing.
"""

from __future__ import annotations

import sys
from types import ModuleType

__version__ = "0.1.0"

TYPE_CHECKING = False  # as `typing` has it, without importing it
if TYPE_CHECKING:
    from reverie.api.fitting import Fitted, Fitter, fit
    from reverie.api.toolset import Owner, Toolset, tools
    from reverie.errors import ReverieError
    from reverie.session.session import Session
    from reverie.settings import Settings
    from reverie.wire.given import tool_result, user
    from reverie.world import Model, Reply

__all__ = [
    "Fitted",
    "Fitter",
    "Model",
    "Reply",
    "ReverieError",
    "Session",
    "Settings",
    "Toolset",
    "fit",
    "tool_result",
    "tools",
    "user",
]

_PLACES = {
    "Fitted": "reverie.api.fitting",
    "Fitter": "reverie.api.fitting",
    "Model": "reverie.world",
    "Reply": "reverie.world",
    "ReverieError": "reverie.errors",
    "Session": "reverie.session.session",
    "Settings": "reverie.settings",
    "Toolset": "reverie.api.toolset",
    "fit": "reverie.api.fitting",
    "tools": "reverie.api.toolset",
    "tool_result": "reverie.wire.given",
    "user": "reverie.wire.given",
}


def __getattr__(name: str) -> object:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(place), name)


class _Tools(ModuleType):
    """`reverie.tools` is a function; the package of that name may be called like it."""

    def __call__(self, *owners: Owner, names: dict[str, str] | None = None) -> Toolset:
        from reverie.api.toolset import tools

        return tools(*owners, names=names)


class _Reverie(ModuleType):
    """This package: a part of it that is loaded does not hide a public name."""

    def __setattr__(self, name: str, value: object) -> None:
        if name == "tools" and isinstance(value, ModuleType):
            value.__class__ = _Tools
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Reverie
