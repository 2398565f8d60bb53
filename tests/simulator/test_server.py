"""The server on its local port: broken streams, bad requests, who is answered, how it ends."""

from __future__ import annotations

import json
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import anthropic
import anyio
import httpx2
import pytest

from reverie.errors import InvalidInput
from reverie.simulator import (
    InjectedFault,
    call,
    cut,
    error,
    garbled,
    page,
    raw,
    script,
    serve,
    serving,
    slow,
)
from tests.processes import running

from .talk import KEY, body, engine, text, user

pytestmark = pytest.mark.spec("14")


# --- streams that break


def body_of(url: str, streaming: bool = True) -> tuple[bytes, bool]:
    """The bytes that arrived, and whether the body ended as it should."""
    found = b""
    given = json.dumps({**body(user("x")), "stream": streaming})
    with httpx2.stream("POST", url + "/v1/messages", content=given, headers=KEY) as response:
        try:
            for piece in response.iter_bytes():
                found += piece
        except httpx2.RemoteProtocolError:
            return found, False
    return found, True


@pytest.mark.parametrize("streaming", [True, False])
def test_a_cut_body_ends_at_its_byte(streaming: bool) -> None:
    answer = [text("some words"), call("Read", '{"a":1}')]
    places = (0, 1, 25, 200)
    faults: list[InjectedFault | None] = [None, *(cut(n) for n in places)]
    sim = engine(script(*[answer] * 5), faults=faults)
    with serving(sim) as url:
        assert body_of(url, streaming)[1]
        for place in places:
            piece, complete = body_of(url, streaming)
            assert not complete
            assert len(piece) == place


def test_a_slow_stream_waits_between_its_pieces() -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    with serving(engine(faults=[slow(0.5)]), sleep=sleep) as url:
        found, complete = body_of(url)
    assert complete
    assert b"message_stop" in found
    assert set(waited) == {0.5}
    assert len(waited) > 5


@pytest.mark.integration
def test_pages_nonsense_and_recorded_bytes_are_sent_as_they_are() -> None:
    recorded = b'event: strange\ndata: {"type":"strange","n":1e3}\n\n'
    date = "Wed, 21 Oct 2015 07:28:00 GMT"
    faults = [page(), garbled(2), raw(recorded), page(503), error(429, retry_after=date)]
    sim = engine(faults=faults)
    with serving(sim) as url:
        assert body_of(url)[0].startswith(b"<html>")
        assert body_of(url)[0].endswith(b"data: {not json\n\n")
        assert body_of(url)[0] == recorded
        with anthropic.Anthropic(base_url=url, api_key="k", max_retries=0) as client:
            send = client.messages.create
            with pytest.raises(anthropic.InternalServerError):
                send(**body(user("x")))
            with pytest.raises(anthropic.RateLimitError) as limited:
                send(**body(user("x")))
            assert limited.value.response.headers["retry-after"] == date


# --- the server itself


def test_every_bad_request_gets_an_error_of_its_api() -> None:
    with serving(engine()) as url, httpx2.Client(base_url=url) as client:
        for path in ("/v1/messages", "/v1/messages/count_tokens"):
            for given in (b"", b"{", b"[]", b"\xff\xfe", b'{"messages":7}', b"[" * 100_000):
                got = client.post(path, content=given, headers=KEY)
                assert got.status_code == 400
                assert got.json()["error"]["type"] == "invalid_request_error"
        for path in ("/v1/chat/completions", "/v1/responses", "/v1/responses/input_tokens"):
            for given in (b"", b"{", b"[]", b"\xff\xfe", b'{"messages":[7]}', b'{"input":7}'):
                got = client.post(path, content=given, headers={"authorization": "Bearer k"})
                assert got.status_code == 400
                assert got.json()["error"]["message"]
        assert client.get("/v1/messages", headers=KEY).json()["type"] == "error"
        assert client.get("/nothing", headers=KEY).status_code == 404
        assert client.get("/nothing").json()["error"]["message"]
        assert client.head("/api/hello").status_code == 200
        assert client.post("/v1/messages", json=body(user("x"))).status_code == 401


def test_only_local_programs_are_answered() -> None:
    with serving(engine()) as url, httpx2.Client(base_url=url) as client:
        for headers in ({"host": "evil.example"}, {"origin": "http://evil.example"}):
            got = client.post("/v1/messages", json=body(user("x")), headers={**KEY, **headers})
            assert got.status_code == 403


