"""A server at an address: HTTP whose answers have an end.

An answer, or one event of a stream, that is longer than a line of a local server may be ends the
request. The SDK follows a redirection within the server's own origin alone.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from reverie.tools.mcp.config import McpServer
from reverie.tools.mcp.stdio import MAX_LINE

SECONDS = 30.0
STREAM_SECONDS = 300.0


class _Bounded(httpx2.AsyncByteStream):
    """A body that ends where too much comes without an event's end."""

    def __init__(self, body: Any, most: int) -> None:
        self._body = body
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        held = 0
        async for piece in self._body:
            cut = piece.rfind(b"\n\n")
            held = held + len(piece) if cut < 0 else len(piece) - cut
            if held > self._most:
                raise httpx2.RemoteProtocolError(
                    f"the answer has more than the {self._most:,} bytes that are read"
                )
            yield piece

    async def aclose(self) -> None:
        await self._body.aclose()


class _Transport(httpx2.AsyncHTTPTransport):
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        found = await super().handle_async_request(request)
        found.stream = _Bounded(found.stream, MAX_LINE)
        return found


@asynccontextmanager
async def reached(server: McpServer) -> AsyncGenerator[tuple[Any, Any]]:
    """The streams of a server at an address."""
    async with (
        httpx2.AsyncClient(
            headers=dict(server.headers),
            timeout=httpx2.Timeout(SECONDS, read=STREAM_SECONDS),
            transport=_Transport(),
        ) as client,
        streamable_http_client(server.url, http_client=client) as streams,
    ):
        yield streams[0], streams[1]
