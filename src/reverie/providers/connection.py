"""One exchange: connect, stream, retry; optional packages.

The way to a provider: the official SDK carries our bytes there and the answer back.

The SDK does the connection, the authorisation and the shape of errors; the body that
leaves is the one handed in, byte for byte, and the answer is handed out as bytes. Its own
retries are off. Everything that can go wrong on the way comes out as a `FailedAttempt`. This is
the only module that knows the SDKs, and it imports one only when asked to build it.
"""

from __future__ import annotations

import importlib
import math
import random
import shlex
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import field
from datetime import UTC
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

import anyio

from reverie.errors import AuthFailed, InvalidInput, InvalidMessage, NotAvailable, Overloaded
from reverie.light import dataclass
from reverie.transcript.blocks import parse
from reverie.wire.failures import (
    FailedAttempt,
    ProviderWords,
    broken_off,
    from_event,
    from_status,
    malformed_answer,
    parse_error_body,
    unreachable,
)
from reverie.wire.reply import Delta, Reply
from reverie.wire.stream import BadStream, EventParser
from reverie.world import Clock, Event, RetryNotice

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
            raise self._status_failure(error) from error
        except self.faults.connection as error:
            raise self._unreachable(error) from error
        except self.faults.http as error:
            raise unreachable(_reason(error), self.where) from error

    def _status_failure(self, error: Exception) -> FailedAttempt:
        response = cast("Any", error).response
        headers = {str(k).lower(): str(v) for k, v in response.headers.items()}
        body = cast("str", response.text)
        words = parse_error_body(body.replace(self.secret, "…"))  # some servers repeat the key
        if "text/html" in headers.get("content-type", "") and not words.page:
            words = ProviderWords("", page=True)
        return from_status(int(response.status_code), words, headers, self.where)

    def _unreachable(self, error: Exception) -> FailedAttempt:
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
            raise malformed_answer("it is larger than any answer could be", where)
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise malformed_answer("it is not valid UTF-8", where) from error
    words = parse_error_body(text) if text.lstrip()[:1] == "<" else None
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


# --- One try: a body goes out, the events of its answer come in, and at the end one reply.
#
# The reply is yielded after the answer is whole and its connection is given back, so that nothing
# can fail behind it. An answer that is not whole, cannot be read or is an error ends in a
# `FailedAttempt` and yields no reply. A server that answers in one piece though a stream was asked
# for is understood.


DRAIN = 0.5  # seconds for what follows the last event, so that the connection can be used again


class AnswerReader(Protocol):
    """An answer on its way, in one wire format. InvalidMessage says that it makes no sense."""

    @property
    def done(self) -> bool:
        """Whether the last event has come."""
        ...

    def take(self, data: str) -> Delta | None:
        """One event's data; what of it people may watch."""
        ...

    def ended(self) -> bool:
        """Whether the answer is whole though the stream ended without its last event."""
        ...

    def reply(self) -> Reply: ...

    def read(self, text: str) -> Reply:
        """An answer in one piece."""
        ...


async def exchange(
    connection: Connection, path: str, body: bytes, headers: Mapping[str, str], answer: AnswerReader
) -> AsyncGenerator[Event, None]:
    """Deltas as they come, and last the reply."""
    where = connection.where
    reply: Reply | None = None
    try:
        async with connection.post(path, body, headers) as response:
            if "json" in response.headers.get("content-type", ""):
                reply = _in_one_piece(await whole(response, where), answer, where)
            else:
                async with aclosing(event_data(response, where)) as events:
                    async for data in events:
                        delta = answer.take(data)
                        if delta is not None:
                            yield delta
                        if answer.done:
                            break
                    if not answer.done and not answer.ended():
                        raise broken_off("the stream ended before the message did", where)
                    reply = answer.reply()
                    with anyio.move_on_after(DRAIN):
                        async for _ in events:
                            pass
    except InvalidMessage as error:
        if reply is None:
            raise malformed_answer(error.what, where) from error
    except FailedAttempt:
        if reply is None:
            raise
    yield reply


def _in_one_piece(text: str, answer: AnswerReader, where: str) -> Reply:
    value = parse(text)
    if isinstance(value, dict) and value.get("error"):
        raise from_event(value, where)
    return answer.read(text)


