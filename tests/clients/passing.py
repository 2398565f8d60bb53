"""A pass-through on a local port: the wire recorder of the tests, and the baseline of the bench.

It passes every byte on and streams what comes back. As a recorder it keeps each request and gives
it a number that travels along in a header, so that the two sides of a proxy can be laid beside
each other. With `parse` it reads and writes the body's JSON again, which is the least that any
proxy that looks at requests must do.

    python -m tests.clients.passing URL [--parse]
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager

import anyio
import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from reverie.http_server import listen, serve, serving
from tests.clients.judge import Seen, seen

NUMBER = "x-wire-number"
HOPS = ("host", "content-length", "connection", "accept-encoding", "transfer-encoding")
METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE"]


class Passing:
    """The application, and what it has seen."""

    def __init__(self, upstream: str = "", *, parse: bool = False, keep: bool = True) -> None:
        self.upstream = upstream.rstrip("/")
        self.openai = ""
        self.parse = parse
        self.keep = keep
        self.requests: list[Seen] = []
        self.answers: dict[int, dict[str, str]] = {}
        self.statuses: dict[int, int] = {}
        self._numbers = itertools.count(1)
        self._client: httpx2.AsyncClient | None = None

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/{path:path}", self.passed, methods=METHODS)])

    async def passed(self, request: Request) -> Response:
        if self._client is None:
            kept = 0 if self.keep else 100  # a recorder leaves no connection behind
            limits = httpx2.Limits(max_connections=200, max_keepalive_connections=kept)
            self._client = httpx2.AsyncClient(timeout=120, limits=limits)
        body = await request.body()
        number = next(self._numbers)
        headers = {k: v for k, v in request.headers.items() if k not in HOPS}
        headers |= {NUMBER: str(number), "accept-encoding": "identity"}
        if body and request.method == "POST":
            if self.keep:
                self._record(number, request, body)
            body = json.dumps(json.loads(body)).encode() if self.parse else body
        made = self._client.build_request(
            request.method, self._target(request), headers=headers, content=body
        )
        try:
            answer = await self._client.send(made, stream=True)
        except httpx2.HTTPError as error:
            return Response(f"upstream: {error}", 502)
        if self.keep:
            self.answers[number] = dict(answer.headers)
            self.statuses[number] = answer.status_code
        kept = {
            k: v for k, v in answer.headers.items() if k not in ("transfer-encoding", "connection")
        }
        return StreamingResponse(_pieces(answer), answer.status_code, kept)

    def _target(self, request: Request) -> str:
        query = f"?{request.url.query}" if request.url.query else ""
        path = request.url.path
        openai = self.openai and "anthropic-version" not in request.headers
        if openai and path.startswith("/v1/"):
            return self.openai + path[3:] + query
        return self.upstream + path + query

    def _record(self, number: int, request: Request, body: bytes) -> None:
        try:
            self.requests.append(seen(number, request.url.path, dict(request.headers), body))
        except ValueError:
            return


async def _pieces(answer: httpx2.Response) -> AsyncIterator[bytes]:
    try:
        async for piece in answer.aiter_raw():
            yield piece
    finally:
        await answer.aclose()


@contextmanager
def passing(found: Passing) -> Generator[str]:
    with serving(found.app(), name="pass-through") as url:
        yield url


if __name__ == "__main__":
    bare = Passing(sys.argv[1], parse="--parse" in sys.argv, keep=False)
    anyio.run(serve, bare.app(), listen("127.0.0.1", 0), lambda url: print(url, flush=True))