def test_it_fails_in_the_apis_shape_even_where_an_answerer_breaks() -> None:
    def broken(_: Any) -> Any:
        raise ZeroDivisionError("a bug of the caller's")

    with serving(engine(broken)) as url:
        got = httpx2.post(url + "/v1/messages", json=body(user("x")), headers=KEY)
    assert got.status_code == 500
    assert got.json()["error"]["type"] == "api_error"


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "example.com", ""])
async def test_it_listens_on_loopback_alone(host: str) -> None:
    with pytest.raises(InvalidInput, match="loopback"):
        await serve(engine(), host)


async def test_it_stops_when_cancelled_and_says_when_a_port_is_taken() -> None:
    urls: list[str] = []
    with serving(engine()) as url:
        taken = int(url.rpartition(":")[2])
        with pytest.raises(InvalidInput, match="cannot listen"):
            await serve(engine(), port=taken)
    async with anyio.create_task_group() as tasks:

        def ready(found: str) -> None:
            urls.append(found)
            tasks.cancel_scope.cancel()

        async def run() -> None:
            await serve(engine(), ready=ready)

        tasks.start_soon(run)
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(urls[0])


def closes(found: socket.socket) -> bool:
    """Whether the other side closes; it is waited for as long as the socket's own time."""
    try:
        while found.recv(4_096):
            pass
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
    return True


@contextmanager
def connected(url: str) -> Iterator[socket.socket]:
    address = ("127.0.0.1", int(url.rpartition(":")[2]))
    with socket.create_connection(address, timeout=20) as found:
        yield found


HEAD = b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"


@pytest.mark.parametrize("begun", [b"", b"P", b"GET / HTTP/1.1\r\nHost: loc", HEAD])
def test_row_51_a_client_that_sends_no_headers_is_cut_off(begun: bytes) -> None:
    with serving(engine(), header_seconds=0.2) as url, connected(url) as client:
        client.sendall(begun)
        assert closes(client)
        assert httpx2.get(url).status_code == 200


def test_row_51_a_client_that_trickles_its_headers_is_cut_off() -> None:
    with serving(engine(), header_seconds=0.5) as url, connected(url) as client:
        client.settimeout(0.05)
        began = time.monotonic()
        sent = b"GET / HTTP/1.1\r\nX: "
        with suppress(OSError):
            while time.monotonic() < began + 20:
                client.sendall(sent)
                sent = b"x"
                with suppress(TimeoutError):
                    if not client.recv(1):
                        break
        assert time.monotonic() < began + 10


def test_row_51_a_second_request_has_no_more_time_than_the_first() -> None:
    with serving(engine(), header_seconds=0.3) as url, connected(url) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200 OK" in client.recv(4_096)
        client.sendall(b"GET / HT")
        client.settimeout(3)  # less than a connection is kept without a request
        assert closes(client)


def test_row_51_a_body_that_does_not_come_is_refused() -> None:
    with serving(engine(), body_seconds=0.2) as url, connected(url) as client:
        client.sendall(HEAD + b"\r\n{")
        assert b" 408 " in client.recv(4_096)


def test_a_slow_answer_is_not_cut_off() -> None:
    with serving(engine(faults=[slow(0.2)]), header_seconds=0.5) as url:
        assert body_of(url)[1]


@pytest.mark.parametrize("host", ["testserver", "testserver:80", "evil.test", "127.0.0.1.evil"])
def test_row_67_no_other_host_is_answered(host: str) -> None:
    with serving(engine()) as url:
        assert httpx2.get(url, headers={"Host": host}).status_code == 403
        assert httpx2.get(url, headers={"Host": "localhost"}).status_code == 200


SERVED = """
import anyio
from reverie.simulator.engine import Engine
from reverie.simulator.server import serve
anyio.run(lambda: serve(Engine(), ready=lambda url: print(url, flush=True)))
"""


def test_it_stops_when_told_to() -> None:
    with running([sys.executable, "-c", SERVED]) as run:
        assert run.stdout is not None
        url = run.stdout.readline().strip()
        got = httpx2.post(url + "/v1/messages", json=body(user("x")), headers=KEY)
        assert got.json()["content"] == [{"type": "text", "text": "ok"}]
        run.send_signal(signal.SIGTERM)
        assert run.wait(30) in (0, -signal.SIGTERM)
