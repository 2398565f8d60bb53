"""One local port, a token in every path, start and drain, upstream.

The proxy's server: one local port, a token in every path, everything else passed on.

    /<token>/anthropic/…    to the Messages API
    /<token>/openai/…       to the OpenAI API
    /<token>/<client>/…     the same, of a client that `reverie install` set up
    /<token>/status         what went through, as JSON; in a browser, as a live page

A request to one of the three conversation endpoints is read and may go up changed; every other
path, header and body passes as it is. What comes back passes unbuffered. An answer that breaks
off upstream breaks off here; a client that leaves ends the call. Only local programs that know
the token are answered.
"""

from __future__ import annotations

import hmac
import html
import json
import os
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
import httpx2
from anyio import to_thread
from starlette.requests import Request

from reverie.apps.proxy.encodings import READERS, unpack
from reverie.apps.proxy.policies import (
    Headers,
    StreamObserver,
    Upstreams,
    client,
    downwards,
    is_reachable,
    request,
    upwards,
)
from reverie.clients.install import CLIENTS
from reverie.clients.proxy_address import HOST, ProxyAddress, make_token
from reverie.errors import InvalidInput
from reverie.http_server import BODY_SECONDS, is_local, listen, serve
from reverie.interception.decisions import OutgoingRequest
from reverie.interception.engine import EngineOptions, InterceptionEngine
from reverie.world import Notice, Say

if TYPE_CHECKING:
    from anyio.abc import TaskGroup
    from starlette.types import Message, Receive, Scope, Send

    from reverie.wire.lists import Format
    from reverie.wire.reply import Reply

LARGEST = 48 * 1024 * 1024
"""Bytes of a body that is read; a larger one passes unread."""
ENDPOINTS: dict[str, tuple[str, Format]] = {
    "/v1/messages": ("anthropic", "messages"),
    "/v1/chat/completions": ("openai", "chat"),
    "/v1/responses": ("openai", "responses"),
}
FOLLOW_SECONDS = 30.0
RECENT = 100
PAGE = (
    b'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="2">'
    b"<title>reverie proxy</title><pre>%s</pre>"
)
Explain = Callable[[str], None]


class LocalRefusal(Exception):
    """A request that is answered here."""

    def __init__(self, status: int, what: str) -> None:
        super().__init__(what)
        self.status = status
        self.what = what


class ClientGone(Exception):
    """Nobody waits for the answer any more."""


