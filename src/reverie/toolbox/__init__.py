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
        "file_access": "ConfinedFiles UnconfinedFiles WritableRoot put",
        "guard": "Guard GuardLimits Guards READING SHELL WRITING",
        "json_schema": "MAX_TOLD checker problems",
        "kit": "STANDARD snip_tool standard",
        "landlock": "version",
        "mcp_servers": "servers_in",
        "mcp_transports": "Lines LongLine",
        "memory_tools": "MemoryFileAccess",
        "path_patterns": "BadPattern matcher",
        "permission_rules": "ADDED PromptRow REMOVED asked_for diff keep load_rules parse_rule "
        "read_answer with_rule",
        "permissions": "Asker BEYOND MAX_WORDS PermissionAnswer PermissionPolicy PermissionRoots "
        "PermissionRule Question Verdict reach",
        "process": "Command OutputBuffer run",
        "read_back": "SealedCalls",
        "sandbox": "Sandbox SandboxMounts WALL arguments box_of",
        "tool": "DENIED Denied Input ProposedEdit ReadLog ReferencedText Registry StoredResults "
        "Tool ToolContext ToolFailed ToolOutput ToolRunner",
        "toolbox": "Toolbox run_within_time",
        "toolset": "Offer ToolAnswer Toolset roles_of tools",
    },
)
