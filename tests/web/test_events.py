"""What is told to open pages: merged, bounded, and never to somebody who does not read."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from reverie.apps.web import MAX_CLIENTS, MAX_QUEUED, RELOAD, EventHub, EventStream, OpenPage

pytestmark = pytest.mark.spec("18.web")


def drained(client: OpenPage) -> list[str]:
    found: list[str] = []
    while client.waiting:
        found.append(client.take())
    return found


async def silent() -> dict[str, Any]:
    await anyio.sleep_forever()
    return {}


async def test_a_name_waits_once_and_too_many_are_one_reload() -> None:
    client = OpenPage()
    for _ in range(1_000):
        client.put("sessions")
    client.put("memories")
    assert drained(client) == ["sessions", "memories"]
    for n in range(MAX_QUEUED):
        client.put(f"session-{n}")
    assert len(client.waiting) == MAX_QUEUED
    client.put("one more")
    client.put("another")
    assert drained(client) == [RELOAD]


async def test_there_is_room_for_so_many_pages() -> None:
    hub = EventHub()
    held = [hub.join() for _ in range(MAX_CLIENTS)]
    assert all(held)
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await EventStream(hub)({}, silent, send)
    assert sent[0]["status"] == 503
    assert held[0] is not None
    hub.leave(held[0])
    assert hub.join() is not None


async def test_a_page_is_told_names_and_nothing_else() -> None:
    hub, told = EventHub(), list[bytes]()
    gone = anyio.Event()

    async def receive() -> dict[str, str]:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        told.append(message.get("body", b""))
        if b"retry" in told[-1]:
            hub.tell("sessions")
            hub.tell("sessions")
        elif b"event" in told[-1]:
            gone.set()

    await EventStream(hub)({}, receive, send)
    assert told[2:] == [b"event: sessions\ndata: sessions\n\n"]
    assert not hub.clients


async def test_a_reader_that_never_reads_is_let_go() -> None:
    hub = EventHub(unread=0.01)

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            await anyio.sleep_forever()

    await EventStream(hub)({}, silent, send)
    assert hub.dropped == 1
    assert not hub.clients
