"""A bridge over NATS JetStream: letters to sessions on other machines, kept until they are taken.

One stream holds the letters of all ends, a subject for each end, `reverie.mail.NAME`. A letter is
safe when the server says that it is stored. The receiving end takes one at a time, in the order
of the stream, and acknowledges it when it is in its own mailbox; what was not acknowledged comes
again, under the same number. Who may send is the server's business: letters are messages, and are
not obeyed.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from reverie.agent.mail.letters import MAX_BYTES
from reverie.errors import NotAvailable
from reverie.providers.extras import extra

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.js import JetStreamContext

STREAM = "REVERIE_MAIL"
SUBJECT = "reverie.mail."
SECONDS = 5.0
TAKING = 5
"""Seconds after which a letter that was not acknowledged comes again."""
DAYS = 7
MAX_KEPT = 1_000
"""Letters that the stream keeps for one end."""


class NatsLetter:
    """One letter off the stream."""

    def __init__(self, message: Any, source: str) -> None:
        self._message = message
        self.source = source
        self.number = int(message.metadata.sequence.stream)
        self.data: bytes = message.data

    async def done(self) -> None:
        await self._message.ack_sync(timeout=SECONDS)

    async def wait(self) -> None:
        """It cannot be taken yet: it stays this end's, and comes to nobody else."""
        await self._message.in_progress()


class NatsBridge:
    """`abroad.Bridge` of one end."""

    def __init__(self, client: Client, context: JetStreamContext, name: str, source: str) -> None:
        self.name = name
        self._client = client
        self._context = context
        self._source = source

    @classmethod
    async def connected(cls, url: str, name: str) -> NatsBridge:
        """The bridge at an address; NotAvailable says why there is none."""
        with extra("bridge", "the bridge cannot be reached"):
            import nats
            from nats.errors import Error
            from nats.js.api import DiscardPolicy, StreamConfig
        try:
            client: Any = await cast("Any", nats).connect(
                url, connect_timeout=SECONDS, max_reconnect_attempts=1, error_cb=_quiet
            )
            client.options["max_reconnect_attempts"] = -1  # once it was there, it is waited for
        except (Error, OSError, ValueError, TimeoutError) as error:
            where = url.rpartition("@")[2]
            raise NotAvailable(f"the bridge does not answer: {error}", where=where) from error
        context: Any = client.jetstream(timeout=SECONDS)
        stream = await context.add_stream(
            StreamConfig(
                STREAM,
                subjects=[f"{SUBJECT}*"],
                max_age=DAYS * 86_400,
                max_msg_size=MAX_BYTES,
                max_msgs_per_subject=MAX_KEPT,
                discard_new_per_subject=True,
                discard=DiscardPolicy.NEW,
            )
        )
        # numbers begin again with a stream that was made anew: they are a series of their own
        made = hashlib.sha256(str(stream.created).encode()).hexdigest()[:12]
        return cls(client, context, name, made)

    async def send(self, to: str, data: bytes) -> None:
        from nats.errors import Error

        named = {"Nats-Msg-Id": str(uuid4())}  # a second try of the client's is the same letter
        try:
            await self._context.publish(f"{SUBJECT}{to}", data, timeout=SECONDS, headers=named)
        except (Error, TimeoutError) as error:
            raise NotAvailable(
                f"the bridge did not take the letter: {error}", do="Try again later"
            ) from error

    async def letters(self) -> AsyncGenerator[NatsLetter]:
        from nats.errors import TimeoutError as Nothing
        from nats.js.api import ConsumerConfig

        config = ConsumerConfig(max_ack_pending=1, ack_wait=TAKING)
        waiting = await self._context.pull_subscribe(
            f"{SUBJECT}{self.name}", durable=self.name, stream=STREAM, config=config
        )
        while True:
            try:
                (message,) = await waiting.fetch(1, timeout=SECONDS)
            except (Nothing, TimeoutError):
                continue
            yield NatsLetter(message, self._source)

    async def aclose(self) -> None:
        await self._client.close()


async def _quiet(error: Exception) -> None:
    """The client tells every lost connection; it comes back by itself."""
    del error
