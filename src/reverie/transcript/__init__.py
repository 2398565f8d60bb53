"""What was said and decided: records, the fold over them, and the request it gives."""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "audit.audit": "Audit INTRO MustSurvive binding",
        "audit.names": "READABLE names_in ranked",
        "audit.parts": "parts stands_for_others trouble",
        "audit.tasks": "open_tasks",
        "blocks": "Block Json MEDIA_TOKENS Object block block_of blocks_of dump estimate members "
        "parse text_block text_of",
        "codec": "BLOBS NAMES blob_name blobs decode encode",
        "fold": "apply branch expecting",
        "messages": "HEAD INTERRUPTED Item Message Piece message",
        "moves": "widened",
        "names": "LOOKED_AT REFERENCE first_names reference",
        "recorded": "Recorded is_ours read",
        "records": "AssistantMessage Attached Boundary Candidate Entry Extracted Failed ForkEnded "
        "HeadSet Mark NotesTaken Parts Recalled Record Replaced RequestRefused ResultDecided "
        "Rewound Role Sent Stand Started Strip Ttl TurnEnded Unknown Usage UserMessage "
        "WordsRemoved is_typed is_wish",
        "sections": "SUMMARY",
        "tasks": "DoubtedRule DreamTask ExtractTask KnownMemory MAIN NotesTask RecallTask "
        "SummaryTask",
        "tokens": "context_window",
        "view": "EMPTY Roll Trail VersionedMap View head_blocks",
    },
)
