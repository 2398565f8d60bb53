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

from reverie.apps.proxy import ProxyAddress, run, upstreams_of
from reverie.middleware import EngineRules, ShadowRules
from reverie.models import RulesModel
from reverie.store import Project
from reverie.world import Notice

KEY = "a-client-key"
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


def rules(home: Path, notices: list[Notice], **given: Any) -> EngineRules:
    memory = given.pop("memory", True)
    shadows = ShadowRules(
        Project.personal(home=home, environ={}), RulesModel, notices.append, memory=memory
    )
    return EngineRules(shadows, **given)


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
