"""Words in any language: tokens, stems, clauses, dates, hidden characters, frames.

Pure, and knows nothing of conversations or memories.
"""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "cues": "Cue compile_phrase example read_cues read_table",
        "dates": "expired_deadlines relative",
        "format": "age days_since first_byte number plural short_number size union",
        "glob": "MAX_CHOICES choices fits",
        "json_spans": "UnpatchableBody Unreadable at put read",
        "markdown": "spans",
        "periods": "closeness",
        "safety": "NAME clean find frame inside line neutralize_markup reveal strip",
        "shell": "plain_commands plain_words",
        "shell_commands": "MAX_COMMANDS commands starts",
        "stems": "stem",
        "tokens": "LONGEST terms",
    },
)
