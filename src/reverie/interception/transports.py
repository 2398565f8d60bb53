"""Under an SDK's client: requests fitted on their way out, answers put together on their way in.

Everything an SDK can do stays as it is, since it is not touched: only the bytes of conversations
differ. The client that was wrapped does the sending; no connection is opened here.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Generator
from typing import Any, cast

import httpx2
from anyio import to_thread

from reverie.interception.hidden_rounds import round_of
from reverie.interception.identity import SWITCH
from reverie.interception.streams import joined_stream
from reverie.interception.wrap import WrappedClient, WrappedExchange, form_of
from reverie.wire.stream import BadStream

STREAM = "text/event-stream"
_CHANGED = ("content-length", "content-encoding", "transfer-encoding")


def _lowercase_headers(request: httpx2.Request) -> dict[str, str]:
    return {name.lower(): value for name, value in request.headers.items()}


def _with(request: httpx2.Request, data: bytes) -> httpx2.Request:
    headers = [
        (k, v)
        for k, v in request.headers.raw
        if k.lower() not in (b"content-length", SWITCH.encode())
    ]
    return httpx2.Request(
        request.method, request.url, headers=headers, content=data, extensions=request.extensions
    )


def _like(answer: httpx2.Response, **content: Any) -> httpx2.Response:
    headers = [(k, v) for k, v in answer.headers.multi_items() if k.lower() not in _CHANGED]
    return httpx2.Response(answer.status_code, headers=headers, **content)


def _is_stream(answer: httpx2.Response) -> bool:
    return answer.headers.get("content-type", "").startswith(STREAM)


def _value(data: bytes) -> dict[str, Any] | None:
    """An answer in one piece; None where it is none, which is for the SDK to say."""
    try:
        found: object = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def _record_round(exchange: WrappedExchange, value: Any) -> bool:
    return exchange.took(round_of(exchange.form, value, exchange.names))


def _refusal_error(answer: httpx2.Response) -> httpx2.HTTPError:
    return httpx2.RemoteProtocolError(
        f"the provider refused a round that reads back: {answer.status_code}"
    )


class WrappedTransport(httpx2.BaseTransport):
    """For clients that block."""

    def __init__(self, inner: httpx2.Client, wrapping: WrappedClient) -> None:
        self._inner = inner
        self._wrapping = wrapping

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        form = form_of(request.method, request.url.path)
        data = request.read()
        exchange = self._wrapping.begin(form, _lowercase_headers(request), data) if form else None
        if exchange is None:
            return self._inner.send(_with(request, data), stream=True)
        while True:
            answer = self._inner.send(_with(request, exchange.data), stream=True)
            if answer.status_code != 200:
                exchange.failed()
                return answer
            if _is_stream(answer):
                return _like(
                    answer, stream=_StreamBody(self._stream_rounds(request, answer, exchange))
                )
            value = _value(answer.read())
            if value is None:
                exchange.failed()
                return _like(answer, content=answer.content)
            if not _record_round(exchange, value):
                exchange.finish()
                return _like(answer, content=json.dumps(exchange.answer(value)).encode())

    def _stream_rounds(
        self, request: httpx2.Request, answer: httpx2.Response, exchange: WrappedExchange
    ) -> Generator[bytes]:
        stream = joined_stream(exchange.form, exchange.names)
        try:
            while True:
                for piece in answer.iter_bytes():
                    yield stream.feed(piece)
                found = stream.ended()
                if found is None:
                    exchange.failed()
                    return
                if not exchange.took(found):
                    break
                answer.close()
                answer = self._inner.send(_with(request, exchange.data), stream=True)
                if answer.status_code != 200:
                    raise _refusal_error(answer)
                stream.again()
            exchange.finish()
            yield stream.end(exchange.rounds)
        except BadStream as error:
            exchange.failed()
            raise httpx2.RemoteProtocolError(str(error)) from error
        finally:
            answer.close()

    def close(self) -> None:
        self._wrapping.close()


class _StreamBody(httpx2.SyncByteStream):
    def __init__(self, pieces: Generator[bytes]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Generator[bytes]:
        for piece in self._pieces:
            if piece:
                yield piece

    def close(self) -> None:
        self._pieces.close()


class AsyncWrappedTransport(httpx2.AsyncBaseTransport):
    """For clients of an event loop; what is ours runs in a worker thread."""

    def __init__(self, inner: httpx2.AsyncClient, wrapping: WrappedClient) -> None:
        self._inner = inner
        self._wrapping = wrapping

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        form = form_of(request.method, request.url.path)
        data = await request.aread()
        begin = self._wrapping.begin
        exchange = (
            await to_thread.run_sync(begin, form, _lowercase_headers(request), data)
            if form
            else None
        )
        if exchange is None:
            return await self._inner.send(_with(request, data), stream=True)
        while True:
            answer = await self._inner.send(_with(request, exchange.data), stream=True)
            if answer.status_code != 200:
                exchange.failed()
                return answer
            if _is_stream(answer):
                return _like(
                    answer, stream=_AsyncPieces(self._stream_rounds(request, answer, exchange))
                )
            value = _value(await answer.aread())
            if value is None:
                exchange.failed()
                return _like(answer, content=answer.content)
            if not await to_thread.run_sync(_record_round, exchange, value):
                exchange.finish()
                return _like(answer, content=json.dumps(exchange.answer(value)).encode())

    async def _stream_rounds(
        self, request: httpx2.Request, answer: httpx2.Response, exchange: WrappedExchange
    ) -> AsyncGenerator[bytes]:
        stream = joined_stream(exchange.form, exchange.names)
        try:
            while True:
                async for piece in answer.aiter_bytes():
                    yield stream.feed(piece)
                found = stream.ended()
                if found is None:
                    exchange.failed()
                    return
                if not await to_thread.run_sync(exchange.took, found):
                    break
                await answer.aclose()
                answer = await self._inner.send(_with(request, exchange.data), stream=True)
                if answer.status_code != 200:
                    raise _refusal_error(answer)
                stream.again()
            exchange.finish()
            yield stream.end(exchange.rounds)
        except BadStream as error:
            exchange.failed()
            raise httpx2.RemoteProtocolError(str(error)) from error
        finally:
            await answer.aclose()

    async def aclose(self) -> None:
        await to_thread.run_sync(self._wrapping.close)


class _AsyncPieces(httpx2.AsyncByteStream):
    def __init__(self, pieces: AsyncGenerator[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        async for piece in self._pieces:
            if piece:
                yield piece

    async def aclose(self) -> None:
        await self._pieces.aclose()
