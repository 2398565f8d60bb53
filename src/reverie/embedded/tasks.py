"""Which function answers which kind of task.

An answer is a pure function from a request to the blocks of a reply. It reads the task
and the messages, and never a clock, a file or a prompt of ours. A kind without a row is
refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from reverie.embedded import dream, selecting
from reverie.embedded.chat import main
from reverie.embedded.extraction import answer as extraction
from reverie.embedded.notes import answer as notes
from reverie.embedded.summary import answer as summary
from reverie.errors import NotAvailable
from reverie.transcript.blocks import Block
from reverie.transcript.request import Request

Answer: TypeAlias = Callable[[Request], Sequence[Block]]

ANSWERS: Mapping[str, Answer] = MappingProxyType(
    {
        "main": main.answer,
        "session_memory": notes.answer,
        "compact": summary.answer,
        "extract_memories": extraction.answer,
        "recall": selecting.answer,
        "dream": dream.answer,
    }
)


def answer_for(kind: str, answers: Mapping[str, Answer] = ANSWERS) -> Answer:
    """The function for a kind of task, or NotAvailable."""
    found = answers.get(kind)
    if found is None:
        raise NotAvailable(
            f"the embedded model cannot do {kind[:80]!r} yet",
            do="Configure a language model for it, or switch off what asks for it",
        )
    return found
