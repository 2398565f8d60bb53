"""The terminal app: a conversation in the terminal's own scroll-back, with an input below it.

It knows how things look and which key does what. What the keys act on is given to it.
"""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "asking": "ConfirmPanel PermissionPanel",
        "boxes": "apart box cut wide wrapped",
        "calls": "OPEN_LINES ShownCall",
        "footer": "SEAL Status spoken",
        "lists": "Entry ListPanel",
        "markdown": "MarkdownStream rendered shown",
        "screen": "TerminalScreen",
        "signs": "drawn",
    },
)
