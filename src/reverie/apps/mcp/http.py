"""The server over streamable HTTP: for local programs that hold its token.

Every request needs the token, on loopback too. One that names another host, or comes from a page
of another one, is refused before anything is read of it, and so is a body that is not JSON. Bodies,
sessions and their idle time are bounded.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from socket import socket
from typing import TYPE_CHECKING, Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.responses import JSONResponse

from reverie.serving import LOCAL, serve

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from starlette.types import Receive, Scope, Send

PATH = "/mcp"
MAX_BODY = 1024 * 1024
MAX_SESSIONS = 100
IDLE_SECONDS = 30 * 60.0


class Door:
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
            return _refused(403, "Only programs on this machine are answered")
        given = request.headers.getlist("authorization")
        kind, _, token = (given[0] if len(given) == 1 else "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(token.encode(), self._token):
            found = _refused(401, "A valid token is needed: Authorization: Bearer TOKEN")
            found.headers["WWW-Authenticate"] = "Bearer"
            return found
        if request.url.path.rstrip("/") != PATH:
            return _refused(404, f"There is nothing here; the server is at {PATH}")
        if request.method == "POST" and not _is_json(request):
            return _refused(403, "A request's body is application/json")
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


def _refused(status: int, why: str) -> JSONResponse:
    return JSONResponse({"error": why}, status)


async def serve_http(door: Door, listening: socket, ready: Callable[[str], None]) -> None:
    """Serve until told to stop."""
    async with door.manager.run():
        await serve(door, listening, lambda url: ready(f"{url}{PATH}"))
