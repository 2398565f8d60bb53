"""One try: a body goes out, the events of its answer come in, and at the end one reply.

The reply is yielded after the answer is whole and its connection is given back, so that
nothing can fail behind it. An answer that is not whole, cannot be read or is an error ends
in a `Setback` and yields no reply. A server that answers in one piece though a stream was
asked for is understood.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Protocol

import anyio

from reverie.errors import InvalidMessage
from reverie.providers.connection import Connection, OpenResponse, whole
from reverie.transcript.blocks import parse
from reverie.wire.failures import Setback, broken_off, from_event, malformed
from reverie.wire.reply import Delta, Reply
from reverie.wire.sse import BadStream, Events
from reverie.world import Event

DRAIN = 0.5  # seconds for what follows the last event, so that the connection can be used again


class AnswerReader(Protocol):
    """An answer on its way, in one wire format. InvalidMessage says that it makes no sense."""

    @property
    def done(self) -> bool:
        """Whether the last event has come."""
        ...

    def take(self, data: str) -> Delta | None:
        """One event's data; what of it people may watch."""
        ...

    def ended(self) -> bool:
        """Whether the answer is whole though the stream ended without its last event."""
        ...

    def reply(self) -> Reply: ...

    def read(self, text: str) -> Reply:
        """An answer in one piece."""
        ...


async def exchange(
    connection: Connection, path: str, body: bytes, headers: Mapping[str, str], answer: AnswerReader
) -> AsyncGenerator[Event, None]:
    """Deltas as they come, and last the reply."""
    where = connection.where
    reply: Reply | None = None
    try:
        async with connection.post(path, body, headers) as response:
            if "json" in response.headers.get("content-type", ""):
                reply = _in_one_piece(await whole(response, where), answer, where)
            else:
                async with aclosing(event_data(response, where)) as events:
                    async for data in events:
                        delta = answer.take(data)
                        if delta is not None:
                            yield delta
                        if answer.done:
                            break
                    if not answer.done and not answer.ended():
                        raise broken_off("the stream ended before the message did", where)
                    reply = answer.reply()
                    with anyio.move_on_after(DRAIN):
                        async for _ in events:
                            pass
    except InvalidMessage as error:
        if reply is None:
            raise malformed(error.what, where) from error
    except Setback:
        if reply is None:
            raise
    yield reply


def _in_one_piece(text: str, answer: AnswerReader, where: str) -> Reply:
    value = parse(text)
    if isinstance(value, dict) and value.get("error"):
        raise from_event(value, where)
    return answer.read(text)


async def event_data(response: OpenResponse, where: str) -> AsyncGenerator[str, None]:
    """The data of each event of a stream, as it was sent."""
    if "html" in response.headers.get("content-type", ""):
        await whole(response, where)
        raise malformed("it is a web page", where)
    events = Events()
    async for chunk in response.aiter_bytes():
        try:
            for event in events.feed(chunk):
                yield event.data
        except BadStream as error:
            raise malformed(str(error), where) from error
