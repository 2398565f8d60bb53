"""Server-sent events, and figures worked out beside a request.

What changed, told to open pages as it happens.

A page gets names of what changed, never contents: it asks for its part again. A name that waits
already is not added twice; a page that is too far behind is told once to load again. Nobody is
told more than four times a second, a page that does not read is let go, and there is room for 32.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import anyio

from reverie import programs
from reverie.errors import NotAvailable, NotFound, ReverieError

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from reverie.apps.web.workspace import Workspace

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


class EventHub:
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

    def __init__(self, hub: EventHub) -> None:
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


# --- Figures that take longer than a request: worked out beside it, kept, and shown with their
# age.
#
# What reads every transcript is worked out by the command that shows it, in a process of its own
# at low priority. A page asks for what is kept and never waits; when it is older than a page may
# show it, it is worked out again, once at a time, and open pages are told.


FRESH = 30.0
"""Seconds after which a figure is worked out again when somebody looks."""
_LOW = 10


@dataclass(frozen=True, slots=True)
class CachedFigure:
    """A figure as it was last worked out; `error` says why there is none."""

    value: Any = None
    at: float = 0.0
    error: str = ""
    do: str = ""


class ProjectFigures:
    """The figures of one project."""

    def __init__(self, desk: Workspace) -> None:
        self._desk = desk
        self.fresh = FRESH
        self._lock = threading.Lock()
        self._outdated = Counter[str]()  # how often something was done that changes a figure

    def get(
        self, makers: Mapping[str, Callable[[], Any]], fresh: float | None = None
    ) -> dict[str, CachedFigure]:
        """What is kept of each, from one query; what is old is worked out beside it."""
        fresh = self.fresh if fresh is None else fresh
        found = self._desk.base.facts([f"figure {name}" for name in makers])
        kept = {name: _parse_figure(found.get(f"figure {name}", "")) for name in makers}
        for name, make in makers.items():
            if time.time() - kept[name].at > fresh:
                self._desk.start(f"figure {name}", partial(self.make, name, make))
        return kept

    def last(self, name: str) -> CachedFigure:
        """What is kept of one; nothing is worked out."""
        return _parse_figure(self._desk.base.fact(f"figure {name}"))

    def make(self, name: str, make: Callable[[], Any]) -> None:
        """Work one out, keep it, and tell open pages; anew where it was outdated meanwhile."""
        while not self._desk.closed:
            began = self._outdated[name]
            found = _compute_figure(make)
            with self._lock:
                if began == self._outdated[name] and not self._desk.closed:
                    self._desk.base.note([(f"figure {name}", json.dumps(found))])
                    break
        self._desk.hub.tell("health")

    def outdated(self, *names: str) -> None:
        """Forget what is kept: something was done that changes it."""
        with self._lock:
            self._outdated.update(names)
            self._desk.base.note([(f"figure {name}", "") for name in names])


def _compute_figure(make: Callable[[], Any]) -> dict[str, Any]:
    try:
        return {"value": make(), "at": time.time()}
    except ReverieError as error:
        return {"at": time.time(), "error": error.what, "do": error.do}
    except (OSError, ImportError, ValueError) as error:  # a program or an extra is missing
        return {"at": time.time(), "error": str(error), "do": "`reverie doctor` may say more"}


def _parse_figure(text: str) -> CachedFigure:
    return CachedFigure(**json.loads(text)) if text else CachedFigure()


def by_command(desk: Workspace, *words: str) -> Any:
    """What a command answers with `--json`; None where it was stopped before it answered."""
    text = desk.commands.run([*words, "--json", "--project", str(desk.place.root)])
    return _answer(text) if text.strip() else None


def at_once(desk: Workspace, *words: str, about: Sequence[str] = ()) -> Any:
    """What a short command answers that somebody waits for; `about` is what it is about, which
    is never read as an option."""
    text = desk.commands.ask([*words, "--json", "--", *about])
    if not text.strip():
        where = " ".join(words[:2])
        raise NotAvailable(f"`reverie {where}` gave no answer", do="Run it in a terminal")
    return _answer(text)


def _answer(text: str) -> Any:
    found = json.loads(text)
    if isinstance(found, dict) and (error := cast("dict[str, Any]", found).get("error")):
        fault = NotFound if error.get("type") == "NotFound" else NotAvailable
        told = {name: str(error.get(name, "")) for name in ("where", "do")}
        raise fault(str(error["what"]), **told)
    return cast("Any", found)


class FigureProcesses:
    """Commands of ours in processes of their own; those that take long one at a time, behind
    everything else."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)
        self._turn = threading.Lock()
        self._running: list[programs.Popen[bytes]] = []
        self._over = False

    def run(self, words: Sequence[str]) -> str:
        """What a command prints; nothing once it was asked to stop."""
        with self._turn:
            return "" if self._over else self.started(programs.python("reverie.apps.cli", *words))

    def ask(self, words: Sequence[str]) -> str:
        """The same for a command that is short: it does not wait for the others."""
        return "" if self._over else self.started(programs.python("reverie.apps.cli", *words), 0)

    def started(self, line: Sequence[str], low: int = _LOW) -> str:
        pipes = {"stdout": programs.PIPE, "stderr": programs.DEVNULL}
        with programs.start(line, self._environ, os.getcwd(), **pipes) as process:
            self._running.append(process)
            with contextlib.suppress(OSError):  # it is over already
                if low:
                    os.setpriority(os.PRIO_PROCESS, process.pid, low)
            text, _ = process.communicate()
        self._running.remove(process)
        return text.decode("utf-8", "replace")

    def stop(self) -> None:
        """End what runs, and begin nothing more."""
        self._over = True
        for process in list(self._running):
            process.terminate()
