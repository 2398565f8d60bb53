"""Letters to and from other sessions: by a Unix socket on this machine, or over a bridge.

A lead that a person talks to listens on a socket, `<home>/run/<session>.sock`, in a folder that
its user alone can enter, and takes letters from processes of the same user, nobody else's. What
arrives, from wherever, is put into the lead's own mailbox before it is acknowledged, so it is
delivered like any other letter: once, in order, also after a crash. Its sender's name begins with
`session-` or `bridge-`, which no agent's name does. Nothing that arrives is obeyed; the model
reads it as a message.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import socket
import stat
import struct
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast
from uuid import uuid4

import anyio
from anyio import to_thread
from anyio.abc import ByteStream, SocketAttribute
from anyio.streams.buffered import BufferedByteReceiveStream

from reverie.agent.mail.messages import LEAD, MAX_BYTES, AgentMessage, check_message
from reverie.concurrency import alone
from reverie.errors import InvalidInput, NotAvailable, NotFound, PathRefused, ReverieError
from reverie.providers.connection import extra
from reverie.session.jobs import LoopTasks
from reverie.text.safety import clean

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.js import JetStreamContext

SOCKET, BRIDGE = "uds:", "bridge:"
SESSION_SENDER, BRIDGE_SENDER = "session-", "bridge-"
FOLDER = "run"
MAX_PATH = 100
"""Bytes of a socket's path that every system takes."""
LATEST = 1e11
"""Seconds since 1970 that can be meant; what is beyond that, or no number, is no time."""
SECONDS = 5.0
"""Time for one letter, from the connection to the answer."""
FULL = 1.0
"""Seconds until a letter off a bridge is tried again, where the mailbox is full."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")

Deliver = Callable[[AgentMessage], AgentMessage]


class Bridge(Protocol):
    """What carries letters to other machines. Kept small: see `nats` for one."""

    async def send(self, to: str, data: bytes) -> None:
        """Hand over a letter; it is safe with the bridge when this returns."""
        ...

    def letters(self) -> AsyncGenerator[ReceivedMessage]:
        """What arrives for this end; each is given again until it is acknowledged."""
        ...

    async def aclose(self) -> None: ...


class ReceivedMessage(Protocol):
    """One letter off a bridge."""

    @property
    def number(self) -> int:
        """Its place among all that ever came from its source."""
        ...

    @property
    def source(self) -> str: ...

    @property
    def data(self) -> bytes: ...

    async def done(self) -> None:
        """It is safe here."""
        ...

    async def wait(self) -> None:
        """It cannot be taken yet."""
        ...


@contextlib.contextmanager
def _short(path: Path) -> Generator[str]:
    """A name for a socket that the system takes: its own may be too long."""
    if len(os.fsencode(path)) <= MAX_PATH or not os.path.isdir("/proc/self/fd"):
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def own_folder(folder: Path) -> Path:
    """The folder, made if need be; PathRefused where others could enter it."""
    with contextlib.suppress(FileExistsError):
        os.makedirs(folder, mode=0o700)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PathRefused(
            "The folder of sockets is not this user's alone",
            where=str(folder),
            do="Remove it, or take the others' rights away",
        )
    return folder


class RemoteMail:
    """One session's way to the others."""

    def __init__(
        self,
        session: str,
        home: Path,
        deliver: Deliver,
        bridge: Bridge | None = None,
    ) -> None:
        self.session = session
        self._folder = home / FOLDER
        self._deliver = deliver
        self.bridge = bridge

    @property
    def address(self) -> Path:
        """The socket that this session listens on."""
        return self._folder / f"{self.session}.sock"

    # --- sending

    async def send(self, letter: AgentMessage) -> str:
        check_message(letter)
        if letter.kind != "message":
            raise InvalidInput("other sessions get plain messages alone", where=letter.to[:80])
        if letter.to.startswith(SOCKET):
            return await self._by_socket(letter)
        if self.bridge is None:
            raise NotAvailable(
                "no bridge to other machines is set up",
                where=letter.to[:80],
                do="The setting bridge_url names one",
            )
        to = letter.to.removeprefix(BRIDGE)
        if not _ID.fullmatch(to):
            raise InvalidInput("this names no end of a bridge", where=clean(letter.to)[:80])
        await self.bridge.send(to, self._encode_message(letter))
        return f"Handed over to the bridge for {to}"

    def _encode_message(self, letter: AgentMessage) -> bytes:
        value = {"from": self.session, "text": letter.text, "summary": letter.summary}
        return json.dumps({**value, "at": letter.at}).encode()

    async def _by_socket(self, letter: AgentMessage) -> str:
        name = letter.to.removeprefix(SOCKET)
        path = Path(name) if "/" in name else self._folder / f"{name}.sock"
        try:
            found = os.lstat(path)
            mine = stat.S_ISSOCK(found.st_mode) and found.st_uid == os.getuid()
            if not mine:
                raise PathRefused("this is no socket of yours", where=clean(str(path))[:200])
            with anyio.fail_after(SECONDS):
                with _short(path) as name_of:
                    stream = await anyio.connect_unix(name_of)
                async with stream:
                    await stream.send(self._encode_message(letter) + b"\n")
                    answer = json.loads(await _line(stream))
        except TimeoutError as error:
            raise NotAvailable("the session did not answer in time", where=str(path)) from error
        except (OSError, ValueError, anyio.EndOfStream) as error:
            raise NotFound(
                "no session answers there", where=clean(str(path))[:200], do="Is it still open?"
            ) from error
        if answer.get("ok") is not True:
            raise NotAvailable(f"the session refused it: {clean(str(answer.get('error')))[:200]}")
        return f"Delivered to the session at {clean(name)}"

    # --- receiving

    @asynccontextmanager
    async def listening(self, say: Callable[[str], None]) -> AsyncGenerator[None]:
        """Take letters for as long as it is open; where that cannot be, it is said."""
        try:
            await to_thread.run_sync(own_folder, self._folder)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.address)  # of this very session, which has one holder
            with _short(self.address) as name:
                listener = await anyio.create_unix_listener(name, mode=0o600)
        except (OSError, ReverieError) as error:
            say(f"other sessions cannot write to this one: {error}")
            yield
            return
        tasks = LoopTasks()

        async def serve() -> None:
            while True:  # one after the other: there are few, and each has its time
                stream = await listener.accept()
                try:
                    with anyio.move_on_after(SECONDS):
                        await alone(self._take(stream), None)
                finally:
                    with anyio.CancelScope(shield=True):
                        await stream.aclose()

        tasks.start_soon(serve)
        if self.bridge is not None:
            tasks.start_soon(partial(self._run_receiver, self.bridge, say))
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await tasks.aclose()
                await listener.aclose()
            with contextlib.suppress(OSError):
                os.unlink(self.address)

    async def _take(self, stream: ByteStream) -> None:
        try:
            if not _same_user(stream):
                raise PathRefused("only the same user may write here")
            letter = parse_message(await _line(stream), SESSION_SENDER)
            self._deliver(letter)
            answer: dict[str, Any] = {"ok": True}
        except ReverieError as error:
            answer = {"ok": False, "error": str(error)}
        except (anyio.EndOfStream, OSError):
            return
        with contextlib.suppress(OSError, anyio.BrokenResourceError):
            await stream.send(json.dumps(answer).encode() + b"\n")

    async def _run_receiver(self, bridge: Bridge, say: Callable[[str], None]) -> None:
        _, fault = await alone(self._receive(bridge, say), None)
        if fault:
            say(f"nothing more comes over the bridge: {fault}")

    async def _receive(self, bridge: Bridge, say: Callable[[str], None]) -> None:
        async for arrived in bridge.letters():
            try:
                letter = parse_message(arrived.data, BRIDGE_SENDER, arrived)
                await self._deliver_with_retry(letter, arrived)
            except ReverieError as error:
                say(f"a letter off the bridge was refused: {error}")
            await arrived.done()

    async def _deliver_with_retry(self, letter: AgentMessage, arrived: ReceivedMessage) -> None:
        """Into the mailbox; while that is full it is tried again, and no later one goes before."""
        while True:
            try:
                self._deliver(letter)
                return
            except NotAvailable:
                await arrived.wait()
                await anyio.sleep(FULL)


