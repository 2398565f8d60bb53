"""Who may ask: the browser that followed the printed link, and nothing that a web page sends.

The link carries a token that works once; it becomes a cookie that no script can read and no other
site can send. The `Host` must be ours, so that a name that only points here gets nothing. What
changes something must come from a page of ours, as a form. Every answer says what the browser may
load: this server's own files and nothing else.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import MutableMapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reverie.serving import LOCAL

FORM = "application/x-www-form-urlencoded"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Gate:
    """The token of one run of the page, and the cookie it is exchanged for."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(24)
        self._secret = secrets.token_urlsafe(32)

    def link(self, url: str) -> str:
        """What a person opens."""
        return f"{url}/?token={self.token}"

    def exchange(self, token: str) -> bool:
        """Whether this is the token; it works once."""
        if not self.token or not hmac.compare_digest(token.encode(), self.token.encode()):
            return False
        self.token = ""
        return True

    def cookie(self, request: Request) -> str:
        return f"{_name(request)}={self._secret}; HttpOnly; SameSite=Strict; Path=/"

    def knows(self, request: Request) -> bool:
        given = request.cookies.get(_name(request), "")
        return hmac.compare_digest(given.encode(), self._secret.encode())


def _name(request: Request) -> str:
    """Cookies do not tell ports apart: each page of this machine has a name of its own."""
    return f"reverie-{_port(request.headers.get('host', ''))}"


def _port(host: str) -> str:
    return host.rpartition(":")[2] if host.rpartition(":")[2].isdigit() else "80"


def refusal(request: Request) -> str:
    """Why a request is not answered, in a sentence; nothing where it is."""
    host = request.headers.get("host", "").lower()
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    served = request.scope.get("server")
    port = str(served[1]) if served else ""
    if name not in LOCAL or (port and _port(host) != port):
        return "It was asked for under another name than its own."
    ours = f"http://{host}"
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    if origin == "null" and site == "same-origin":
        origin = ours  # a browser says null where pages tell no referrer; this it cannot be made to
    if origin is not None and origin != ours:
        return "It was asked for by the page of another site."
    if request.method in ("GET", "HEAD"):
        foreign = site in ("cross-site", "same-site")
        return "It was asked for by the page of another site." if foreign else ""
    if origin != ours and site != "same-origin":
        return "A change must come from a page of this server."
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return "" if kind == FORM else "A change must come as a form."


class Sealed:
    """Every answer of an application with the headers above."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=_headers(message))
                for name, value in HEADERS.items():
                    if name not in headers:
                        headers[name] = value
            await send(message)

        await self._application(scope, receive, sent)


def _headers(message: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    message["headers"] = list(message.get("headers", []))
    return message


def packs(headers: Headers) -> bool:
    """Whether a browser takes an answer packed."""
    return "gzip" in headers.get("accept-encoding", "")
