"""The shell around the fold: sessions, forks, background work."""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "abridgement": "abridge",
        "attachments": "Attachments date_change date_line find_skills frontmatter local_date "
        "skills_listed truncate_text",
        "budget": "Budget MeteredRetries UsageTotals weight",
        "compaction": "NamedSummariser ask summariser_for",
        "context": "gather index_files instruction_files memory_section path_rules young_memories",
        "dream.branch": "Dream DreamBranch dreams_folder",
        "dream.results": "accept describe_dream doubted_rules dream_changes drop file_diff find "
        "list_dreams undo",
        "dream.context": "DreamContext guards_at",
        "dream.client_dream": "ClientDream",
        "dream.run": "RETRIES run_dream",
        "dream.schedule": "ALLOWED DreamGates MAX_LISTED MAX_SENT dream_prompt",
        "extraction.acceptance": "TextSource land",
        "extraction.daily_log": "LoggingFiles append log_tools refusal",
        "extraction.drafts": "MAX_BYTES MAX_FILES MemoryDraft written_files",
        "extraction.past_sessions": "PastSession RunBudget learn lessons",
        "extraction.repetition": "said_again",
        "extraction.run": "ExtractionContext consider",
        "extraction.speakers": "ConversationText judge",
        "extraction.trigger": "NAME UserText asks_now extraction_prompt fresh manifest_lines "
        "saved_since turns_since user_words why_not_due",
        "hooks": "EVENTS Hook HookEvent Hooks MAX_CONTEXT MAX_OUTPUT hooks_for load_hooks",
        "jobs": "Jobs ProcessLimit process_limit",
        "library": "NoDisk SessionDisk SessionLibrary",
        "loop": "BEGIN ROUND TurnState run_turn",
        "notes": "ROUNDS update",
        "open_memory": "LIMIT MemoryPool OpenMemory lend_memory session_memory shared_pool",
        "options": "RequestHead",
        "recall.excerpts": "MemoryExcerpt RecalledMemory RecalledNotes attachment note part",
        "recall.ledger": "in_a_row injected_memories ledgers",
        "recall.project_index": "LOCAL_MAX MemoryIndex OFF RankedMemories embeddings_by "
        "local_model meanings written_times",
        "recall.query": "ToolQuery recall_rows",
        "recall.recall": "Recall",
        "recall.selection": "RecallHistory begins_turn is_noise selector_for spoken_text words",
        "recall.verification": "CheckedClaim LATE Repository line",
        "report": "tokens_until_collapse",
        "request_head": "git_state_lines project_at surroundings thinking_options",
        "restoration": "RESTORED",
        "rules": "ProjectRules TurnRules",
        "session": "Session open_session start_session",
        "stops": "AGAIN CALL_CUT_OFF CUT_OFF EMPTY PAUSES",
        "team": "QUIET_SECONDS keep_pushing watch_changes",
        "transfer": "lines_of",
        "turn": "Inbox ToolEnded ToolStarted TurnEnding TurnEvent TurnLimits TurnResult TurnUsage",
        "worker": "Fork PLACEHOLDER",
    },
)
