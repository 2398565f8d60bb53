"""What is on disk: confined atomic files, locks that die with their process, the journal.

Everything here is synchronous and knows bytes and names only: no records, no sessions.
"""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "approvals": "IncludeApprovals RECORD",
        "consolidation_lock": "AcquiredLock ConsolidationLock GATE LOCK_NAME LockLost",
        "files": "Changed Folder FolderListing SkippedEntry",
        "fs": "digest is_being_written open_plain read_plain temporary",
        "history": "History",
        "history_cache": "CACHE_NAME FOLD PendingWrite",
        "home": "LAYOUT LOCK OWNER address_folder canonical_root claim_address "
        "find_project_folder is_shared named_project project_folder session_folder session_id "
        "sessions slug tool_results_folder transcripts_folder",
        "journal": "BadLine Journal Line seal unseal",
        "lists": "FILE ForgottenTextRefused ForgottenWords KEPT ReviewQueue decide forget "
        "learn_window learned_window",
        "lock": "FileLock Holder alive holder_of is_stopped process_start release take take_turn",
        "long_index": "LongIndexes",
        "memory_access": "mend observe_file tail",
        "memory_folder": "MAX_INDEX MemoryFolder",
        "memory_store": "MemoryStore",
        "objects": "Damaged LARGEST ObjectStore object_key",
        "paths": "DEPTH NAME_BYTES beneath check_key fold_key format_path is_temporary",
        "project": "Project agent_memories find_project home_projects project_key project_name "
        "work_root",
        "recall.index": "HitKind INDEX_NAME MAX_INDEXED RecallHit RecallIndex",
        "recall.memories": "RefreshResult",
        "rules": "RuleStore compile_written list_rules",
        "rules_ledger": "BLOCKED BROKEN CHANGED HELD MATCHED RuleCounts offer_of offers",
        "transaction": "AlreadyLanded FENCES Fenced JobFence MAX_JOBS PLAN enter finish "
        "is_committed is_planned land record",
    },
)
