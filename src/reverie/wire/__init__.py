"""The formats of providers: Messages, chat completions, responses. Read and written, no network.

Pure: what a server sends becomes our blocks and back, calls and failures included.
"""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "adopting": "adopt",
        "chat": "ChatAnswer",
        "failures": "Setback from_event from_status said",
        "forms": "called edited",
        "given": "Addable tool_result user",
        "messages": "Assembly",
        "native": "native_block",
        "openai": "reasons",
        "reading": "Format content_blocks format_of heard value_of",
        "replies": "Observable as_reply",
        "responses": "ResponsesAnswer",
        "sending": "Request UNSTREAMED",
        "sse": "BadStream Events LARGEST ServerEvent",
    },
)
