"""The tools of an agent, who may use them, and the guard for background agents.

A name is loaded with its module when it is first asked for: whoever wants one tool does not load
the shell and the sandbox.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reverie.light import offered

if TYPE_CHECKING:
    from reverie.tools.box import Toolbox
    from reverie.tools.files import EDIT, READ, WRITE
    from reverie.tools.guard import Denial, Guard, GuardLimits, Guards
    from reverie.tools.kit import STANDARD, standard
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

__all__ = [
    "BASH",
    "BASH_OUTPUT",
    "EDIT",
    "GLOB",
    "GREP",
    "KILL_SHELL",
    "LIST",
    "READ",
    "READ_BACK",
    "STANDARD",
    "WRITE",
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

__getattr__ = offered(
    __name__,
    {
        "box": "Toolbox",
        "files": "EDIT READ WRITE",
        "guard": "Denial Guard GuardLimits Guards",
        "listing": "GLOB LIST",
        "permissions": (
            "Asker Judgement PermissionAnswer PermissionPolicy PermissionRoots PermissionRule "
            "Question Verdict"
        ),
        "places": "AnyFiles",
        "readback": "READ_BACK",
        "rules": "keep load_rules with_rule",
        "sandbox": "Sandbox",
        "searching": "GREP",
        "shell": "BASH BASH_OUTPUT KILL_SHELL",
        "tool": (
            "Denied Output ReadLog Referenced ReferenceSource Registry StoredResults Tool "
            "ToolContext ToolFailed"
        ),
        "kit": "STANDARD standard",
    },
)