class Proxy:
    """The ASGI application."""

    def __init__(
        self,
        engine: InterceptionEngine,
        upstreams: Upstreams,
        token: str,
        *,
        client: httpx2.AsyncClient,
        tasks: TaskGroup,
        explain: Explain | None = None,
        body_seconds: float = BODY_SECONDS,
    ) -> None:
        self.engine = engine
        self._upstreams = upstreams
        self._token = token
        self._client = client
        self._tasks = tasks
        self._explain = explain
        self._body_seconds = body_seconds
        self._recent: deque[str] = deque(maxlen=RECENT)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            await self._answer(scope, receive, send)
        except LocalRefusal as refused:
            await _plain(
                send, refused.status, {"error": {"type": "proxy", "message": refused.what}}
            )
        except ClientGone:
            return

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if "websocket" in Request(scope).headers.get("upgrade", "").lower():
            raise LocalRefusal(426, "No websocket is answered here: speak plain HTTP.")
        if not is_local(Request(scope)):
            raise LocalRefusal(403, "This proxy answers local programs only.")
        path = scope.get("raw_path", scope["path"].encode()).decode("latin-1").partition("?")[0]
        _, token, name, *rest = [*path.split("/", 3), "", ""]
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            raise LocalRefusal(403, "The path does not begin with this proxy's token.")
        if name == "status":
            await self._show(send, Request(scope).headers.get("accept", ""))
            return
        client = name if name in CLIENTS else ""
        if client:
            name, _, inner = rest[0].partition("/")
            rest = [inner]
        if name not in ("anthropic", "openai"):
            raise LocalRefusal(404, "A path begins with the token, then anthropic or openai.")
        query = scope.get("query_string", b"").decode("latin-1")
        inner = f"/{rest[0]}" if rest[0] else "/"
        url = f"{self._upstreams.base(name)}{inner}{f'?{query}' if query else ''}"
        await self._pass(scope, receive, send, (name, inner), url, client)

    async def _show(self, send: Send, accept: str) -> None:
        """What went through: as JSON, or for people as a page that renews itself."""
        if "text/html" not in accept:
            await _plain(send, 200, self._status())
            return
        lines = [f"{name}: {value}" for name, value in self._status().items()]
        text = html.escape("\n".join([*lines, "", *reversed(self._recent)]))
        await _send_response(send, 200, PAGE % text.encode(), b"text/html; charset=utf-8")

    def _status(self) -> dict[str, object]:
        figures = self.engine.figures
        return {
            "pid": os.getpid(),
            "requests": dict(figures.counts),
            "clients": {name: dict(one) for name, one in figures.clients.items()},
            "saved_characters": figures.saved,
            "breaks": figures.breaks,
            "client_breaks": figures.client_breaks,
        }

    async def _pass(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        to: tuple[str, str],
        url: str,
        client: str,
    ) -> None:
        headers: Headers = list(scope["headers"])
        named = {n.decode("latin-1").lower(): v.decode("latin-1") for n, v in headers}
        endpoint = ENDPOINTS.get(to[1]) if scope["method"] == "POST" else None
        form = endpoint[1] if endpoint and endpoint[0] == to[0] else None
        incoming = _Incoming(receive, self._body_seconds)
        coding = named.get("content-encoding", "identity").strip().lower()
        out: OutgoingRequest | None = None
        changed = False
        if form is None or coding not in ("identity", *READERS):
            body = await incoming.unread(named)
        else:
            data, more = await incoming.read(LARGEST)
            body = incoming.rest(data) if more else data
            plain = None if more else data
            if plain is not None and coding in READERS:
                plain = await to_thread.run_sync(unpack, plain, coding, LARGEST)
            if plain is not None:
                out = await self.engine.outgoing(form, named, plain, client)
                changed = out.body != plain
                body = out.body if changed else data
        whole = isinstance(body, bytes)
        kept = upwards(headers, length=not whole, packed=not changed)
        up = request(self._client, scope["method"], url, kept, body)
        await self._forward(up, incoming, send, out, form)

    async def _forward(
        self,
        up: httpx2.Request,
        incoming: _Incoming,
        send: Send,
        out: OutgoingRequest | None,
        form: Format | None,
    ) -> None:
        one = _Exchange(form if out is not None else None)
        refused: BaseException | None = None
        try:
            async with anyio.create_task_group() as both:
                both.start_soon(incoming.gone, both.cancel_scope)
                await self._run_exchange(up, send, out, one)
                both.cancel_scope.cancel()
        except* (LocalRefusal, ClientGone) as group:
            refused = group.exceptions[0]
        finally:
            self._log_exchange(up, out, one.status)
            if out is not None:
                self._tasks.start_soon(self._follow, out, one.reply())
        if refused is not None:
            raise refused

    async def _run_exchange(
        self, up: httpx2.Request, send: Send, out: OutgoingRequest | None, one: _Exchange
    ) -> None:
        try:
            answer = await self._client.send(up, stream=True)
        except httpx2.TimeoutException as error:
            raise LocalRefusal(
                504, f"The provider was not reached in time: {up.url.host}"
            ) from error
        except httpx2.HTTPError as error:
            what = f"The provider was not reached: {up.url.host}: {type(error).__name__}"
            raise LocalRefusal(502, what) from error
        try:
            one.begins(answer)
            await self._down(answer, send, out, one.passing)
        finally:
            with anyio.CancelScope(shield=True):
                await answer.aclose()

    async def _down(
        self,
        answer: httpx2.Response,
        send: Send,
        out: OutgoingRequest | None,
        passing: StreamObserver | None,
    ) -> None:
        headers = downwards(answer.headers.raw)
        if out is not None:
            headers.append((b"x-reverie", out.told.encode("latin-1", "replace")))
        await send(
            {"type": "http.response.start", "status": answer.status_code, "headers": headers}
        )
        try:
            async for piece in answer.aiter_raw():
                if passing is not None:
                    passing.take(piece)
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        except httpx2.HTTPError:
            return  # left unfinished, the connection is dropped: a cut reaches the client as one
        if passing is None or passing.is_whole:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _follow(self, out: OutgoingRequest, reply: Reply | None) -> None:
        """Let the engine take the answer in, to the end, also where the proxy stops."""
        with anyio.move_on_after(FOLLOW_SECONDS, shield=True):
            await self.engine.answered(out, reply)
        if reply is not None:
            await self.engine.rested(out)

    def _log_exchange(self, up: httpx2.Request, out: OutgoingRequest | None, status: int) -> None:
        told = out.told if out is not None else "passed"
        line = f"{up.method} {up.url.path} {status or '-'}: {told}"
        self._recent.append(line)
        if self._explain is not None:
            self._explain(line)


