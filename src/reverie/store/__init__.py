"""What is on disk: confined atomic files, locks that die with their process, the journal.

Everything here is synchronous and knows bytes and names only: no records, no sessions.
"""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "approvals": "IncludeApprovals RECORD",
        "consolidation": "Consolidation GATE LockLost Taken",
        "fences": "AlreadyLanded Fence Fenced",
        "files": "Changed Folder Refusal Survey",
        "history": "History",
        "home": "LAYOUT OWNER canonical_root "
        "find_project_folder is_shared project_folder session_folder session_id "
        "sessions slug tool_results_folder "
        "transcripts_folder",
        "journal": "BadLine Journal Line seal unseal",
        "keys": "DEPTH NAME_BYTES beneath check_key fold_key is_temporary shown",
        "lists": "FILE Forgotten ForgottenWords KEPT Review learn_window learned_window",
        "lock": "FileLock Holder alive holder_of is_stopped process_start release take take_turn",
        "long_index": "LongIndexes",
        "memories": "Memories",
        "memory": "MAX_INDEX MemoryFolder",
        "objects": "Damaged LARGEST Objects object_key",
        "plain": "digest is_being_written open_plain read_plain temporary",
        "project": "Project agent_memories work_root",
        "recall.index": "HitKind MAX_INDEXED RecallHit RecallIndex",
        "rule_rows": "list_rules",
        "rules": "RuleStore compile_written",
        "written": "written_times",
    },
)
