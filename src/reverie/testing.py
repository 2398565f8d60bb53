"""In-memory twins of everything outside, for your tests and ours.

`provider` is a model provider on a loopback port, with a prompt cache, for any client;
`home` an empty home. `ScriptedModel` answers from a list, `MemoryDisk` keeps files in a dict
and can be told to fail, `ManualClock` moves when you move it. They implement the Protocols of
`reverie.world` and nothing of the library is replaced by them.
"""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Mapping,
    MutableMapping,
    Sequence,
)
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import anyio

from reverie.errors import NotFound, ProviderError, StoreError
from reverie.transcript.blocks import Block, block_of, dump, parse, text_block
from reverie.transcript.records import Usage
from reverie.wire.reply import Delta, Reply
from reverie.wire.request import Request
from reverie.world import Capabilities, Event, World

if TYPE_CHECKING:
    from reverie.simulator.engine import Engine
    from reverie.simulator.ledger import LoggedRequest

ScriptedAnswer: TypeAlias = "str | Reply | Sequence[Mapping[str, Any]] | Exception"


def call(name: str, ident: str = "", **arguments: Any) -> Block:
    """A tool call as a model would make it; without an id it gets one when it is sent."""
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
        self._calls = 0

    @property
    def name(self) -> str:
        """As it was given."""
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        """As they were given; four cache marks if none were."""
        return self._capabilities

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        """Keep the request and give the next answer."""
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
        whole = replace(whole, blocks=tuple(map(self._with_call_id, whole.blocks)))
        if whole.usage is not None:
            return whole
        output = sum(b.tokens for b in whole.blocks)
        return replace(whole, usage=Usage(uncached=request.tokens, output=output))

    def _with_call_id(self, block: Block) -> Block:
        if block.type != "tool_use" or block.call:
            return block
        self._calls += 1
        return block.with_member("id", dump(f"call_{self._calls}"))


@dataclass
class MemoryDisk:
    """Files in a dict. Set `error` and writes fail with it."""

    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    error: StoreError | None = None

    async def write(self, key: str, data: bytes) -> str:
        """Keep a file; its path as a model would read it."""
        if self.error is not None:
            raise self.error
        self.files[key] = data
        return f"/memory/{key}"

    async def read(self, key: str, limit: int | None = None) -> bytes:
        """What was kept, or its beginning; NotFound where nothing was."""
        if key not in self.files:
            raise NotFound("no such file", where=key)
        return self.files[key][:limit]


@dataclass
class ManualClock:
    """A clock that stands still until it is moved; sleeping moves it."""

    time: float = 1_700_000_000.0
    slept: list[float] = field(default_factory=list[float])

    def now(self) -> float:
        """Where it stands, in seconds since the epoch."""
        return self.time

    async def sleep(self, seconds: float) -> None:
        """Move it by so much, and go on at once."""
        self.slept.append(seconds)
        self.time += seconds
        await anyio.lowlevel.checkpoint()


@dataclass
class FixedFlags:
    """Flags from a dict; what is not in it is on, or empty."""

    values: dict[str, Any] = field(default_factory=dict[str, Any])

    def get(self, name: str) -> Any:
        """The value that was given; otherwise on, or empty where a table is meant."""
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


# --- a provider, for agents that bring their own client

LEAST = 1_024
"""Tokens from which on a provider caches a prompt."""


@dataclass(frozen=True)
class ProviderRequest:
    """One request as it arrived: its body, what it was answered, what it was charged."""

    path: str
    body: Mapping[str, Any]
    status: int
    error: str
    tokens: int  # of the whole prompt
    read: int  # of them from the cache

    @property
    def messages(self) -> list[Any]:
        """The messages or items it carried."""
        found = self.body.get("messages", self.body.get("input"))
        return cast("list[Any]", found) if isinstance(found, list) else [found]

    def extends(self, earlier: ProviderRequest) -> bool:
        """Whether it begins with all of an earlier one, so that the prompt cache holds."""
        head = ("model", "system", "instructions", "tools")
        same = all(self.body.get(name) == earlier.body.get(name) for name in head)
        before = [_without_marks(one) for one in earlier.messages]
        return same and [_without_marks(one) for one in self.messages[: len(before)]] == before


