"""The embedded answer to `recall`: the memories whose own lines have the query's telling words.

It sees what a selecting model sees, names and descriptions, and answers in the same form. A word
weighs more the fewer memories have it; a memory is chosen where it holds most of that weight, so
an empty list is an answer. Deterministic; it reads no file, and no prompt of ours.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from reverie.memory.recall.ranking import Query
from reverie.text.tokens import terms
from reverie.transcript.blocks import Block, dump, text_block
from reverie.transcript.tasks import KnownMemory, RecallTask
from reverie.wire.request import Request

CLEAR = 0.5
"""The share of a query's weight that a chosen memory holds."""
LEAST = 2
"""Words of the query that it has, where the query has so many."""


def answer(request: Request) -> Sequence[Block]:
    """The blocks of a reply: one JSON object that names files."""
    task = request.task
    chosen = selected(task) if isinstance(task, RecallTask) else ()
    return [text_block(dump({"selected_memories": list(chosen)}))]


def selected(task: RecallTask) -> tuple[str, ...]:
    """The files that clearly fit the query, best first; of equals the newer one."""
    wanted = Query.of(task.query, 0.0).terms
    known = [(memory, frozenset(terms(_line(memory)))) for memory in task.memories]
    counts = Counter(term for _, held in known for term in held)
    weights = {term: math.log(1 + len(known) / (1 + counts[term])) for term in wanted}
    whole = sum(weights.values())
    if not whole:
        return ()
    ranked: list[tuple[float, float, str]] = []
    for memory, held in known:
        found = [term for term in weights if term in held]
        score = sum(weights[term] for term in found) / whole
        if score >= CLEAR and len(found) >= min(LEAST, len(weights)):
            ranked.append((-score, -memory.saved, memory.file))
    return tuple(file for _, _, file in sorted(ranked)[: task.files])


def _line(memory: KnownMemory) -> str:
    return f"{memory.file.removesuffix('.md')} {memory.name} {memory.description}"
