"""`EmbeddedModel`: the embedded answers behind the port that every model stands behind.

Each kind of task has one row in `ANSWERS`. An answer is a pure function from a request to the
blocks of a reply: it reads the task and the messages, and never a clock, a file or a prompt of
ours. The answer is worked out whole, streamed in lines, and then given as one `Reply`. Usage is
an honest estimate: nothing is cached, everything is counted as uncached, and nothing is
billed. It opens no connection, reads no clock and raises on no content; only a task it has
no answer for is refused.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from types import MappingProxyType
from typing import TypeAlias

from reverie.embedded import dream, selecting
from reverie.embedded.chat import answer as chat
from reverie.embedded.extraction import answer as extraction
from reverie.embedded.notes import answer as notes
from reverie.embedded.summary import answer as summary
from reverie.errors import InvalidMessage, NotAvailable
from reverie.settings import DEFAULTS, Settings
from reverie.transcript.blocks import Block, estimate, parse
from reverie.transcript.records import Usage
from reverie.wire.reply import Delta, Reply
from reverie.wire.request import Request
from reverie.world import Capabilities, Event

NAME = "embedded"

Answer: TypeAlias = Callable[[Request], Sequence[Block]]

ANSWERS: Mapping[str, Answer] = MappingProxyType(
    {
        "main": chat.answer,
        "session_memory": notes.answer,
        "compact": summary.answer,
        "extract_memories": extraction.answer,
        "recall": selecting.answer,
        "dream": dream.answer,
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
    head = _estimated(request.head.system) + _estimated(request.head.tools)
    return head + sum(message.tokens for message in request.messages())


def _estimated(array: str) -> int:
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
