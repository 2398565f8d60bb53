"""`reverie mcp` as a program: over standard input and output, and over HTTP with its token."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

import reverie
from reverie.apps.cli import token_to_ask_for
from reverie.apps.mcp import BoundedLines
from reverie.errors import InvalidInput

pytestmark = pytest.mark.spec("18.mcp")

COMMAND = [sys.executable, "-m", "reverie.apps.cli", "mcp"]
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "probe", "version": "1"},
    },
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


def environ(home: Path) -> dict[str, str]:
    return {**os.environ, "REVERIE_HOME": str(home)}


async def test_the_official_client_over_stdio(home: Path, project: Path) -> None:
    server = StdioServerParameters(
        command=COMMAND[0], args=COMMAND[1:], env=environ(home), cwd=project
    )
    async with Client(server) as client:
        await client.call_tool("remember", {"text": "Staging runs in Frankfurt"})
        found = await client.call_tool("search_memory", {"query": "staging"})
        assert "Frankfurt" in found.content[0].text  # type: ignore[union-attr]
    assert [m.text for m in reverie.Memory(project, home=home).list()] == [
        "Staging runs in Frankfurt"
    ]


def test_row_69_lines_that_are_too_long_unknown_or_repeated_do_not_end_it(
    home: Path, project: Path
) -> None:
    """What no well-meaning client sends, byte by byte; then an honest call is still answered."""
    call = {"name": "remember", "arguments": {"text": "The release is on Thursday"}}
    lines = [
        HELLO,
        READY,
        "x" * (2 * 1024 * 1024),
        "[1, 2",
        '{"jsonrpc": "2.0", "id": 2, "method": "' + "a" * 5_000_000 + '"}',
        {"jsonrpc": "2.0", "id": 3, "method": "no/such"},
        {"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "rm"}},
        {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": call},
        {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": call},
        "\0\0\0",
        {"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": {"name": "list_memories"}},
    ]
    sent = "".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in lines)
    server = subprocess.Popen(
        COMMAND, cwd=project, env=environ(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(sent.encode())
    server.stdin.flush()
    answers: dict[Any, list[Any]] = {}
    while 6 not in answers or len(answers.get(5, ())) < 2:
        row = json.loads(server.stdout.readline())
        answers.setdefault(row.get("id"), []).append(row)
    server.stdin.close()
    assert server.wait(30) == 0
    server.stdout.close()
    assert answers[3][0]["error"]["code"] == -32601
    assert answers[4][0]["error"]["code"] == -32602
    outcomes = sorted(json.dumps(one).count("saved: ") for one in answers[5])
    assert outcomes in ([0, 1], [1, 1])
    assert len(reverie.Memory(project, home=home).list()) == 1


def test_a_line_is_kept_up_to_its_limit_and_no_further(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"ab\n" + b"c" * 10 + b"\n" + b"d" * 11 + b"\nlast")
    with path.open("rb") as source:
        assert list(BoundedLines(source, 10)) == ["ab\n", "c" * 10 + "\n", "too long\n", "last"]


@contextmanager
def listening(home: Path, project: Path) -> Iterator[tuple[str, str]]:
    """The server over HTTP; its address and token."""
    server = subprocess.Popen(
        [*COMMAND, "--http", "--port", "0", "--json"],
        cwd=project,
        env=environ(home),
        stdout=subprocess.PIPE,
    )
    try:
        assert server.stdout is not None
        told = json.loads(server.stdout.readline())
        yield told["url"], told["token"]
    finally:
        server.terminate()
        server.wait(30)
        assert server.stdout is not None
        server.stdout.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    folder = tmp_path_factory.mktemp("served")
    (folder / "shop").mkdir()
    with listening(folder / "home", folder / "shop") as found:
        yield found


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_client_over_http(served: tuple[str, str], mode: str) -> None:
    url, token = served
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        await client.call_tool("remember", {"text": "Staging runs in Frankfurt"})
        found = await client.call_tool("search_memory", {"query": "staging"})
        assert "Frankfurt" in found.content[0].text  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.test"}, 403),
        ({"Host": "localhost.evil.test"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "https://evil.test"}, 403),
        ({"Origin": "http://localhost.evil.test:80"}, 403),
        ({"Origin": "http://localhost:1"}, 200),
        ({"Content-Type": "text/plain"}, 403),
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Basic dXNlcg=="}, 401),
    ],
)
def test_row_67_a_page_a_foreign_host_and_whoever_has_no_token_are_refused(
    served: tuple[str, str], headers: dict[str, str], status: int
) -> None:
    url, token = served
    given = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    assert httpx2.post(url, json=HELLO, headers=given).status_code == 200
    body = json.dumps(HELLO)
    assert httpx2.post(url, content=body, headers={**given, **headers}).status_code == status


def test_row_69_a_body_over_its_limit_is_not_read(served: tuple[str, str]) -> None:
    url, token = served
    given = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    assert httpx2.post(url, content=b"x" * 2_000_000, headers=given).status_code == 413


def test_a_token_may_be_chosen_but_not_a_weak_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(token_to_ask_for()) >= 32
    assert token_to_ask_for() != token_to_ask_for()
    monkeypatch.setenv("REVERIE_MCP_TOKEN", "a-token-of-my-own")
    assert token_to_ask_for() == "a-token-of-my-own"
    for weak in ("short", "with a space in it", "ünicode-ünicode-ü"):
        monkeypatch.setenv("REVERIE_MCP_TOKEN", weak)
        with pytest.raises(InvalidInput) as refused:
            token_to_ask_for()
        assert weak not in str(refused.value)
