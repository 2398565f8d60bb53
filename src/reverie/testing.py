"""In-memory twins of everything outside, for your tests and ours.

`ScriptedModel` answers from a list, `MemoryDisk` keeps files in a dict and can be told
to fail, `ManualClock` moves when you move it. They implement the Protocols of
`reverie.world` and nothing of the library is replaced by them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import anyio

from reverie.errors import NotFound, ProviderError, StoreError
from reverie.transcript.blocks import Block, block_of, text_block
from reverie.transcript.records import Usage
from reverie.transcript.request import Request
from reverie.world import Capabilities, Delta, Event, Reply, World

ScriptedAnswer: TypeAlias = "str | Reply | Sequence[Mapping[str, Any]] | Exception"


def call(name: str, ident: str, **arguments: Any) -> Block:
    """A tool call as a model would make it."""
    return block_of({"type": "tool_use", "id": ident, "name": name, "input": arguments})


def reply(*content: str | Block, usage: Usage | None = None) -> Reply:
    """A whole answer from texts and calls."""
    blocks = tuple(text_block(c) if isinstance(c, str) else c for c in content)
    stop = "tool_use" if any(b.type == "tool_use" for b in blocks) else "end_turn"
    return Reply(blocks, usage, stop, "scripted", "scripted")


class ScriptedModel:
    """Answers in order: texts, replies, blocks, or errors to raise; or asks a function.

    `requests` holds every request it was sent. Without a usage of its own an answer
    reports the estimate of what was sent, so that counts are anchored as in real life.
    """

    def __init__(
        self,
        answers: Iterable[ScriptedAnswer] | Callable[[Request], ScriptedAnswer],
        *,
        name: str = "scripted",
        capabilities: Capabilities | None = None,
    ) -> None:
        self._ask = answers if callable(answers) else None
        self._answers = iter(()) if callable(answers) else iter(answers)
        self._name = name
        self._capabilities = capabilities or Capabilities(marks=4, lifetimes=("5m", "1h"))
        self.requests: list[Request] = []

    @property
    def name(self) -> str:
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        self.requests.append(request)
        answer = self._ask(request) if self._ask else next(self._answers, None)
        if answer is None:
            raise ProviderError("the script has no more answers", where=self._name)
        if isinstance(answer, Exception):
            raise answer
        await anyio.lowlevel.checkpoint()
        whole = self._reply(answer, request)
        if whole.text:
            yield Delta("text", whole.text)
        yield whole

    def _reply(self, answer: str | Reply | Sequence[Mapping[str, Any]], request: Request) -> Reply:
        if isinstance(answer, str):
            whole = reply(answer)
        elif isinstance(answer, Reply):
            whole = answer
        else:
            whole = reply(*(block_of(b) for b in answer))
        if whole.usage is not None:
            return whole
        output = sum(b.tokens for b in whole.blocks)
        return replace(whole, usage=Usage(uncached=request.tokens, output=output))


@dataclass
class MemoryDisk:
    """Files in a dict. Set `error` and writes fail with it."""

    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    error: StoreError | None = None

    async def write(self, key: str, data: bytes) -> str:
        if self.error is not None:
            raise self.error
        self.files[key] = data
        return f"/memory/{key}"

    async def read(self, key: str, limit: int | None = None) -> bytes:
        if key not in self.files:
            raise NotFound("no such file", where=key)
        return self.files[key][:limit]


@dataclass
class ManualClock:
    """A clock that stands still until it is moved; sleeping moves it."""

    time: float = 1_700_000_000.0
    slept: list[float] = field(default_factory=list[float])

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds
        await anyio.lowlevel.checkpoint()


@dataclass
class FixedFlags:
    """Flags from a dict; what is not in it is on, or empty."""

    values: dict[str, Any] = field(default_factory=dict[str, Any])

    def get(self, name: str) -> Any:
        empty = name in ("tool_result_thresholds", "session_memory_config")
        return self.values.get(name, {} if empty else True)


def world(**parts: Any) -> World:
    """A world of twins; hand in what should be otherwise."""
    known: dict[str, Any] = {"clock": ManualClock(), "disk": MemoryDisk(), "flags": FixedFlags()}
    return World(**{**known, **parts})


def ids(prefix: str = "id") -> Callable[[], str]:
    """Ids that count, in place of random ones."""
    counter = iter(range(10**9))
    return lambda: f"{prefix}-{next(counter)}"


def tool_definition(name: str, **properties: Any) -> dict[str, Any]:
    """A tool as it is described to a model."""
    return {
        "name": name,
        "description": f"The tool {name}.",
        "input_schema": {"type": "object", "properties": properties},
    }