def parse_message(data: bytes, prefix: str, arrived: ReceivedMessage | None = None) -> AgentMessage:
    """A letter from another session, its sender named so that no agent is meant."""
    if len(data) > MAX_BYTES:
        raise InvalidInput(f"a letter has at most {MAX_BYTES:,} bytes")
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError):
        raise InvalidInput("this is no letter") from None
    if not isinstance(value, dict):
        raise InvalidInput("this is no letter")
    given = cast("dict[str, Any]", value)
    sender = re.sub(r"[^A-Za-z0-9]", "", str(given.get("from", "")))[:12]
    text, summary, at = given.get("text"), given.get("summary", ""), given.get("at", 0.0)
    if not sender or not isinstance(text, str) or not isinstance(summary, str):
        raise InvalidInput("this is no letter")
    when = float(at) if isinstance(at, (int, float)) and abs(at) < LATEST else 0.0
    if arrived is None:
        return check_message(AgentMessage(f"{prefix}{sender}", LEAD, text, summary[:200], at=when))
    # all that comes from one source is one sender: its numbers are the source's own
    name, told = f"{prefix}{arrived.source}", f"[from {sender}] {text}"
    return check_message(
        AgentMessage(name, LEAD, told, summary[:200], number=arrived.number, at=when)
    )


async def _line(stream: ByteStream) -> bytes:
    buffered = BufferedByteReceiveStream(stream)
    try:
        return await buffered.receive_until(b"\n", MAX_BYTES)
    except anyio.DelimiterNotFound as error:
        raise InvalidInput(f"a letter has at most {MAX_BYTES:,} bytes") from error
    except anyio.IncompleteRead as error:
        raise anyio.EndOfStream from error


def _same_user(stream: ByteStream) -> bool:
    """Whether the other side belongs to the same user, where the system tells."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:  # the folder alone guards it
        return True
    raw = stream.extra(SocketAttribute.raw_socket)
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack("3i", raw.getsockopt(socket.SOL_SOCKET, option, size))
    return user == os.getuid()


# --- A bridge over NATS JetStream: letters to sessions on other machines, kept until they are
# taken.
#
# One stream holds the letters of all ends, a subject for each end, `reverie.mail.NAME`. A letter
# is safe when the server says that it is stored. The receiving end takes one at a time, in the
# order of the stream, and acknowledges it when it is in its own mailbox; what was not acknowledged
# comes again, under the same number. Who may send is the server's business: letters are messages,
# and are not obeyed.


STREAM = "REVERIE_MAIL"
SUBJECT = "reverie.mail."

TAKING = 5
"""Seconds after which a letter that was not acknowledged comes again."""
DAYS = 7
MAX_KEPT = 1_000
"""Letters that the stream keeps for one end."""


class NatsMessage:
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

    async def letters(self) -> AsyncGenerator[NatsMessage]:
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
            yield NatsMessage(message, self._source)

    async def aclose(self) -> None:
        await self._client.close()


async def _quiet(error: Exception) -> None:
    """The client tells every lost connection; it comes back by itself."""
    del error
