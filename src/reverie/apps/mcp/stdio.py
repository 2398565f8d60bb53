"""The server over standard input and output: one message a line, and a line has an end.

A line that is too long is read past without being kept, and answered as one that cannot be
read. While the server runs, nothing else reads our input or writes to our output: what a library
prints goes to standard error.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from io import BufferedReader
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.stdio import stdio_server

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

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


async def serve(server: Server[Any]) -> None:
    """Serve until the input ends."""
    with _own_streams() as (reader, writer):
        lines: Any = BoundedLines(reader)
        async with stdio_server(anyio.wrap_file(lines), anyio.wrap_file(writer)) as streams:
            await server.run(*streams, server.create_initialization_options())