class _Exchange:
    """One request and its answer, as far as they came."""

    def __init__(self, form: Format | None) -> None:
        self._form: Format | None = form
        self.status = 0
        self.passing: StreamObserver | None = None

    def begins(self, answer: httpx2.Response) -> None:
        self.status = answer.status_code
        packed = answer.headers.get("content-encoding", "identity") != "identity"
        if self._form is not None and self.status == 200 and not packed:
            kind = answer.headers.get("content-type", "")
            self.passing = StreamObserver(self._form, streamed=kind.startswith("text/event-stream"))

    def reply(self) -> Reply | None:
        return self.passing.reply() if self.passing is not None else None


class _Incoming:
    """What a client sends: its body, and that it leaves."""

    def __init__(self, receive: Receive, seconds: float) -> None:
        self._receive = receive
        self._seconds = seconds
        self._ended = False
        self._over = anyio.Event()

    async def read(self, most: int) -> tuple[bytes, bool]:
        """The body; and whether there is more than so much of it."""
        found: list[bytes] = []
        size = 0
        while not self._ended and size <= most:
            found.append(await self._piece())
            size += len(found[-1])
        return b"".join(found), not self._ended

    async def unread(self, headers: dict[str, str]) -> bytes | AsyncGenerator[bytes] | None:
        """The body as it comes; None where there is none."""
        if "transfer-encoding" in headers or headers.get("content-length", "0") != "0":
            return self.rest(b"")
        self._end(True)
        return None

    async def rest(self, begun: bytes) -> AsyncGenerator[bytes]:
        """What was read, and what follows."""
        if begun:
            yield begun
        while not self._ended:
            yield await self._piece()

    async def _piece(self) -> bytes:
        with anyio.move_on_after(self._seconds):
            message: Message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            self._end(not message.get("more_body", False))
            return message.get("body", b"")
        raise LocalRefusal(408, "The request's body took too long.")

    async def gone(self, scope: anyio.CancelScope) -> None:
        """Wait until the client leaves, then end what is done for it."""
        await self._over.wait()
        while (await self._receive())["type"] != "http.disconnect":
            await anyio.lowlevel.checkpoint()
        scope.cancel()

    def _end(self, ended: bool) -> None:
        self._ended = ended
        if ended:
            self._over.set()


async def _plain(send: Send, status: int, value: object) -> None:
    await _send_response(send, status, json.dumps(value).encode(), b"application/json")


async def _send_response(send: Send, status: int, body: bytes, kind: bytes) -> None:
    headers = [(b"content-type", kind), (b"cache-control", b"no-store")]
    headers += [(b"upgrade", b"HTTP/1.1")] if status == 426 else []
    headers.append((b"content-security-policy", b"default-src 'none'"))
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


# --- The proxy, started: its token, its engine, its provider; and drained when it is told to stop.


GRACE_SECONDS = 600
"""How long answers under way may take to end, once the port is free for another proxy."""


@asynccontextmanager
async def running(
    rules: EngineOptions, upstreams: Upstreams, token: str, explain: Explain | None = None
) -> AsyncGenerator[Proxy]:
    """The application, with all that it needs; what is under way behind answers is finished."""
    engine = InterceptionEngine(rules)
    try:
        async with client() as up, anyio.create_task_group() as tasks:
            yield Proxy(engine, upstreams, token, client=up, tasks=tasks, explain=explain)
    finally:
        with anyio.CancelScope(shield=True):
            await engine.aclose()


async def run(
    rules: EngineOptions,
    upstreams: Upstreams,
    port: int,
    ready: Callable[[ProxyAddress], None],
    explain: Explain | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; streams under way are finished."""
    token = make_token(rules.shadows.own.home)
    listening = listen(HOST, port)
    address = ProxyAddress(listening.getsockname()[1], token)
    async with running(rules, upstreams, token, explain) as proxy:
        await _look(upstreams, rules.shadows.say)
        await serve(
            proxy, listening, lambda _: ready(address), grace_seconds=GRACE_SECONDS, named=False
        )


async def _look(upstreams: Upstreams, say: Say) -> None:
    """Say it where a provider cannot be reached; requests will tell the same."""
    async with client() as up:
        for url in dict.fromkeys((upstreams.anthropic, upstreams.openai)):
            if not await is_reachable(up, url):
                say(Notice("proxy", f"{url} is not reachable now", "warning"))


def upstreams_of(anthropic: str, openai: str) -> Upstreams:
    """Where requests go: as given, else to the providers themselves."""
    known = Upstreams()
    both = openai or anthropic
    return Upstreams(
        _base(anthropic) or known.anthropic,
        _base(both) or known.openai,
    )


def _base(url: str) -> str:
    parts = urlsplit(url)
    if url and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise InvalidInput("Invalid upstream: expected an http or https URL", where=url[:200])
    return url.rstrip("/").removesuffix("/v1")
