"""What changed, told to open pages as it happens.

A page gets names of what changed, never contents: it asks for its part again. A name that waits
already is not added twice; a page that is too far behind is told once to load again. Nobody is
told more than four times a second, a page that does not read is let go, and there is room for 32.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

MAX_CLIENTS = 32
MAX_QUEUED = 64
PAUSE = 0.25
HEARTBEAT = 15.0
UNREAD = 30.0
RELOAD = "reload"


class OpenPage:
    """One open page: the names it is to be told, each once, in their order."""

    def __init__(self) -> None:
        self.waiting: dict[str, None] = {}
        self.woken = asyncio.Event()

    def put(self, name: str) -> None:
        if RELOAD not in self.waiting:
            self.waiting[name] = None
        if len(self.waiting) > MAX_QUEUED:
            self.waiting = {RELOAD: None}
        self.woken.set()

    def take(self) -> str:
        """The name that has waited longest, or nothing."""
        name = next(iter(self.waiting), "")
        self.waiting.pop(name, None)
        if not self.waiting:
            self.woken.clear()
        return name


class Hub:
    """All open pages; told from any thread."""

    def __init__(self, *, unread: float = UNREAD) -> None:
        self.clients: dict[OpenPage, asyncio.AbstractEventLoop] = {}
        self.unread = unread
        self.dropped = 0
        self._lock = threading.Lock()

    def tell(self, name: str) -> None:
        with self._lock:
            for client, loop in self.clients.items():
                if not loop.is_closed():
                    loop.call_soon_threadsafe(client.put, name)

    def join(self) -> OpenPage | None:
        """A place for one more page, or None where all are taken."""
        client = OpenPage()
        with self._lock:
            if len(self.clients) >= MAX_CLIENTS:
                return None
            self.clients[client] = asyncio.get_running_loop()
        return client

    def leave(self, client: OpenPage) -> None:
        with self._lock:
            self.clients.pop(client, None)


class EventStream:
    """The answer to `/events`: a stream that ends when the page is gone or does not read."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        client = self._hub.join()
        if client is None:
            await _full(send)
            return
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_until_gone, receive, group.cancel_scope)
                await send({"type": "http.response.start", "status": 200, "headers": headers})
                await self._tell(client, send)
                group.cancel_scope.cancel()
        finally:
            self._hub.leave(client)

    async def _tell(self, client: OpenPage, send: Send) -> None:
        text = "retry: 2000\n\n"
        while True:
            with anyio.move_on_after(self._hub.unread) as patience:
                body = {"type": "http.response.body", "body": text.encode(), "more_body": True}
                await send(body)
            if patience.cancelled_caught:
                self._hub.dropped += 1
                return
            await anyio.sleep(PAUSE)
            with anyio.move_on_after(HEARTBEAT):
                await client.woken.wait()
            name = client.take()
            text = f"event: {name}\ndata: {name}\n\n" if name else ": still here\n\n"


async def _until_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def _full(send: Send) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"retry-after", b"30")]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    text = b"Too many pages are open. Close one; this page works without being live."
    await send({"type": "http.response.body", "body": text})
