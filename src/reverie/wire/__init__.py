"""The formats of providers: Messages, chat completions, responses. Read and written, no network.

Pure: what a server sends becomes our blocks and back, calls and failures included.
"""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "cache_breaks": "CacheBreak CacheBreakDetector ChangedPart compare_requests "
        "diagnose_break watch_entries",
        "chat": "ChatAssembler",
        "failures": "FailedAttempt from_event from_status parse_error_body",
        "forms": "edit_message parse_call",
        "lists": "Format adopt content_blocks format_of parse_message value_of",
        "messages": "MessagesAssembler",
        "openai": "native_block reasons",
        "reply": "Addable Delta Observable Reply ToolCall as_reply tool_result user",
        "request": "Difference LONG NO_HEAD Request SHORT UNSTREAMED chain_at render so_far",
        "responses": "ResponsesAssembler",
        "stream": "BadStream EventParser LARGEST ServerEvent",
    },
)