def _without_marks(value: Any) -> Any:
    """Without cache marks, which move on; a text counts as the one block it stands for."""
    if isinstance(value, dict):
        known = cast("dict[str, Any]", value)
        out = {k: _without_marks(v) for k, v in known.items() if k != "cache_control"}
        if "role" in out and isinstance(out.get("content"), str):
            out["content"] = [{"type": "text", "text": out["content"]}]
        return out
    if isinstance(value, list):
        return [_without_marks(one) for one in cast("list[Any]", value)]
    return value


@dataclass(frozen=True)
class ProviderBill:
    """What all requests together came to."""

    requests: int
    tokens: int
    read: int
    output: int
    cost: float  # in units of one plain input token
    hit_rate: float  # of what an earlier request had sent and a cache may hold


class Provider:
    """A loopback provider: hand its addresses to a client, then look at what came."""

    def __init__(self, engine: Engine, url: str) -> None:
        self._engine = engine
        self.anthropic_url = url
        self.openai_url = f"{url}/v1"

    @property
    def requests(self) -> list[ProviderRequest]:
        """Every request that arrived, refused ones too."""
        return [_request(one) for one in self._engine.log]

    @property
    def bill(self) -> ProviderBill:
        """What the answered requests cost, and how well the cache held."""
        good = [one for one in self._engine.log if one.status == 200]
        totals = [one.charge.total for one in good]
        shared = [min(pair) for pair in pairwise(totals)]
        again = [(n, size) for n, size in enumerate(shared, 1) if size >= LEAST]
        could, read = sum(size for _, size in again), sum(good[n].charge.read for n, _ in again)
        return ProviderBill(
            len(good),
            sum(totals),
            sum(one.charge.read for one in good),
            sum(one.output for one in good),
            sum(one.cost for one in good),
            min(1.0, read / could) if could else 1.0,
        )


def _request(one: LoggedRequest) -> ProviderRequest:
    body = parse(one.body) if one.body else {}
    known: Mapping[str, Any] = cast("Any", body) if isinstance(body, dict) else {}
    charge = one.charge
    return ProviderRequest(one.path, known, one.status, one.error, charge.total, charge.read)


@contextmanager
def provider(
    answers: Iterable[str | Block | Sequence[Block]] | Callable[[Mapping[str, Any]], Any],
) -> Generator[Provider]:
    """A model provider on a loopback port, for as long as the block runs: the Messages API, chat
    completions and responses over one prompt cache. It answers from the list, or by asking a
    function, and refuses what the real ones refuse."""
    from reverie.providers.connection import extra

    with extra("server", "a provider for tests cannot serve"):
        from reverie.simulator.answers import script
        from reverie.simulator.engine import Engine
        from reverie.simulator.server import serving
    given: Any = answers if callable(answers) else script(*map(_blocks, answers))
    engine = Engine(given)
    with serving(engine) as url:
        yield Provider(engine, url)


def _blocks(answer: str | Block | Sequence[Block]) -> Any:
    return [answer] if isinstance(answer, Block) else answer


@contextmanager
def home() -> Generator[Path]:
    """An empty home for everything of Reverie's, removed with all it holds at the end."""
    from tempfile import TemporaryDirectory

    from reverie.settings.sources import environment

    known = cast("MutableMapping[str, str]", environment())
    before = known.get("REVERIE_HOME")
    with TemporaryDirectory(prefix="reverie-") as folder:
        known["REVERIE_HOME"] = folder
        try:
            yield Path(folder)
        finally:
            if before is None:
                del known["REVERIE_HOME"]
            else:
                known["REVERIE_HOME"] = before
