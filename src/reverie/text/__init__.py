"""Words in any language: tokens, stems, clauses, dates, hidden characters, frames.

Pure, and knows nothing of conversations or memories.
"""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "counts": "age plural size",
        "dates": "expired relative",
        "difference": "first_byte",
        "spans": "closeness",
        "tokens": "LONGEST stem",
        "untrusted": "NAME defused find frame reveal strip unframe",
    },
)
