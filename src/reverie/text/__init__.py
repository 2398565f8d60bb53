"""Words in any language: tokens, stems, clauses, dates, hidden characters, frames.

Pure, and knows nothing of conversations or memories.
"""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "dates": "expired relative",
        "difference": "first_byte",
        "format": "age days_since number plural short_number size",
        "spans": "closeness",
        "tokens": "LONGEST stem",
        "untrusted": "NAME defused find frame inside reveal strip",
    },
)
