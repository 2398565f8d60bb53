"""A server that is told to stop: what its clients asked for is done first."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import httpx2
import pytest
from anyio import to_thread

from reverie.http_server import listen, serve, url_of

pytestmark = pytest.mark.spec("B15.stops")


@pytest.mark.anyio
@pytest.mark.parametrize("answered", [True, False], ids=["answered already", "before its answer"])
async def test_cancelled_it_finishes_what_is_under_way(answered: bool) -> None:
    under_way, go_on, done = threading.Event(), anyio.Event(), list[str]()

    async def application(_scope: Any, _receive: Any, send: Any) -> None:
        async def answer() -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"whole"})

        if answered:
            await answer()
        under_way.set()
        await go_on.wait()
        if not answered:
            await answer()
        done.append("followed")

    listening = listen("127.0.0.1", 0)
    url, got = url_of(listening), list[str]()

    async def asked() -> None:
        got.append((await to_thread.run_sync(httpx2.get, url)).text)

    async with anyio.create_task_group() as clients:
        async with anyio.create_task_group() as servers:
            servers.start_soon(serve, application, listening, lambda _: None)
            clients.start_soon(asked)
            assert await to_thread.run_sync(under_way.wait, 30)
            servers.cancel_scope.cancel()
            clients.start_soon(_later, go_on)
        assert done == ["followed"], "the server has ended, and the request with it"
    assert got == ["whole"]


async def _later(go_on: anyio.Event) -> None:
    """Well after the server has heard that it is to stop."""
    await anyio.sleep(0.3)
    go_on.set()
