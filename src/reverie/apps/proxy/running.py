"""The proxy, started: its token, its engine, its provider; and drained when it is told to stop."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from reverie.apps.proxy.server import Explain, Proxy
from reverie.apps.proxy.upstream import Upstreams, client, is_reachable
from reverie.errors import NotFound
from reverie.light import dataclass
from reverie.middleware.engine import PLACE, Engine, Rules
from reverie.serving import listen, serve
from reverie.store.files import Folder
from reverie.world import Notice, Say

HOST = "127.0.0.1"
PORT = 8786
GRACE_SECONDS = 120
TOKEN = "token"


@dataclass(frozen=True, slots=True)
class ProxyAddress:
    """Where clients find the proxy: a base URL for each kind of client."""

    anthropic: str
    openai: str

    @classmethod
    def of(cls, url: str, token: str) -> ProxyAddress:
        return cls(f"{url}/{token}/anthropic", f"{url}/{token}/openai/v1")

    def value(self) -> dict[str, str]:
        return {"anthropic": self.anthropic, "openai": self.openai}


def token_of(home: Path) -> str:
    """The proxy's token in this home, the same at each start; made where there is none."""
    with Folder(home / PLACE) as folder:
        try:
            found = folder.read(TOKEN, 200).decode("ascii", "ignore").strip()
        except NotFound:
            found = ""
        if len(found) < 16:
            found = secrets.token_urlsafe(18)
            folder.write(TOKEN, f"{found}\n".encode())
        return found


@asynccontextmanager
async def running(
    rules: Rules, upstreams: Upstreams, token: str, explain: Explain | None = None
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
    rules: Rules,
    upstreams: Upstreams,
    port: int,
    ready: Callable[[ProxyAddress], None],
    explain: Explain | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; streams under way are finished."""
    token = token_of(rules.shadows.home)
    listening = listen(HOST, port)
    async with running(rules, upstreams, token, explain) as proxy:
        await _look(upstreams, rules.shadows.say)
        told: Callable[[str], None] = lambda url: ready(ProxyAddress.of(url, token))  # noqa: E731
        await serve(proxy, listening, told, grace_seconds=GRACE_SECONDS, named=False)


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
