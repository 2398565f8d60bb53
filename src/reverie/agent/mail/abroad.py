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
from typing import Any, Protocol, cast

import anyio
from anyio import to_thread
from anyio.abc import ByteStream, SocketAttribute
from anyio.streams.buffered import BufferedByteReceiveStream

from reverie.agent.mail.letters import LEAD, MAX_BYTES, Letter, checked
from reverie.concurrency import alone
from reverie.errors import InvalidInput, NotAvailable, NotFound, PathRefused, ReverieError
from reverie.session.jobs import OwnTasks
from reverie.text.terminal import clean

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

Deliver = Callable[[Letter], Letter]


class Bridge(Protocol):
    """What carries letters to other machines. Kept small: see `nats` for one."""

    async def send(self, to: str, data: bytes) -> None:
        """Hand over a letter; it is safe with the bridge when this returns."""
        ...

    def letters(self) -> AsyncGenerator[Arrived]:
        """What arrives for this end; each is given again until it is acknowledged."""
        ...

    async def aclose(self) -> None: ...


class Arrived(Protocol):
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


class Abroad:
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

    async def send(self, letter: Letter) -> str:
        checked(letter)
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
        await self.bridge.send(to, self._encoded(letter))
        return f"Handed over to the bridge for {to}"

    def _encoded(self, letter: Letter) -> bytes:
        value = {"from": self.session, "text": letter.text, "summary": letter.summary}
        return json.dumps({**value, "at": letter.at}).encode()

    async def _by_socket(self, letter: Letter) -> str:
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
                    await stream.send(self._encoded(letter) + b"\n")
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
        tasks = OwnTasks()

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
            tasks.start_soon(partial(self._received, self.bridge, say))
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
            letter = received(await _line(stream), SESSION_SENDER)
            self._deliver(letter)
            answer: dict[str, Any] = {"ok": True}
        except ReverieError as error:
            answer = {"ok": False, "error": str(error)}
        except (anyio.EndOfStream, OSError):
            return
        with contextlib.suppress(OSError, anyio.BrokenResourceError):
            await stream.send(json.dumps(answer).encode() + b"\n")

    async def _received(self, bridge: Bridge, say: Callable[[str], None]) -> None:
        _, fault = await alone(self._receive(bridge, say), None)
        if fault:
            say(f"nothing more comes over the bridge: {fault}")

    async def _receive(self, bridge: Bridge, say: Callable[[str], None]) -> None:
        async for arrived in bridge.letters():
            try:
                letter = received(arrived.data, BRIDGE_SENDER, arrived)
                await self._taken(letter, arrived)
            except ReverieError as error:
                say(f"a letter off the bridge was refused: {error}")
            await arrived.done()

    async def _taken(self, letter: Letter, arrived: Arrived) -> None:
        """Into the mailbox; while that is full it is tried again, and no later one goes before."""
        while True:
            try:
                self._deliver(letter)
                return
            except NotAvailable:
                await arrived.wait()
                await anyio.sleep(FULL)


def received(data: bytes, prefix: str, arrived: Arrived | None = None) -> Letter:
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
        return checked(Letter(f"{prefix}{sender}", LEAD, text, summary[:200], at=when))
    # all that comes from one source is one sender: its numbers are the source's own
    name, told = f"{prefix}{arrived.source}", f"[from {sender}] {text}"
    return checked(Letter(name, LEAD, told, summary[:200], number=arrived.number, at=when))


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
