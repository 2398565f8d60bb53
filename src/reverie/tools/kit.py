"""The tools every agent has."""

from __future__ import annotations

from reverie.tools.files import EDIT, READ, WRITE
from reverie.tools.listing import GLOB, LIST
from reverie.tools.readback import READ_BACK
from reverie.tools.searching import GREP
from reverie.tools.shell import BASH, BASH_OUTPUT, KILL_SHELL
from reverie.tools.tool import Registry, Tool

STANDARD: tuple[Tool, ...] = (
    READ,
    WRITE,
    EDIT,
    BASH,
    BASH_OUTPUT,
    KILL_SHELL,
    GREP,
    GLOB,
    LIST,
    READ_BACK,
)
"""The tools every agent has, in the order they are sent."""


def standard() -> Registry:
    """A registry with the standard tools; add others behind them."""
    return Registry(STANDARD)
