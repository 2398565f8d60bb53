"""Memory folders checked, fixed and judged. Pure."""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "branch": "judged_once",
        "changes": "change_verdict",
        "edits": "FixResult",
        "facts": "DropReason LostFact RemovalReason Tombstone fact_verdict facts_of reasons_block "
        "reasons_in",
        "fixes": "files_after fix_folder",
        "folder": "one passages",
        "lint": "CheckInput LintFinding LintReport check",
        "text_checks": "junk",
    },
)
