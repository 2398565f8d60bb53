"""A question answered from a memory: sentences that stand in memories and past sessions.

Every sentence is quoted with its source. Where nothing answers, it says so. No model is asked and
no network used.
"""

from __future__ import annotations

import time

from reverie.api.pool import Opened
from reverie.api.reading import MemoryReader, age
from reverie.api.values import Answered, Found
from reverie.errors import InvalidInput
from reverie.session.recall.answer import Quote, answer

LOOKED = 12
"""Memories, and as many passages of sessions, that an answer is looked for in."""
UNKNOWN = "I do not know: nothing in the memories or sessions of this project answers that."


def ask(reader: MemoryReader, question: str) -> Answered:
    """The sentences that answer a question, from the narrowest part that has some."""
    if not question.strip():
        raise InvalidInput("The question is empty", do="Ask in words")
    now = time.time()
    for one in reader.opened():
        hits = one.index.search(question, now, k=LOOKED, kinds=("memory",))
        hits += one.index.search(question, now, k=LOOKED, kinds=("transcript",))
        quotes = answer(question, hits, one.memories.folder.read)
        if quotes:
            said = " ".join(quote.text for quote in quotes)
            return Answered(said, True, tuple(_source(one, quote, now) for quote in quotes))
    return Answered(UNKNOWN, False)


def _source(one: Opened, quote: Quote, now: float) -> Found:
    hit = quote.hit
    where = f"{hit.file}:{quote.line}" if hit.kind == "memory" else f"session {hit.session}"
    return Found(
        quote.text,
        where,
        hit.name,
        hit.type,
        quote.score,
        age=age(hit.saved, now),
        saved=hit.saved,
        scope=one.ground.scope,
    )
