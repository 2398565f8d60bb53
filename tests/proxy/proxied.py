"""A proxy in front of the simulated provider, in this process."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from anyio.from_thread import start_blocking_portal

from reverie.apps.proxy import run, upstreams_of
from reverie.clients import ProxyAddress
from reverie.interception import EngineOptions, MirrorOptions
from reverie.models import BackgroundModel
from reverie.store import Project
from reverie.testing import Provider, provider
from reverie.world import Notice

KEY = "a-client-key"
PATHS = {
    "messages": "anthropic/v1/messages",
    "chat": "openai/v1/chat/completions",
    "responses": "openai/v1/responses",
}
READ = {"name": "Read", "description": "d", "input_schema": {"type": "object", "properties": {}}}


@dataclass
class Through:
    """A running proxy, and what it said."""

    address: ProxyAddress
    home: Path
    notices: list[Notice] = field(default_factory=list[Notice])
    told: list[str] = field(default_factory=list[str])

    def post(
        self, path: str, body: Any, headers: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        """One request of a client; the path begins with the API's name."""
        name, _, rest = path.partition("/")
        base = self.address.anthropic if name == "anthropic" else self.address.openai[:-3]
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {"x-api-key": KEY, "content-type": "application/json", **(headers or {})}
        return httpx2.post(f"{base}/{rest}", content=data, headers=named, timeout=30)


def rules(home: Path, notices: list[Notice], **given: Any) -> EngineOptions:
    memory = given.pop("memory", True)
    shadows = MirrorOptions(
        Project.personal(home=home, environ={}), BackgroundModel, notices.append, memory=memory
    )
    return EngineOptions(shadows, **given)


@contextmanager
def proxied(home: Path, upstream: str, **given: Any) -> Generator[Through]:
    """A proxy for as long as the block runs."""
    notices: list[Notice] = []
    told: list[str] = []
    ready: Future[ProxyAddress] = Future()
    with start_blocking_portal() as portal:
        going = portal.start_task_soon(
            run,
            rules(home, notices, **given),
            upstreams_of(upstream, ""),
            0,
            ready.set_result,
            told.append,
        )
        going.add_done_callback(
            lambda f: ready.done() or ready.set_exception(f.exception() or RuntimeError())
        )
        yield Through(ready.result(30), home, notices, told)
        going.cancel()


@contextmanager
def standing(home: Path, answers: Any = None, **given: Any) -> Generator[tuple[Provider, Through]]:
    """A provider that says one thing, unless it is told others, and a proxy in front of it."""
    with (
        provider((lambda body: "Good.") if answers is None else answers) as upstream,
        proxied(home, upstream.anthropic_url, **given) as proxy,
    ):
        yield upstream, proxy
