"""The formats of providers: Messages, chat completions, responses. Read and written, no network.

Pure: what a server sends becomes our blocks and back, calls and failures included.
"""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "adopting": "adopt",
        "cache_breaks": "Break BreakWatch ChangedPart compared diagnosed watch_entries",
        "chat": "ChatAnswer",
        "failures": "Setback from_event from_status said",
        "forms": "called edited",
        "messages": "Assembly",
        "native": "native_block",
        "openai": "reasons",
        "reading": "Format content_blocks format_of heard value_of",
        "reply": "Addable Delta Observable Reply ToolCall as_reply tool_result user",
        "request": "Difference LONG NO_HEAD Request SHORT UNSTREAMED chain_at render so_far",
        "responses": "ResponsesAnswer",
        "sse": "BadStream Events LARGEST ServerEvent",
    },
)
