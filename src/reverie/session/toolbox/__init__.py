"""The tools of an agent, who may use them, and the guard for background agents."""

from __future__ import annotations

from reverie.session.toolbox.box import Toolbox
from reverie.session.toolbox.guard import Denial, Guard, Guards, Limits
from reverie.session.toolbox.listing import GLOB, LIST
from reverie.session.toolbox.permissions import (
    Answer,
    Asker,
    Ground,
    Judgement,
    Policy,
    Question,
    Rule,
    Verdict,
)
from reverie.session.toolbox.places import AnyFiles
from reverie.session.toolbox.readback import READ_BACK
from reverie.session.toolbox.reading import READ
from reverie.session.toolbox.rules import keep, load_rules, with_rule
from reverie.session.toolbox.sandbox import Sandbox
from reverie.session.toolbox.searching import GREP
from reverie.session.toolbox.shell import BASH, BASH_OUTPUT, KILL_SHELL
from reverie.session.toolbox.tool import (
    Denied,
    Found,
    Output,
    ReadLog,
    Registry,
    Source,
    Stored,
    Tool,
    ToolContext,
    ToolFailed,
)
from reverie.session.toolbox.writing import EDIT, WRITE

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
    "Answer",
    "AnyFiles",
    "Asker",
    "Denial",
    "Denied",
    "Found",
    "Ground",
    "Guard",
    "Guards",
    "Judgement",
    "Limits",
    "Output",
    "Policy",
    "Question",
    "ReadLog",
    "Registry",
    "Rule",
    "Sandbox",
    "Source",
    "Stored",
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
