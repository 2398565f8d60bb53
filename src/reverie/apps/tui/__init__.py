"""The terminal app: a conversation in the terminal's own scroll-back, with an input below it.

It knows how things look and which key does what. What the keys act on is given to it.
"""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "footer": "COLLAPSE CallLine FooterStatus OPEN_LINES apart box cut footer_line status_text "
        "text_for_encoding wide wrap_lines",
        "lists": "ListItem ListPanel",
        "markdown": "MarkdownStream render_markdown terminal_text",
        "questions": "ConfirmPanel PermissionPanel",
        "screen": "TerminalScreen",
    },
)
