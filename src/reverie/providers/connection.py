"""The way to a provider: the official SDK carries our bytes there and the answer back.

The SDK does the connection, the authorisation and the shape of errors; the body that
leaves is the one handed in, byte for byte, and the answer is handed out as bytes. Its own
retries are off. Everything that can go wrong on the way comes out as a `Setback`. This is
the only module that knows the SDKs, and it imports one only when asked to build it.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import field
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

from reverie.errors import AuthFailed, InvalidInput
from reverie.light import dataclass
from reverie.providers.extras import extra
from reverie.wire.failures import (
    ProviderWords,
    Setback,
    from_status,
    malformed,
    said,
    unreachable,
)

TIMEOUT = 600.0  # seconds between two bytes of an answer
CONNECT_TIMEOUT = 10.0
NO_KEY = "no-key"  # what a local server that asks for none is sent
LARGEST_ANSWER = 256 * 1024 * 1024


class OpenResponse(Protocol):
    """An answer whose body has not been read."""

    @property
    def headers(self) -> Mapping[str, str]: ...
    def aiter_bytes(self) -> AsyncIterator[bytes]: ...
    async def aclose(self) -> None: ...


class SdkClient(Protocol):
    """What both SDKs' asynchronous clients have in common."""

    async def post(
        self, path: str, *, cast_to: Any, content: bytes, options: Any, stream: bool
    ) -> Any: ...
    async def get(self, path: str, *, cast_to: Any, options: Any, stream: bool) -> Any: ...
    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class SdkErrors:
    """The exceptions that an SDK and its HTTP client raise."""

    status: type[Exception]
    connection: type[Exception]
    http: type[Exception]


@dataclass(frozen=True, slots=True)
class Connection:
    """One provider at one address."""

    client: SdkClient
    faults: SdkErrors
    raw: type[object]  # asks the SDK for the answer as it came
    where: str
    secret: str = field(repr=False)

    @asynccontextmanager
    async def post(
        self, path: str, body: bytes, headers: Mapping[str, str]
    ) -> AsyncGenerator[OpenResponse, None]:
        """Send a body; the answer is open inside the block."""
        if not all(value.isascii() and value.isprintable() for value in headers.values()):
            raise InvalidInput("a header has characters that no header has", where=str(headers))
        options = {"headers": {"content-type": "application/json", **headers}}
        async with self._caught():
            found = await self.client.post(
                path, cast_to=self.raw, content=body, options=options, stream=True
            )
            response = cast("OpenResponse", found)
            try:
                yield response
            finally:
                await response.aclose()

    async def get(self, path: str) -> str:
        """A whole answer as text."""
        async with self._caught():
            found = await self.client.get(path, cast_to=self.raw, options={}, stream=True)
            response = cast("OpenResponse", found)
            try:
                return await whole(response, self.where)
            finally:
                await response.aclose()

    async def close(self) -> None:
        await self.client.close()

    @asynccontextmanager
    async def _caught(self) -> AsyncGenerator[None, None]:
        try:
            yield
        except self.faults.status as error:
            raise self._refused(error) from error
        except self.faults.connection as error:
            raise self._unreachable(error) from error
        except self.faults.http as error:
            raise unreachable(_reason(error), self.where) from error

    def _refused(self, error: Exception) -> Setback:
        response = cast("Any", error).response
        headers = {str(k).lower(): str(v) for k, v in response.headers.items()}
        body = cast("str", response.text)
        words = said(body.replace(self.secret, "…"))  # some servers repeat the key
        if "text/html" in headers.get("content-type", "") and not words.page:
            words = ProviderWords("", page=True)
        return from_status(int(response.status_code), words, headers, self.where)

    def _unreachable(self, error: Exception) -> Setback:
        cause = error.__cause__
        impossible = cause is not None and type(cause).__name__ == "UnsupportedProtocol"
        return unreachable(_reason(cause or error), self.where, retry=not impossible)


def _reason(error: BaseException) -> str:
    """What an exception of the HTTP client means, never empty."""
    name = type(error).__name__
    if "Timeout" in name:
        return "no answer in time"
    return str(error) or name


async def whole(response: OpenResponse, where: str) -> str:
    """The whole body of an answer."""
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > LARGEST_ANSWER:
            raise malformed("it is larger than any answer could be", where)
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise malformed("it is not valid UTF-8", where) from error
    words = said(text) if text.lstrip()[:1] == "<" else None
    if words is not None:
        raise from_status(200, words, {}, where)
    return text


def connect(
    sdk: str,
    client: str,
    *,
    base_url: str,
    credentials: Mapping[str, str],
    timeout: float = TIMEOUT,
) -> Connection:
    """A connection through an SDK, or NotAvailable where it is not installed."""
    where = address(base_url)
    secret = next(iter(credentials.values()))
    if not (secret.isascii() and secret.isprintable()):
        raise AuthFailed(
            "the key has characters that no key has", where=where, do="Copy the key again"
        )
    with extra(sdk, "the model cannot be asked", where):
        module = cast("Any", importlib.import_module(sdk))
        http = cast("Any", importlib.import_module("httpx2"))
    try:
        built = getattr(module, client)(
            base_url=base_url,
            max_retries=0,
            timeout=http.Timeout(timeout, connect=min(timeout, CONNECT_TIMEOUT)),
            **credentials,
        )
    except http.InvalidURL as error:
        raise _bad_address(base_url) from error
    faults = SdkErrors(module.APIStatusError, module.APIConnectionError, http.HTTPError)
    return Connection(cast("SdkClient", built), faults, http.Response, where, secret)


def address(base_url: str) -> str:
    """The host of a base URL, for people; InvalidInput where it is no URL."""
    try:
        parts = urlsplit(base_url)
        host = parts.hostname
        port = parts.port
    except ValueError as error:
        raise _bad_address(base_url) from error
    if parts.scheme not in ("http", "https") or not host:
        raise _bad_address(base_url)
    return f"{host}:{port}" if port else host


def _bad_address(base_url: str) -> InvalidInput:
    shown = base_url.rpartition("@")[2][:80]
    return InvalidInput(
        "the base URL is not an address", where=shown, do="It begins with http:// or https://"
    )
