"""The tools of an agent, who may use them, and the guard for background agents."""

from __future__ import annotations

from reverie.tools.box import Toolbox
from reverie.tools.files import EDIT, READ, WRITE
from reverie.tools.guard import Denial, Guard, GuardLimits, Guards
from reverie.tools.listing import GLOB, LIST
from reverie.tools.permissions import (
    Asker,
    Judgement,
    PermissionAnswer,
    PermissionPolicy,
    PermissionRoots,
    PermissionRule,
    Question,
    Verdict,
)
from reverie.tools.places import AnyFiles
from reverie.tools.readback import READ_BACK
from reverie.tools.rules import keep, load_rules, with_rule
from reverie.tools.sandbox import Sandbox
from reverie.tools.searching import GREP
from reverie.tools.shell import BASH, BASH_OUTPUT, KILL_SHELL
from reverie.tools.tool import (
    Denied,
    Output,
    ReadLog,
    Referenced,
    ReferenceSource,
    Registry,
    StoredResults,
    Tool,
    ToolContext,
    ToolFailed,
)

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


__all__ = [
    "STANDARD",
    "AnyFiles",
    "Asker",
    "Denial",
    "Denied",
    "Guard",
    "GuardLimits",
    "Guards",
    "Judgement",
    "Output",
    "PermissionAnswer",
    "PermissionPolicy",
    "PermissionRoots",
    "PermissionRule",
    "Question",
    "ReadLog",
    "ReferenceSource",
    "Referenced",
    "Registry",
    "Sandbox",
    "StoredResults",
    "Tool",
    "ToolContext",
    "ToolFailed",
    "Toolbox",
    "Verdict",
    "keep",
    "load_rules",
    "standard",
    "with_rule",
]
