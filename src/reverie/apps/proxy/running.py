"""The proxy, started: its token, its engine, its provider; and drained when it is told to stop."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio

from reverie.apps.proxy.server import Explain, Proxy
from reverie.apps.proxy.upstream import Upstreams, client, is_reachable
from reverie.middleware.engine import Engine, EngineRules
from reverie.serving import listen, serve
from reverie.upkeep.proxy_address import HOST, ProxyAddress, make_token
from reverie.world import Notice, Say

GRACE_SECONDS = 120


@asynccontextmanager
async def running(
    rules: EngineRules, upstreams: Upstreams, token: str, explain: Explain | None = None
) -> AsyncGenerator[Proxy]:
    """The application, with all that it needs; what is under way behind answers is finished."""
    engine = Engine(rules)
    try:
        async with client() as up, anyio.create_task_group() as tasks:
            yield Proxy(engine, upstreams, token, client=up, tasks=tasks, explain=explain)
    finally:
        with anyio.CancelScope(shield=True):
            await engine.aclose()


async def run(
    rules: EngineRules,
    upstreams: Upstreams,
    port: int,
    ready: Callable[[ProxyAddress], None],
    explain: Explain | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; streams under way are finished."""
    token = make_token(rules.shadows.own.home)
    listening = listen(HOST, port)
    address = ProxyAddress(listening.getsockname()[1], token)
    async with running(rules, upstreams, token, explain) as proxy:
        await _look(upstreams, rules.shadows.say)
        await serve(
            proxy, listening, lambda _: ready(address), grace_seconds=GRACE_SECONDS, named=False
        )


async def _look(upstreams: Upstreams, say: Say) -> None:
    """Say it where a provider cannot be reached; requests will tell the same."""
    async with client() as up:
        for url in dict.fromkeys((upstreams.anthropic, upstreams.openai)):
            if not await is_reachable(up, url):
                say(Notice("proxy", f"{url} is not reachable now", "warning"))


def upstreams_of(anthropic: str, openai: str) -> Upstreams:
    """Where requests go: as given, else to the providers themselves."""
    known = Upstreams()
    both = openai or anthropic
    return Upstreams(
        _plain(anthropic) or known.anthropic,
        _plain(both) or known.openai,
    )


def _plain(url: str) -> str:
    return url.rstrip("/").removesuffix("/v1")
