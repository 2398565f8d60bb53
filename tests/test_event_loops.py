"""No request takes more than 50 ms of CPU of an event loop at a time, on any server of ours."""

from __future__ import annotations

import asyncio
import json
import queue
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from anyio import to_thread

import reverie
from reverie.apps.mcp import MemoryServer, TokenGate, serve_http
from reverie.apps.team import app
from reverie.http_server import listen, serving
from reverie.team import TeamStore, open_database, sha256_of
from tests.processes import running
from tests.proxy.proxied import PATHS, READ, standing
from tests.watchdog import watched_steps
from tests.web.conftest import Page, made, page, process, project, run  # noqa: F401 - fixtures

pytestmark = pytest.mark.spec("18.loops")
LINE = "A line of a text that says something of its own, number {}.\n"


async def test_the_watchdog_sees_a_step_that_is_too_long() -> None:
    def long() -> None:
        until = time.thread_time() + 0.1
        while time.thread_time() < until:
            pass

    with watched_steps() as slow:
        asyncio.get_running_loop().call_soon(long)
        await asyncio.sleep(0.2)
    assert len(slow) == 1
    assert slow[0][0] >= 0.1


def test_a_repository_of_megabytes_on_the_team_server(tmp_path: Path) -> None:
    store = TeamStore(open_database(str(tmp_path / "team.sqlite3")), now=time.time)
    token = store.create_token(org="acme", repo="acme/reader", author="ines")[0]
    way, tag = "/api/team_memory?repo=acme/reader", '"0"'
    named = {"Authorization": f"Bearer {token}"}
    with (
        watched_steps() as slow,
        serving(app(store)) as url,
        httpx2.Client(base_url=url, headers=named) as http,
    ):
        for n in range(18):
            entries = {f"{n}-{m}.md": LINE.format(m) * 700 for m in range(4)}
            sums = {key: sha256_of(one) for key, one in entries.items()}
            body = {"entries": entries, "checksums": sums}
            done = http.put(way, json=body, headers={"If-Match": tag})
            assert done.status_code == 200, done.text
            tag = done.headers["etag"]
        for view in ("", "&view=hashes"):
            assert http.get(way + view).status_code == 200
        assert http.put(way, content=b"[" * 1_900_000, headers={"If-Match": tag}).is_error
    assert not slow, slow


def test_every_screen_of_the_page(page: Page) -> None:  # noqa: F811
    with watched_steps() as slow:
        for path in ("/sessions", "/memories", "/review", "/health", "/dream", "/savings"):
            assert page.settled(path).status == 200
        for path in ("/memories?q=port", "/recall?q=port", "/sessions?only=breaks"):
            assert page.visitor.get(path).status == 200
        page.visitor.post("/memories/add", {"text": LINE.format(1) * 3_000})
    assert not slow, slow


def conversation(rounds: int, lines: int) -> list[dict[str, Any]]:
    """A long talk with tool results of so many lines."""
    rows: list[dict[str, Any]] = []
    for n in range(rounds):
        call = {"type": "tool_use", "id": f"t{n}", "name": "Read", "input": {"path": f"f{n}"}}
        done = {"type": "tool_result", "tool_use_id": f"t{n}", "content": LINE.format(n) * lines}
        rows += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [done]}]
    return [{"role": "user", "content": "Find it."}, *rows]


def words(count: int) -> list[dict[str, Any]]:
    """So many messages without a call, the user's first and last."""
    speakers = ("user", "assistant")
    return [{"role": speakers[n % 2], "content": f"Go on with {n}."} for n in range(count)]


@pytest.mark.parametrize("count", [8_001, 100_001])
def test_a_conversation_of_very_many_messages(home: Path, tmp_path: Path, count: int) -> None:
    """It holds up no other client, and above a bound it passes unread."""
    body = {"model": "claude-opus-5-5", "max_tokens": 100, "tools": [READ]}
    headers = {"x-reverie-project": str(tmp_path)}
    with standing(home, rest=0.05) as (upstream, proxy):
        proxy.post(PATHS["messages"], {**body, "messages": words(1)}, headers)
        with watched_steps() as slow:
            long = {**body, "messages": words(count)}
            found = [proxy.post(PATHS["messages"], long, headers) for _ in range(2)]
            assert [one.status_code for one in found] == [200, 200]
        said = [one.text for one in proxy.notices if "more than 20,000 parts" in one.text]
    is_read = count < 20_000
    assert found[1].headers["x-reverie"].startswith("stored=" if is_read else "passed")
    assert len(said) == (0 if is_read else 1), "it is said once"
    assert len(upstream.requests[-1].messages) == count
    assert not slow, slow