async def event_data(response: OpenResponse, where: str) -> AsyncGenerator[str, None]:
    """The data of each event of a stream, as it was sent."""
    if "html" in response.headers.get("content-type", ""):
        await whole(response, where)
        raise malformed_answer("it is a web page", where)
    events = EventParser()
    async for chunk in response.aiter_bytes():
        try:
            for event in events.feed(chunk):
                yield event.data
        except BadStream as error:
            raise malformed_answer(str(error), where) from error


# --- Packages that an extra of ours brings: what is said without them, and what installs them.


DISTRIBUTION = "reverie"


@contextmanager
def extra(name: str, what: str, where: str = "") -> Generator[None]:
    """Imports that need an extra; NotAvailable says what cannot be done without, and the remedy."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == DISTRIBUTION:
            raise
        raise NotAvailable(
            f"{what}: {error.name} is not installed",
            where=where,
            do=f"Install it: {install_command(name)}",
        ) from error


def install_command(name: str = "") -> str:
    """What installs the packages of an extra (of none: those we cannot do without), in this very
    environment; the Reverie that is there stays."""
    wanted = shlex.quote(f"{DISTRIBUTION}[{name}]" if name else DISTRIBUTION)
    python = shlex.quote(sys.executable)
    if find_spec("pip") is None:
        return f"uv pip install --python {python} {wanted}"
    return f"{python} -m pip install {wanted}"


# --- Trying again: how often, how long to wait, and never with half an answer.
#
# Failures are counted. An overload is waited out beyond that count, as long as `patience` says: it
# lasts minutes and passes; one that is to last longer by the provider's own word is not.
#
# Waits grow, are spread by chance so that many clients do not come back at once, and are bounded
# whatever a provider asks for. A try that fails after some of its answer was shown is made again
# whole; what it showed is followed by `RetryNotice`, and no `Reply` comes of it. Time and chance
# are parameters.


FIRST_WAIT = 0.5  # seconds
LONGEST_WAIT = 60.0
LONGEST_GROWN = 32.0
LONGEST_ASKED = 48.0  # leaves room to spread even those who were told to wait for hours
OVERLOAD_PATIENCE = 600.0
"""Seconds of waiting, all in all, until an overload is taken for the answer."""


@dataclass(frozen=True, slots=True)
class Retries:
    """How a provider tries again."""

    limit: int
    clock: Clock
    chance: Callable[[], float] = random.random
    patience: float = 0.0  # seconds an overload is waited out, beyond the limit

    def ends(self, setback: FailedAttempt, tried: int, waited: float) -> bool:
        """Whether no other try is to follow."""
        if not setback.retry or not self.limit:
            return True
        if tried <= self.limit:
            return False
        asked = asked_wait(setback.after, self.clock.now()) or 0.0
        passes = isinstance(setback.error, Overloaded) and asked <= self.patience
        return not passes or waited >= self.patience

    def wait(self, attempt: int, after: str) -> float:
        """Seconds before try number `attempt` + 1: what was asked for, or growing; spread."""
        chance = self.chance()
        grown = min(LONGEST_GROWN, FIRST_WAIT * 2.0 ** (min(attempt, 30) - 1))
        wait = grown / 2 * (1 + chance)
        asked = asked_wait(after, self.clock.now())
        if asked is not None:  # never sooner than asked, but for what no one can wait for
            wait = max(wait, min(asked, LONGEST_ASKED) * (1 + chance / 4))
        return min(LONGEST_WAIT, wait)


def asked_wait(after: str, now: float) -> float | None:
    """The wait a `retry-after` header asks for, or None where it makes no sense."""
    text = after.strip()
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            date = parsedate_to_datetime(text)
        except ValueError:
            return None
        seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


async def persist(
    attempt: Callable[[], AsyncGenerator[Event, None]], retries: Retries
) -> AsyncIterator[Event]:
    """The events of the first try that succeeds, with a `RetryNotice` between tries."""
    tried, waited = 0, 0.0
    while True:
        try:
            async with aclosing(attempt()) as events:
                async for event in events:
                    yield event
            return
        except FailedAttempt as failed:
            setback = failed
        tried += 1
        if retries.ends(setback, tried, waited):
            raise setback.error from setback.__cause__
        wait = retries.wait(tried, setback.after)
        waited += wait
        yield RetryNotice(tried, wait, str(setback.error))
        await retries.clock.sleep(wait)
