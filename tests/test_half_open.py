"""Clients that never finish a request: others are answered, and each connection ends in time."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from reverie.http_server import HEADER_SECONDS, serving
from tests.processes import running

pytestmark = pytest.mark.spec("B15.half-open")

MANY = 50
SERVERS = {
    "proxy": ("proxy", "--upstream", "http://127.0.0.1:9"),
    "page": ("web",),
    "team": ("team", "serve"),
    "mcp": ("mcp", "--http"),
}
BEGUN = (b"", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
"""What a client sends before it goes on a byte at a time: nothing, or half its headers."""


@contextlib.contextmanager
def half_open(url: str, begun: tuple[bytes, ...] = BEGUN) -> Generator[list[socket.socket]]:
    where = urlsplit(url)
    with contextlib.ExitStack() as stack:
        found: list[socket.socket] = []
        for n in range(MANY):
            one = socket.create_connection((where.hostname, where.port), timeout=5)
            found.append(stack.enter_context(one))
            one.sendall(begun[n % len(begun)])
            one.setblocking(False)
        yield found


def left(connections: list[socket.socket], trickle: bytes = b"") -> int:
    """How many the server still holds; those that it does get one byte more."""
    count = 0
    for one in connections:
        try:
            closed = one.recv(1_000) == b""
            if not closed and trickle:
                one.sendall(trickle)
        except BlockingIOError:
            closed = False
            with contextlib.suppress(OSError):
                one.sendall(trickle)
        except OSError:
            closed = True
        count += not closed
    return count


def is_answered(url: str) -> bool:
    where = urlsplit(url)
    with contextlib.closing(HTTPConnection(where.hostname or "", where.port, timeout=10)) as line:
        line.request("GET", "/")
        return line.getresponse().status < 500


@contextlib.contextmanager
def served(words: tuple[str, ...], folder: Path) -> Generator[str]:
    line = [sys.executable, "-m", "reverie.apps.cli", *words, "--port", "0", "--json"]
    environ = {**os.environ, "REVERIE_HOME": str(folder / "home")}
    with running(line, cwd=folder, env=environ, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        yield next(url for url in _urls(json.loads(server.stdout.readline())))


def _urls(told: Any) -> Generator[str]:
    for value in told.values() if isinstance(told, dict) else ():
        if isinstance(value, str) and value.startswith("http://127.0.0.1"):
            yield value


@pytest.mark.proof
@pytest.mark.parametrize("name", SERVERS)
def test_half_open_connections_block_nobody_and_end(tmp_path: Path, name: str) -> None:
    with served(SERVERS[name], tmp_path) as url, half_open(url) as connections:
        began = time.monotonic()
        assert is_answered(url)
        assert left(connections) == MANY
        while left(connections, b"x") and time.monotonic() < began + 3 * HEADER_SECONDS:
            time.sleep(0.5)
        assert left(connections) == 0
        assert is_answered(url)


def test_neither_headers_nor_a_body_may_trickle_for_ever() -> None:
    """The same of every server, with other times: they share this one."""

    async def application(_scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"whole"})

    body = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nx"
    with (
        serving(application, header_seconds=0.5, body_seconds=0.5) as url,
        half_open(url, (*BEGUN, body)) as connections,
    ):
        began = time.monotonic()
        assert is_answered(url)
        while left(connections, b"x") and time.monotonic() < began + 20:
            time.sleep(0.05)
        assert left(connections) == 0
        assert is_answered(url)
