"""Streamable HTTP and stdio.

The server over streamable HTTP: for local programs that hold its token.

Every request needs the token, on loopback too. One that names another host, or comes from a page
of another one, is refused before anything is read of it, and so is a body that is not JSON. Bodies,
sessions and their idle time are bounded.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from io import BufferedReader
from socket import socket
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.responses import JSONResponse

from reverie.http_server import LOCAL, serve

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from starlette.types import Receive, Scope, Send

PATH = "/mcp"
MAX_BODY = 1024 * 1024
MAX_SESSIONS = 100
IDLE_SECONDS = 30 * 60.0


class TokenGate:
    """Who may come in; behind it is the SDK's own server."""

    def __init__(self, server: Server[Any], token: str) -> None:
        self.manager = StreamableHTTPSessionManager(
            server,
            max_request_body_size=MAX_BODY,
            max_sessions=MAX_SESSIONS,
            session_idle_timeout=IDLE_SECONDS,
        )
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        refused = self._refusal(Request(scope))
        if refused is not None:
            await refused(scope, receive, send)
            return
        await self.manager.asgi_app(scope, receive, send)

    def _refusal(self, request: Request) -> JSONResponse | None:
        if not _is_from_here(request):
            return _error_response(403, "Only programs on this machine are answered")
        given = request.headers.getlist("authorization")
        kind, _, token = (given[0] if len(given) == 1 else "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(token.encode(), self._token):
            found = _error_response(401, "A valid token is needed: Authorization: Bearer TOKEN")
            found.headers["WWW-Authenticate"] = "Bearer"
            return found
        if request.url.path.rstrip("/") != PATH:
            return _error_response(404, f"There is nothing here; the server is at {PATH}")
        if request.method == "POST" and not _is_json(request):
            return _error_response(403, "A request's body is application/json")
        return None


def _is_from_here(request: Request) -> bool:
    """Whether every host that a request names is this machine."""
    origins = [one.partition("://")[2] for one in request.headers.getlist("origin")]
    return all(_name(one) in LOCAL for one in (request.headers.get("host", ""), *origins))


def _name(host: str) -> str:
    name, _, port = host.lower().rpartition(":")
    return name if port.isdigit() else host.lower()


def _is_json(request: Request) -> bool:
    kind = request.headers.get("content-type", "").partition(";")[0]
    return kind.strip().lower() == "application/json"


def _error_response(status: int, why: str) -> JSONResponse:
    return JSONResponse({"error": why}, status)


async def serve_http(door: TokenGate, listening: socket, ready: Callable[[str], None]) -> None:
    """Serve until told to stop."""
    async with door.manager.run():
        await serve(door, listening, lambda url: ready(f"{url}{PATH}"))


# --- The server over standard input and output: one message a line, and a line has an end.
#
# A line that is too long is read past without being kept, and answered as one that cannot be read.
# While the server runs, nothing else reads our input or writes to our output: what a library
# prints goes to standard error.


MAX_LINE = 1024 * 1024


class BoundedLines:
    """Lines of text from a stream of bytes; in the place of one that is too long stands a word
    that is no JSON."""

    def __init__(self, source: BufferedReader, most: int = MAX_LINE) -> None:
        self._source = source
        self._most = most

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        found = self._source.readline(self._most + 1)
        if not found:
            raise StopIteration
        if len(found) <= self._most or found.endswith(b"\n"):
            return found.decode("utf-8", "replace")
        while found and not found.endswith(b"\n"):
            found = self._source.readline(self._most)
        return "too long\n"

    def readline(self) -> str:
        return next(self, "")


@contextmanager
def _own_streams() -> Generator[tuple[BufferedReader, Any]]:
    """Our input and output for us alone; others see an empty input, and print to stderr."""
    taken, given = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    # not closed with the objects: a thread may still wait in a read
    reader = os.fdopen(taken, "rb", closefd=False)
    writer = os.fdopen(given, "w", encoding="utf-8", closefd=False)
    try:
        yield reader, writer
    finally:
        os.dup2(taken, 0)
        os.dup2(given, 1)


async def serve_stdio(server: Server[Any]) -> None:
    """Serve until the input ends."""
    with _own_streams() as (reader, writer):
        lines: Any = BoundedLines(reader)
        async with stdio_server(anyio.wrap_file(lines), anyio.wrap_file(writer)) as streams:
            await server.run(*streams, server.create_initialization_options())
