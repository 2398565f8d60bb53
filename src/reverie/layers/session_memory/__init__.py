"""Layer 3: session memory. Notes kept all along, and compaction that stands on them.

`due` says after a response whether the notes should be brought up to date; the session
does that with a fork. When the context passes its threshold, `settle` waits, bounded, for
an update under way and `compact` puts the notes in the place of what they cover, with no
model call. What they do not cover is never dropped: it stays, or the layer gives up and
the next one catches.
"""

from __future__ import annotations

from reverie.layers.session_memory.compaction import GaveUp, attempt, compact, settle
from reverie.layers.session_memory.growth import NAME, covered, due, is_kept, numbers
from reverie.layers.session_memory.notes import (
    IN_WORDS,
    KEY,
    TRUNCATED,
    frame,
    inserted,
    instruction,
    is_blank,
    noted,
    over_budget,
    own,
    rewritten,
    sections,
    template,
)

__all__ = [
    "IN_WORDS",
    "KEY",
    "NAME",
    "TRUNCATED",
    "GaveUp",
    "attempt",
    "compact",
    "covered",
    "due",
    "frame",
    "inserted",
    "instruction",
    "is_blank",
    "is_kept",
    "noted",
    "numbers",
    "over_budget",
    "own",
    "rewritten",
    "sections",
    "settle",
    "template",
]
