"""The simulated provider on a local port.

`app` is the Starlette application, `serve` runs it until it is told to stop, `serving`
runs it beside a test. It listens on loopback alone and refuses a request that names
another host or comes from a web page. A client that does not get on with its request is
cut off. Every bad request gets an error in its API's envelope.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import TYPE_CHECKING

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from reverie import http_server as servers
from reverie.errors import InvalidInput
from reverie.http_server import BODY_SECONDS, HEADER_SECONDS
from reverie.simulator import anthropic_api, openai_api, openai_responses
from reverie.simulator.engine import Engine
from reverie.simulator.faults import HttpPayload, Sleep
from reverie.simulator.profiles import ApiError

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

LARGEST = 64 * 1024 * 1024


def app(
    engine: Engine, *, sleep: Sleep = anyio.sleep, body_seconds: float = BODY_SECONDS
) -> Starlette:
    """The three wire formats over one engine."""
    doors = SimulatorRoutes(engine, sleep, body_seconds)
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


Handler = Callable[[Engine, bytes, Mapping[str, str]], "Awaitable[HttpPayload] | HttpPayload"]


class SimulatorRoutes:
    """One handler for each path."""

    def __init__(self, engine: Engine, sleep: Sleep, body_seconds: float = BODY_SECONDS) -> None:
        self.engine = engine
        self.sleep = sleep
        self.body_seconds = body_seconds

    async def messages(self, request: Request) -> Response:
        return await self._answer_request(request, anthropic_api.messages)

    async def count_tokens(self, request: Request) -> Response:
        return await self._answer_request(request, anthropic_api.count_tokens)

    async def chat(self, request: Request) -> Response:
        return await self._answer_request(request, openai_api.chat)

    async def responses(self, request: Request) -> Response:
        return await self._answer_request(request, openai_responses.responses)

    async def input_tokens(self, request: Request) -> Response:
        return await self._answer_request(request, openai_responses.input_tokens)

    async def models(self, request: Request) -> Response:
        asked = anthropic_api if _is_anthropic(request) else openai_api
        return self._strange(request) or self._build_response(asked.models(self.engine))

    async def model(self, request: Request) -> Response:
        asked = anthropic_api if _is_anthropic(request) else openai_api
        found = asked.model(self.engine, str(request.path_params["name"]))
        return self._strange(request) or self._build_response(found)

    async def here(self, request: Request) -> Response:
        return self._strange(request) or self._build_response(HttpPayload(200, (b'{"ok":true}',)))

    async def nothing(self, request: Request, problem: Exception) -> Response:
        """No such path, or not with this method."""
        status = 405 if getattr(problem, "status_code", 404) == 405 else 404
        said = f"{request.method} {request.url.path} is not served here"
        return self._refusal_response(request, ApiError(status, said))

    async def failed(self, request: Request, problem: Exception) -> Response:
        """Something of ours is wrong: the client still gets an error of its API."""
        return self._refusal_response(
            request, ApiError(500, f"Internal server error: {problem!r}"[:500])
        )

    async def _answer_request(self, request: Request, handler: Handler) -> Response:
        if problem := self._strange(request):
            return problem
        text = await _body(request, self.body_seconds)
        if isinstance(text, ApiError):
            return self._refusal_response(request, text)
        made = handler(self.engine, text, _headers(request))
        return self._build_response(made if isinstance(made, HttpPayload) else await made)

    def _strange(self, request: Request) -> Response | None:
        """A refusal for a web page, or for a name that only points here."""
        if servers.is_local(request):
            return None
        return self._refusal_response(
            request, ApiError(403, "This server answers local programs only.")
        )

    def _refusal_response(self, request: Request, error: ApiError) -> Response:
        if _is_anthropic(request):
            return self._build_response(anthropic_api.refusal(error, self.engine))
        return self._build_response(openai_api.refusal(error))

    def _build_response(self, sending: HttpPayload) -> Response:
        return SlowResponse(sending, self.sleep)


class SlowResponse(Response):
    """A response that can be slow, and can break off."""

    def __init__(self, sending: HttpPayload, sleep: Sleep) -> None:
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


async def _body(request: Request, seconds: float) -> bytes | ApiError:
    try:
        return await servers.read_body(request, LARGEST, seconds)
    except servers.BodyTooLarge:
        return ApiError(413, "Request exceeds the maximum size")
    except servers.BodyCutOff:
        return ApiError(400, "The request ended before its body did")
    except servers.BodyTooSlow:
        return ApiError(408, "The request's body took too long")


# --- running


async def serve(
    engine: Engine,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    ready: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve until SIGINT or SIGTERM, or until cancelled; requests under way are finished."""
    if not servers.is_loopback(host):
        raise InvalidInput("the simulator listens on loopback alone", where=host)
    try:
        await servers.serve(app(engine), servers.listen(host, port), ready)
    finally:
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
    application = app(engine, sleep=sleep, body_seconds=body_seconds)
    try:
        with servers.serving(application, header_seconds=header_seconds, name="simulator") as url:
            yield url
    finally:
        engine.ledger.close()
