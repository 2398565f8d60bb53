"""The simulated provider on a local port.

`app` is the Starlette application, `serve` runs it until it is told to stop, `serving`
runs it beside a test. It listens on loopback alone and refuses a request that names
another host or comes from a web page. A client that does not get on with its request is
cut off. Every bad request gets an error in its API's envelope.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import TYPE_CHECKING

import anyio
import h11
import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from reverie.errors import InvalidInput
from reverie.simulator import anthropic_api, openai_api, openai_responses
from reverie.simulator.engine import Engine
from reverie.simulator.refusals import ApiError
from reverie.simulator.wire import Sending, Sleep

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

LOCAL = ("localhost", "127.0.0.1", "[::1]")
HEADER_SECONDS = 10.0
"""From a connection, or a request's first byte, until its headers are whole."""
BODY_SECONDS = 60.0
LARGEST = 64 * 1024 * 1024


def app(
    engine: Engine, *, sleep: Sleep = anyio.sleep, body_seconds: float = BODY_SECONDS
) -> Starlette:
    """The three wire formats over one engine."""
    doors = Doors(engine, sleep, body_seconds)
    return Starlette(
        routes=[
            Route("/v1/messages", doors.messages, methods=["POST"]),
            Route("/v1/messages/count_tokens", doors.count_tokens, methods=["POST"]),
            Route("/v1/models", doors.models, methods=["GET"]),
            Route("/v1/models/{name:path}", doors.model, methods=["GET"]),
            Route("/v1/chat/completions", doors.chat, methods=["POST"]),
            Route("/v1/responses", doors.responses, methods=["POST"]),
            Route("/v1/responses/input_tokens", doors.input_tokens, methods=["POST"]),
            Route("/", doors.here, methods=["GET", "HEAD"]),
            Route("/api/hello", doors.here, methods=["GET", "HEAD"]),
        ],
        exception_handlers={404: doors.nothing, 405: doors.nothing, 500: doors.failed},
    )


Handler = Callable[[Engine, bytes, Mapping[str, str]], "Awaitable[Sending] | Sending"]


class Doors:
    """One handler for each path."""

    def __init__(self, engine: Engine, sleep: Sleep, body_seconds: float = BODY_SECONDS) -> None:
        self.engine = engine
        self.sleep = sleep
        self.body_seconds = body_seconds

    async def messages(self, request: Request) -> Response:
        return await self._answered(request, anthropic_api.messages)

    async def count_tokens(self, request: Request) -> Response:
        return await self._answered(request, anthropic_api.count_tokens)

    async def chat(self, request: Request) -> Response:
        return await self._answered(request, openai_api.chat)

    async def responses(self, request: Request) -> Response:
        return await self._answered(request, openai_responses.responses)

    async def input_tokens(self, request: Request) -> Response:
        return await self._answered(request, openai_responses.input_tokens)

    async def models(self, request: Request) -> Response:
        asked = anthropic_api if _is_anthropic(request) else openai_api
        return self._strange(request) or self._sent(asked.models(self.engine))

    async def model(self, request: Request) -> Response:
        asked = anthropic_api if _is_anthropic(request) else openai_api
        found = asked.model(self.engine, str(request.path_params["name"]))
        return self._strange(request) or self._sent(found)

    async def here(self, request: Request) -> Response:
        return self._strange(request) or self._sent(Sending(200, (b'{"ok":true}',)))

    async def nothing(self, request: Request, problem: Exception) -> Response:
        """No such path, or not with this method."""
        status = 405 if getattr(problem, "status_code", 404) == 405 else 404
        said = f"{request.method} {request.url.path} is not served here"
        return self._refused(request, ApiError(status, said))

    async def failed(self, request: Request, problem: Exception) -> Response:
        """Something of ours is wrong: the client still gets an error of its API."""
        return self._refused(request, ApiError(500, f"Internal server error: {problem!r}"[:500]))

    async def _answered(self, request: Request, handler: Handler) -> Response:
        if problem := self._strange(request):
            return problem
        text: bytes | ApiError = ApiError(408, "The request's body took too long")
        with anyio.move_on_after(self.body_seconds):
            text = await _body(request)
        if isinstance(text, ApiError):
            return self._refused(request, text)
        made = handler(self.engine, text, _headers(request))
        return self._sent(made if isinstance(made, Sending) else await made)

    def _strange(self, request: Request) -> Response | None:
        """A refusal for a web page, or for a name that only points here."""
        host = request.headers.get("host", "").lower()
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if name in LOCAL and "origin" not in request.headers:
            return None
        return self._refused(request, ApiError(403, "This server answers local programs only."))

    def _refused(self, request: Request, error: ApiError) -> Response:
        if _is_anthropic(request):
            return self._sent(anthropic_api.refusal(error, self.engine))
        return self._sent(openai_api.refusal(error))

    def _sent(self, sending: Sending) -> Response:
        return SlowResponse(sending, self.sleep)


