"""The provider behind the proxy: requests up, answers down, byte by byte.

Nothing is buffered, asked again or unpacked on the way. Headers that belong to one connection
stay on it, and so do ours; no other is dropped or added but that the answer comes unpacked. A key
passes and is kept nowhere.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable

import httpx2

from reverie.light import dataclass

CONNECT_SECONDS = 10.0
REACH_SECONDS = 3.0
_OF_ONE_CONNECTION = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te"),
        *("trailer", "transfer-encoding", "upgrade", "proxy-connection", "host"),
    }
)
_CHANGED = frozenset({"accept-encoding", "content-length"})
OURS = "x-reverie"
Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Upstreams:
    """Where each kind of request goes."""

    anthropic: str = "https://api.anthropic.com"
    openai: str = "https://api.openai.com"

    def base(self, name: str) -> str:
        return (self.openai if name == "openai" else self.anthropic).rstrip("/")


def upwards(headers: Iterable[tuple[bytes, bytes]], *, length: bool) -> Headers:
    """The headers that go up; the length only where the body is the client's own, unread."""
    out: Headers = [(b"accept-encoding", b"identity")]
    for name, value in headers:
        key = name.decode("latin-1").lower()
        kept = length and key == "content-length"
        if not kept and (key in _OF_ONE_CONNECTION or key in _CHANGED or key.startswith(OURS)):
            continue
        out.append((name, value))
    return out


def downwards(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """The headers that come down."""
    return [(n, v) for n, v in headers if n.decode("latin-1").lower() not in _OF_ONE_CONNECTION]


def client() -> httpx2.AsyncClient:
    """One client for all requests; a provider may think as long as it likes."""
    patience = httpx2.Timeout(None, connect=CONNECT_SECONDS)
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=64)
    return httpx2.AsyncClient(timeout=patience, limits=limits, follow_redirects=False)


def request(
    to: httpx2.AsyncClient,
    method: str,
    url: str,
    headers: Headers,
    body: bytes | AsyncIterable[bytes] | None,
) -> httpx2.Request:
    made = to.build_request(method, url, content=body)
    length = made.headers.get("content-length")
    names = {name.lower() for name, _ in headers}
    kept = [(b"host", made.headers["host"].encode())]
    if length is not None and b"content-length" not in names:
        kept.append((b"content-length", length.encode()))
    if body is not None and length is None and b"content-length" not in names:
        kept.append((b"transfer-encoding", b"chunked"))
    made.headers = httpx2.Headers([*kept, *headers])
    return made


async def is_reachable(to: httpx2.AsyncClient, url: str) -> bool:
    """Whether anybody listens there, whatever it says."""
    try:
        await to.head(url, timeout=REACH_SECONDS)
    except (httpx2.ConnectError, httpx2.ConnectTimeout):
        return False
    except httpx2.HTTPError:
        return True
    return True
