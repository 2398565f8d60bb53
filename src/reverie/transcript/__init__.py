"""What was said and decided: records, the fold over them, and the request it gives."""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "audit": "Audit INTRO MustSurvive audit_replacement binding open_tasks",
        "blocks": "Block Json MEDIA_TOKENS Object block block_of blocks_of dump estimate members "
        "parse text_block text_of",
        "claude_code": "RecordedSession",
        "codec": "BLOBS NAMES blob_name blobs decode encode",
        "fold": "apply branch expecting fold_entries",
        "mentions": "LOOKED_AT READABLE REFERENCE first_names names names_in part_reference parts "
        "rank_names reference stands_for_others trouble",
        "messages": "HEAD INTERRUPTED Item Message SentBlock context_window message",
        "recordings": "is_ours read",
        "records": "AssistantMessage Attached Boundary Candidate Entry Extracted Failed ForkEnded "
        "HeadSet Mark NotesTaken Parts Recalled Record Replaced RequestRefused ResultDecided "
        "Rewound Role Sent Stand Started Strip Ttl TurnEnded Unknown Usage UserMessage "
        "WordsRemoved is_typed user_words",
        "rewrites": "widen_range",
        "tasks": "DoubtedRule DreamTask ExtractTask KnownMemory MAIN NotesTask RecallTask SUMMARY "
        "SummaryTask Task sections",
        "view": "EMPTY IndexedList PersistentMap Trail View head_blocks",
    },
)
