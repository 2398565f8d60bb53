"""`EmbeddedModel`: tasks to answers, recall selection.

`EmbeddedModel`: the embedded answers behind the port that every model stands behind.

Each kind of task has one row in `ANSWERS`. An answer is a pure function from a request to the
blocks of a reply: it reads the task and the messages, and never a clock, a file or a prompt of
ours. The answer is worked out whole, streamed in lines, and then given as one `Reply`. Usage is
an honest estimate: nothing is cached, everything is counted as uncached, and nothing is
billed. It opens no connection, reads no clock and raises on no content; only a task it has
no answer for is refused.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from types import MappingProxyType
from typing import TypeAlias

from reverie.embedded import chat, dream, extraction, notes, summary
from reverie.errors import InvalidMessage, NotAvailable
from reverie.recall.ranker import Query
from reverie.settings.catalog import DEFAULTS, Settings
from reverie.text.tokens import terms
from reverie.transcript.blocks import Block, dump, estimate, parse, text_block
from reverie.transcript.records import Usage
from reverie.transcript.tasks import KnownMemory, RecallTask
from reverie.wire.reply import Delta, Reply
from reverie.wire.request import Request
from reverie.world import Capabilities, Event

NAME = "embedded"

Answer: TypeAlias = Callable[[Request], Sequence[Block]]


CLEAR = 0.5
"""The share of a query's weight that a chosen memory holds. A bound: `recall/gate` has the measured
threshold, and this answer is asked for only where `selector_model` names the embedded model."""
LEAST = 2
"""Words of the query that it has, where the query has so many."""


def answer_selection(request: Request) -> Sequence[Block]:
    """The blocks of a reply: one JSON object that names files."""
    task = request.task
    chosen = select_files(task) if isinstance(task, RecallTask) else ()
    return [text_block(dump({"selected_memories": list(chosen)}))]


def select_files(task: RecallTask) -> tuple[str, ...]:
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


ANSWERS: Mapping[str, Answer] = MappingProxyType(
    {
        "main": chat.answer_chat,
        "session_memory": notes.answer_notes,
        "compact": summary.answer_summary,
        "extract_memories": extraction.answer_extraction,
        "recall": answer_selection,
        "dream": dream.answer_dream,
    }
)


class EmbeddedModel:
    """Deterministic answers to typed tasks, as a `world.Model`."""

    def __init__(
        self, settings: Settings = DEFAULTS, answers: Mapping[str, Answer] = ANSWERS
    ) -> None:
        window = settings.fallback_window
        self._capabilities = Capabilities(images=False, window=window, free=True, rules=True)
        self._answers = answers

    @property
    def name(self) -> str:
        return NAME

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        blocks = tuple(answer_for(request.task.kind, self._answers)(request))
        for delta in deltas(blocks):
            yield delta
        yield reply(request, blocks)


def answer_for(kind: str, answers: Mapping[str, Answer] = ANSWERS) -> Answer:
    """The function for a kind of task, or NotAvailable."""
    found = answers.get(kind)
    if found is None:
        raise NotAvailable(
            f"the embedded model cannot do {kind[:80]!r} yet",
            do="Configure a language model for it, or switch off what asks for it",
        )
    return found


def deltas(blocks: Sequence[Block]) -> Iterator[Delta]:
    """The answer as people watch it come: text by lines, calls by name."""
    for block in blocks:
        if block.type == "text":
            for line in block.get("text").splitlines(keepends=True):
                yield Delta("text", line)
        elif block.type == "tool_use":
            yield Delta("tool", block.get("name"))


def reply(request: Request, blocks: tuple[Block, ...]) -> Reply:
    calls = any(block.type == "tool_use" for block in blocks)
    return Reply(
        blocks,
        Usage(uncached=input_tokens(request), output=sum(block.tokens for block in blocks)),
        stop_reason="tool_use" if calls else "end_turn",
        model=NAME,
        provider=NAME,
        message_id=f"msg_{_digest(request, blocks)}",
    )


def input_tokens(request: Request) -> int:
    """The rough count of SPEC §2 for all that was sent."""
    head = _estimate_array(request.head.system) + _estimate_array(request.head.tools)
    return head + sum(message.tokens for message in request.messages())


def _estimate_array(array: str) -> int:
    try:
        return estimate(parse(array))
    except InvalidMessage:
        return estimate(array)


def _digest(request: Request, blocks: Sequence[Block]) -> str:
    found = blake2b(request.last.encode("utf-8", "replace"), digest_size=12)
    found.update(request.at(request.count - 1).chain if request.count else b"")
    for block in blocks:
        found.update(block.digest)
    return found.hexdigest()
