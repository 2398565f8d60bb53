"""The tools of an agent, who may use them, and the guard for background agents.

A name is loaded with its module when it is first asked for: whoever wants one tool does not load
the shell and the sandbox.
"""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "async_toolset": "AsyncToolset",
        "box": "Toolbox bounded problems",
        "command": "Unclear parse plain_words segments",
        "confined": "ConfinedFiles Slot",
        "files": "EDIT READ WRITE",
        "forbidden": "starts",
        "guard": "Denial Guard GuardLimits Guards READING SHELL WRITING",
        "json_schema": "MAX_TOLD checker",
        "kit": "STANDARD standard",
        "listing": "GLOB LIST",
        "mcp.config": "servers_in",
        "mcp.stdio": "Lines LongLine",
        "permissions": "Asker Judgement MAX_WORDS PermissionAnswer PermissionPolicy "
        "PermissionRoots PermissionRule Question Verdict",
        "places": "AnyFiles",
        "process": "Command Gathered run",
        "questions": "ADDED REMOVED Row asked_for diff read_answer",
        "reach": "BEYOND",
        "readback": "READ_BACK",
        "readonly": "box_of",
        "remembering": "RememberingFiles",
        "rules": "keep load_rules parse_rule with_rule",
        "runner": "DENIED ToolRunner",
        "sandbox": "Sandbox SandboxBox",
        "sealed": "SealedCalls",
        "searching": "GREP",
        "shell": "BASH BASH_OUTPUT KILL_SHELL",
        "tool": "Denied FileChange Input Output ReadLog ReferenceSource Referenced Registry "
        "StoredResults Tool ToolContext ToolFailed",
        "toolset": "Answer Offer Toolset",
        "wall": "version",
    },
)
