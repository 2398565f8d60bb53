"""The shell around the fold: sessions, forks, background work."""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "attachments": "Attachments bounded date_change date_line find_skills frontmatter "
        "local_date skills_listed",
        "budget": "Budget CountsRetries weight",
        "compaction.restoring": "RESTORED",
        "compaction.summariser": "NamedSummariser summariser_for",
        "context": "gather index_files instruction_files memory_section path_rules",
        "dream.branch": "Branch Dream dreams_folder",
        "dream.rules": "doubted",
        "dream.run": "Dreamer RETRIES told",
        "dream.watch": "ALLOWED",
        "extraction.files": "MAX_BYTES MemoryDraft",
        "extraction.landing": "HeardWords WordsSource judge land",
        "extraction.log": "LoggingFiles append log_tools refusal",
        "extraction.past": "Allowance PastSession learn lessons",
        "extraction.repeats": "said_again",
        "extraction.run": "ExtractionContext guards_at",
        "fork": "Fork PLACEHOLDER Tally",
        "host": "AFTER_A_TURN",
        "hooks": "EVENTS Hook HookEvent Hooks MAX_CONTEXT MAX_OUTPUT hooks_for load_hooks",
        "jobs": "Jobs process_limit",
        "library": "Library NoDisk SessionDisk find_session home_libraries",
        "loop": "BEGIN ROUND TurnUnderWay run_turn",
        "open_memory": "LIMIT MemoryPool OpenMemory lend_memory session_memory shared_pool",
        "options": "Head SessionOptions",
        "recall.answer": "recall_rows",
        "recall.checked": "CheckedClaim LATE Repository line",
        "recall.index": "Looked MemoryIndex",
        "recall.ledger": "in_a_row injected ledgers",
        "recall.meaning": "LOCAL_MAX local_model meanings",
        "recall.notes": "Chosen RecalledNotes ShownNote attachment note part",
        "recall.recall": "Recall",
        "recall.select": "RecalledBefore begins_turn is_noise said selector_for words",
        "recall.touched": "Touched",
        "recall.young": "young_memories",
        "rules": "ProjectRules TurnRules",
        "session": "Session open_session start_session",
        "tool_roles": "roles_of",
        "stops": "AGAIN CALL_CUT_OFF CUT_OFF EMPTY PAUSES",
        "turn": "Inbox Spend ToolEnded ToolStarted TurnEnding TurnEvent TurnLimits TurnResult",
    },
)
