"""No request takes more than 50 ms of CPU of an event loop at a time, on any server of ours."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

import reverie
from reverie.apps.team import app
from reverie.http_server import serving
from reverie.team import TeamStore, open_database, sha256_of
from tests.mcp.test_server import client, said
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


async def test_every_tool_of_the_mcp_server(home: Path, tmp_path: Path) -> None:
    memory = reverie.Memory(tmp_path)
    for n in range(200):
        memory.add(LINE.format(n) * 20, name=f"Memory {n}")
    with watched_steps() as slow:
        async with client(memory) as c:
            await said(c, "remember", text=LINE.format(1) * 300)
            for tool, given in (
                *(
                    ("search_memory", {"query": "line"}),
                    ("ask_memory", {"question": "which line?"}),
                ),
                *(("list_memories", {}), ("memory_history", {}), ("check_memory", {})),
            ):
                await said(c, tool, **given)
            await c.list_resources()
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