@pytest.mark.parametrize(("rounds", "lines"), [(20, 60), (400, 60), (600, 2)])
def test_a_long_conversation_through_the_proxy(home: Path, rounds: int, lines: int) -> None:
    talk = conversation(rounds, lines)
    body = {"model": "claude-opus-5-5", "max_tokens": 100, "tools": [READ], "messages": talk}
    with standing(home) as (_, proxy):
        proxy.post(PATHS["messages"], {**body, "messages": talk[:1]})  # what is loaded once
        with watched_steps() as slow:
            assert proxy.post(PATHS["messages"], body).status_code == 200
    assert not slow, slow


HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "probe", "version": "1"},
}
STARTED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("remember", {"text": LINE.format(1) * 300}),
    ("search_memory", {"query": "line " * 500}),
    ("ask_memory", {"question": "which line?"}),
    ("list_memories", {}),
    ("memory_history", {}),
    ("check_memory", {}),
    ("remember", {"text": "x", **{f"unknown{n}": "y" * 40 for n in range(15_000)}}),
)


def asked(number: int, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def calls() -> list[dict[str, Any]]:
    return [
        asked(n, "tools/call", name=name, arguments=given)
        for n, (name, given) in enumerate(CALLS, 10)
    ]


def test_every_tool_of_the_mcp_server_over_http_and_stdio(home: Path, tmp_path: Path) -> None:
    memory = reverie.Memory(tmp_path)
    for n in range(100):
        memory.add(LINE.format(n) * 20, name=f"Memory {n}")
    assert not slow_over_http(memory)
    assert not slow_over_stdio(tmp_path)


def slow_over_http(memory: reverie.Memory) -> list[tuple[float, str]]:
    ready, over = queue.Queue[str](), threading.Event()

    async def served() -> None:
        gate = TokenGate(MemoryServer(memory).server(), "t" * 40)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve_http, gate, listen("127.0.0.1", 0), ready.put)
            await to_thread.run_sync(over.wait)
            tasks.cancel_scope.cancel()

    thread = threading.Thread(target=anyio.run, args=(served,))
    thread.start()
    both = "application/json, text/event-stream"
    try:
        url = ready.get(timeout=30)
        named = {"Authorization": f"Bearer {'t' * 40}", "Accept": both}
        with httpx2.Client(headers=named, timeout=60) as http:
            hello = http.post(url, json=asked(1, "initialize", **HELLO))
            http.headers["mcp-session-id"] = hello.headers["mcp-session-id"]
            http.post(url, json=STARTED)
            for call in calls():
                assert http.post(url, json=call).status_code == 200
            with watched_steps() as slow:
                for call in calls():
                    assert http.post(url, json=call).status_code == 200
    finally:
        over.set()
        thread.join(30)
    return slow


STDIO = """
import sys, anyio
import reverie
from reverie.apps.mcp import MemoryServer, serve_stdio
from tests.watchdog import watched_steps
with watched_steps() as slow:
    anyio.run(serve_stdio, MemoryServer(reverie.Memory(sys.argv[1])).server())
print(slow, file=sys.stderr)
"""


def slow_over_stdio(folder: Path) -> str:
    line = [sys.executable, "-c", STDIO, folder]
    root = Path(__file__).parents[1]
    with (
        tempfile.TemporaryFile("w+") as told,
        running(line, stdin=subprocess.PIPE, stderr=told, cwd=root) as server,
    ):
        assert server.stdin is not None
        assert server.stdout is not None
        for one in (asked(1, "initialize", **HELLO), STARTED, *calls()):
            server.stdin.write(f"{json.dumps(one)}\n")
            server.stdin.flush()
            if "id" in one:
                assert json.loads(server.stdout.readline())["id"] == one["id"]
        server.stdin.close()
        server.wait(30)
        told.seek(0)
        return told.read().splitlines()[-1].removeprefix("[]")
