"""A server on a port of ours: what every door that listens has in common.

A socket is bound before anything starts, on loopback unless its owner says otherwise. A client
that does not get on with its request is cut off; a body is read to a limit and within a time;
a request that names another host, or comes from a web page, can be told from one of a local
program. A server says when it is ready, and finishes the requests under way when it is told to
stop. What is answered is the door's own business.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import signal
import socket
import threading
from collections.abc import Callable, Generator, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

import anyio
import h11
import uvicorn
from starlette.requests import ClientDisconnect, Request
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import HANDLED_SIGNALS

from reverie.errors import InvalidInput

if TYPE_CHECKING:
    from starlette.types import ASGIApp

LOCAL = ("localhost", "127.0.0.1", "[::1]")
HEADER_SECONDS = 10.0
"""From a connection, or a request's first byte, until its headers are whole."""
BODY_SECONDS = 60.0
GRACE_SECONDS = 5


class BodyTooLarge(Exception):
    """The body is over its limit; the rest of it was not read."""


class BodyCutOff(Exception):
    """The client went away before its body was whole."""


class BodyTooSlow(Exception):
    """The body did not come in time."""


def is_local(request: Request) -> bool:
    """Whether a local program asks: no web page, and no name that only points here."""
    host = request.headers.get("host", "").lower()
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    return name in LOCAL and "origin" not in request.headers


async def read_body(request: Request, most: int, seconds: float = BODY_SECONDS) -> bytes:
    """The request's body, or one of the three errors above."""
    found = bytearray()
    with anyio.move_on_after(seconds):
        try:
            async for piece in request.stream():
                found += piece
                if len(found) > most:
                    raise BodyTooLarge
        except ClientDisconnect:
            raise BodyCutOff from None
        return bytes(found)
    raise BodyTooSlow


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """A bound socket; the caller closes it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP: else asyncio leaves Nagle's algorithm on, and every answer waits for 40 ms.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except OSError as error:
        found.close()
        do = "Choose another port, or 0 for any"
        raise InvalidInput(f"cannot listen: {error}", where=f"{host}:{port}", do=do) from error
    return found


def url_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Impatient(H11Protocol):
    """A connection that ends where headers or a body do not come in time, however they trickle."""

    seconds: Mapping[object, float] = MappingProxyType({})  # by what the client is about to send
    _phase: object = None
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._limit(h11.IDLE)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._limit(self.conn.their_state)

    def connection_lost(self, exc: Exception | None) -> None:
        self._limit(None)
        super().connection_lost(exc)

    def _limit(self, phase: object) -> None:
        """Give a phase its time once; what comes meanwhile does not prolong it."""
        if phase is self._phase and self._timer is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
        limit, self._phase = self.seconds.get(phase), phase
        self._timer = self.loop.call_later(limit, self.transport.abort) if limit else None


class Server(uvicorn.Server):
    """uvicorn, saying when it is ready."""

    def __init__(
        self,
        application: ASGIApp,
        ready: Callable[[], None],
        header_seconds: float = HEADER_SECONDS,
        grace_seconds: int = GRACE_SECONDS,
        named: bool = True,
        body_seconds: float = BODY_SECONDS + GRACE_SECONDS,  # `read_body` answers before that
    ) -> None:
        seconds = {h11.IDLE: header_seconds, h11.SEND_BODY: body_seconds}
        super().__init__(
            uvicorn.Config(
                application,
                server_header=named,
                date_header=named,
                http=type("_Timed", (_Impatient,), {"seconds": seconds}),
                ws="none",
                log_config=None,
                log_level="critical",
                access_log=False,
                lifespan="off",
                timeout_graceful_shutdown=grace_seconds,
            )
        )
        self._ready = ready

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Stop at a signal without raising it again behind the end: the door closes first."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {one: signal.signal(one, self.handle_exit) for one in HANDLED_SIGNALS}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


def _notify_ready(ready: Callable[[str], None], listening: socket.socket) -> None:
    ready(url_of(listening))


async def serve(
    application: ASGIApp,
    listening: socket.socket,
    ready: Callable[[str], None],
    *,
    grace_seconds: int = GRACE_SECONDS,
    named: bool = True,
) -> None:
    """Serve until SIGINT or SIGTERM, or until cancelled; requests under way are finished, for so
    many seconds. `named`: answers say which server gave them, and when."""
    told = partial(_notify_ready, ready, listening)
    server = Server(application, told, grace_seconds=grace_seconds, named=named)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_stop_when_cancelled, server)
            with anyio.CancelScope(shield=True):  # cut off, it would leave its requests behind
                await server.serve(sockets=[listening])
            tasks.cancel_scope.cancel()
    finally:
        listening.close()


async def _stop_when_cancelled(server: Server) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        server.should_exit = True


@contextlib.contextmanager
def serving(
    application: ASGIApp,
    *,
    header_seconds: float = HEADER_SECONDS,
    body_seconds: float = BODY_SECONDS + GRACE_SECONDS,
    name: str = "server",
) -> Generator[str]:
    """A server on a free local port in a thread of its own, for as long as the block runs."""
    found = listen("127.0.0.1", 0)
    started = threading.Event()
    server = Server(application, started.set, header_seconds, body_seconds=body_seconds)
    thread = threading.Thread(
        target=lambda: anyio.run(server.serve, [found]), name=name, daemon=True
    )
    thread.start()
    if not started.wait(30):
        raise InvalidInput(f"the {name} did not start")
    try:
        yield url_of(found)
    finally:
        server.should_exit = True
        thread.join()
        found.close()
