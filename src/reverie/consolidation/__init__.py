"""Memory folders checked, fixed and judged. Pure."""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "branch": "judged_once",
        "changes": "change_verdict",
        "edits": "FixResult",
        "facts": "LostFact fact_verdict facts_of",
        "fixes": "files_after fix_folder",
        "folder": "CheckInput one passages",
        "junk": "junk",
        "lint": "LintFinding LintReport check",
        "reasons": "DropReason RemovalReason Tombstone reasons_block reasons_in",
        "words": "same_in_other_words subject_ids tells_apart",
    },
)
