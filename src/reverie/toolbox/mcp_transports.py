"""Transports to MCP servers: stdio, HTTP.

A server that is a program of its own: started, spoken to line by line, and ended.

The SDK's own transport would keep a line of any length and copy it for each piece that
comes. Here a line has an end: one that is longer is read past, and whoever waits for it is told so.
A server that talks unasked and without pause is left alone. It gets few variables of our
environment, and everything it started ends with it.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
from anyio.abc import Process
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from reverie import programs
from reverie.light import dataclass
from reverie.toolbox.mcp_servers import McpServer

MAX_LINE = 16 * 1024 * 1024
MAX_UNASKED = 5_000
"""Messages in a row that answer nothing."""
PASSED_ON = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
GRACE = 1.0
"""Seconds a server has to end by itself, and again behind a first signal."""
_SEEN = 4096
_ID = re.compile(rb'"id"\s*:\s*(\d{1,18}|"[^"\\]{1,200}")')


@dataclass(frozen=True, slots=True)
class LongLine:
    """A line that was not kept: its two ends, and how long it was."""

    head: bytes
    tail: bytes
    size: int

    @property
    def id(self) -> int | str | None:
        """Which request it answers, as far as its ends tell."""
        found = _ID.search(self.head) or _ID.search(self.tail)
        if found is None:
            return None
        text = found[1].decode("utf-8", "replace")
        return text.strip('"') if text.startswith('"') else int(text)


class Lines:
    """Bytes as they come, lines as they end; none is kept beyond its limit."""

    def __init__(self, most: int = MAX_LINE) -> None:
        self._most = most
        self._parts: list[bytes] = []
        self._size = 0
        self._tail = b""

    def feed(self, data: bytes) -> Iterator[bytes | LongLine]:
        *ended, rest = data.split(b"\n")
        for piece in ended:
            self._take(piece)
            yield self._line()
        self._take(rest)

    def _take(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._most:
            self._parts.append(piece)
            return
        if not self._tail:  # the limit was passed just now
            self._parts = [b"".join((*self._parts, piece))[:_SEEN]]
        self._tail = (self._tail + piece)[-_SEEN:]

    def _line(self) -> bytes | LongLine:
        whole, size, tail = b"".join(self._parts), self._size, self._tail
        self._parts, self._size, self._tail = [], 0, b""
        return whole if size <= self._most else LongLine(whole, tail, size)


def too_long(line: LongLine) -> SessionMessage | None:
    """What stands in the place of an answer that was not kept."""
    if line.id is None:
        return None
    text = f"the answer has {line.size:,} bytes, more than the {MAX_LINE:,} that are read"
    error = types.ErrorData(code=types.INTERNAL_ERROR, message=f"{text}; ask for less")
    return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=line.id, error=error))


def message(line: bytes) -> SessionMessage | None:
    """What a line says; None where it is no message: some servers print what they log."""
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        return None


def _is_answer(found: SessionMessage) -> bool:
    return isinstance(found.message, (types.JSONRPCResponse, types.JSONRPCError))


@asynccontextmanager
async def open_stdio_streams(
    server: McpServer, cwd: Path, environ: Mapping[str, str]
) -> AsyncGenerator[tuple[Any, Any]]:
    """The streams of a server that runs; OSError where it cannot be started."""
    known = {name: environ[name] for name in PASSED_ON if name in environ}
    process = await programs.start_async(
        server.command,
        {**known, **dict(server.environ)},
        cwd,
        stdin=programs.PIPE,
        stdout=programs.PIPE,
        stderr=programs.DEVNULL,
    )
    heard_to, heard = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    said, said_from = anyio.create_memory_object_stream[SessionMessage](0)

    async def listen() -> None:
        lines, unasked = Lines(), 0
        assert process.stdout is not None
        async with heard_to:
            with contextlib.suppress(
                anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError
            ):
                while unasked < MAX_UNASKED:
                    for line in lines.feed(await process.stdout.receive()):
                        found = too_long(line) if isinstance(line, LongLine) else message(line)
                        unasked = 0 if found and _is_answer(found) else unasked + 1
                        if found is not None:
                            await heard_to.send(found)

    async def speak() -> None:
        assert process.stdin is not None
        async with said_from:
            with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
                async for one in said_from:
                    text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await process.stdin.send(f"{text}\n".encode())
        await heard_to.aclose()

    async with anyio.create_task_group() as group:
        group.start_soon(listen)
        group.start_soon(speak)
        try:
            yield heard, said
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process)
            group.cancel_scope.cancel()
    for stream in (heard, said, heard_to, said_from):
        stream.close()


async def _end(process: Process) -> None:
    """By closing its input, then by signals to all it started."""
    assert process.stdin is not None
    with contextlib.suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        await process.stdin.aclose()
    for number in (None, signal.SIGTERM, signal.SIGKILL):
        if number is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, number)
        with anyio.move_on_after(GRACE):
            await process.wait()
            break
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)  # what it left behind
    await process.aclose()


# --- A server at an address: HTTP whose answers have an end.
#
# An answer, or one event of a stream, that is longer than a line of a local server may be ends the
# request. The SDK follows a redirection within the server's own origin alone.


SECONDS = 30.0
STREAM_SECONDS = 300.0


class _BoundedBody(httpx2.AsyncByteStream):
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
        found.stream = _BoundedBody(found.stream, MAX_LINE)
        return found


@asynccontextmanager
async def open_http_streams(server: McpServer) -> AsyncGenerator[tuple[Any, Any]]:
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