class SlowResponse(Response):
    """A response that can be slow, and can break off."""

    def __init__(self, sending: Sending, sleep: Sleep) -> None:
        super().__init__(status_code=sending.status)
        self.sending = sending
        self.sleep = sleep

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        sending = self.sending
        headers = {"content-type": sending.content_type, **sending.headers}
        raw = [(k.encode("latin-1"), v.encode("latin-1")) for k, v in headers.items()]
        await send({"type": "http.response.start", "status": sending.status, "headers": raw})
        async for piece in sending.sent(self.sleep):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        if not sending.cut:  # left unfinished, the connection is dropped
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def _headers(request: Request) -> dict[str, str]:
    return {k.lower(): v for k, v in request.headers.items()}


def _is_anthropic(request: Request) -> bool:
    return "anthropic-version" in request.headers or "x-api-key" in request.headers


async def _body(request: Request) -> bytes | ApiError:
    found = bytearray()
    try:
        async for piece in request.stream():
            found += piece
            if len(found) > LARGEST:
                return ApiError(413, "Request exceeds the maximum size")
    except ClientDisconnect:
        return ApiError(400, "The request ended before its body did")
    return bytes(found)


# --- running


def _listening(host: str, port: int) -> socket.socket:
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local:
        raise InvalidInput("the simulator listens on loopback alone", where=host)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except OSError as error:
        found.close()
        do = "Choose another port, or 0 for any"
        raise InvalidInput(f"cannot listen: {error}", where=f"{host}:{port}", do=do) from error
    return found


class _Impatient(H11Protocol):
    """A connection that ends where headers do not come in time, however slowly they trickle."""

    header_seconds = HEADER_SECONDS
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._start()
        else:
            self._stop()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _start(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self.header_seconds, self.transport.abort)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None


class _Server(uvicorn.Server):
    """uvicorn, saying when it is ready."""

    def __init__(
        self,
        application: ASGIApp,
        ready: Callable[[], None],
        header_seconds: float = HEADER_SECONDS,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                application,
                http=type("_Timed", (_Impatient,), {"header_seconds": header_seconds}),
                ws="none",
                log_config=None,
                log_level="critical",
                access_log=False,
                lifespan="off",
                timeout_graceful_shutdown=5,
            )
        )
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


def _url(found: socket.socket) -> str:
    host, port = found.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def serve(
    engine: Engine,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    ready: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve until SIGINT or SIGTERM, or until cancelled; requests under way are finished."""
    found = _listening(host, port)
    server = _Server(app(engine), lambda: ready(_url(found)))
    try:
        await server.serve(sockets=[found])
    finally:
        found.close()
        engine.ledger.close()


@contextlib.contextmanager
def serving(
    engine: Engine,
    *,
    sleep: Sleep = anyio.sleep,
    header_seconds: float = HEADER_SECONDS,
    body_seconds: float = BODY_SECONDS,
) -> Generator[str]:
    """A server on a free local port in a thread of its own, for as long as the block runs."""
    found = _listening("127.0.0.1", 0)
    started = threading.Event()
    application = app(engine, sleep=sleep, body_seconds=body_seconds)
    server = _Server(application, started.set, header_seconds)
    thread = threading.Thread(
        target=lambda: anyio.run(server.serve, [found]), name="simulator", daemon=True
    )
    thread.start()
    if not started.wait(30):
        raise InvalidInput("the simulator did not start")
    try:
        yield _url(found)
    finally:
        server.should_exit = True
        thread.join()
        found.close()
        engine.ledger.close()
