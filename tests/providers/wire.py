"""A server on the loopback interface that answers with the very bytes it is told to.

It keeps each request's bytes as they came. An answer may be cut after any byte, with or
without the length having been announced. One answer is used for each request, the last
one for all that follow.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from reverie.errors import ProviderError
from reverie.providers import Retries
from reverie.testing import ManualClock
from reverie.transcript import (
    EMPTY,
    AssistantMessage,
    Entry,
    HeadSet,
    Record,
    UserMessage,
    View,
    apply,
    blocks_of,
)
from reverie.wire import Reply, Request, render
from reverie.world import Event, Model

STREAM = "text/event-stream"
JSON = "application/json"


@dataclass(frozen=True)
class Answer:
    """What is sent back: `cut` bytes of the body alone, and whether its length is said."""

    body: bytes
    status: int = 200
    kind: str = STREAM
    headers: tuple[tuple[str, str], ...] = ()
    cut: int | None = None
    measured: bool = False
    pieces: int = 0  # the body in pieces of so many bytes


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Wire:
    """The server: what it will say, and what it heard."""

    answers: list[Answer]
    asked: list[Asked] = field(default_factory=list)
    url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        method, path, _ = first.split(" ")
        self.asked.append(Asked(method, path, headers, body))
        answer = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        said = answer.body if answer.cut is None else answer.body[: answer.cut]
        extra = "".join(f"{k}: {v}\r\n" for k, v in answer.headers)
        length = f"content-length: {len(answer.body)}\r\n" if answer.measured else ""
        lines = f"content-type: {answer.kind}\r\n{extra}{length}connection: close\r\n\r\n"
        writer.write(f"HTTP/1.1 {answer.status} Status\r\n{lines}".encode())
        step = answer.pieces or len(said) or 1
        for at in range(0, len(said), step):
            writer.write(said[at : at + step])
            await writer.drain()
            if answer.pieces:
                await asyncio.sleep(0)
        return False


@asynccontextmanager
async def wire(*answers: Answer) -> AsyncIterator[Wire]:
    server = Wire(list(answers))
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    server.url = f"http://127.0.0.1:{port}"
    try:
        yield server
    finally:
        listening.close()
        await listening.wait_closed()


def sse(*events: dict[str, object] | str, end: str = "\n") -> bytes:
    """Events as a stream's bytes; a text is the data as it stands."""
    out: list[str] = []
    for event in events:
        text = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
        kind = re.search(r'"type": ?"([^"]+)"', text)
        name = f"event: {kind[1]}{end}" if kind else ""
        out.append(f"{name}data: {text}{end}{end}")
    return "".join(out).encode()


def patient(limit: int = 0, clock: ManualClock | None = None, chance: float = 0.0) -> Retries:
    return Retries(limit, clock or ManualClock(), lambda: chance)


# --- conversations


HEAD = HeadSet(
    "claude-opus-5-5",
    '[{"type":"text","text":"Be brief."}]',
    '[{"name":"Read","description":"Reads a file.",'
    '"input_schema":{"type":"object","properties":{"n":{"type":"number","minimum":1.50}}}}]',
    "[]",
    '{"max_tokens":100}',
)


@dataclass
class Talk:
    """A transcript in hand, folded as it grows."""

    view: View = EMPTY
    count: int = 0

    def add(self, record: Record) -> Talk:
        self.count += 1
        entry = Entry(f"e{self.count}", self.view.leaf, float(self.count), record)
        self.view = apply(self.view, entry)
        return self

    def say(self, *content: str | dict[str, object]) -> Talk:
        blocks = [b for c in content for b in blocks_of(c if isinstance(c, str) else [c])]
        return self.add(UserMessage(tuple(blocks)))

    def answer(self, reply: Reply) -> Talk:
        return self.add(reply.record())

    def result(self, call: str, content: object) -> Talk:
        return self.say({"type": "tool_result", "tool_use_id": call, "content": content})

    def request(self) -> Request:
        return render(self.view)


def talk(head: HeadSet = HEAD, first: str = "Hello") -> Talk:
    return Talk().add(head).say(first)


async def ask(model: Model, request: Request) -> tuple[list[Event], Reply | None]:
    """All events of one request, and its reply; raises what the model raises."""
    events = [event async for event in model.stream(request)]
    replies = [e for e in events if isinstance(e, Reply)]
    assert len(replies) <= 1
    return events, replies[0] if replies else None


async def watched(model: Model, request: Request) -> tuple[list[Event], ProviderError | None]:
    """What was seen of one request until it ended, well or not."""
    events: list[Event] = []
    try:
        async for event in model.stream(request):
            events.append(event)  # noqa: PERF401 - kept also where it raises
    except ProviderError as problem:
        return events, problem
    return events, None


def assistant(*blocks: dict[str, object]) -> AssistantMessage:
    return AssistantMessage(blocks_of(list(blocks)))
