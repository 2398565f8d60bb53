"""The proxy on the wire: who is answered, what passes, what is cut, what ends."""

from __future__ import annotations

import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from reverie.apps.proxy import StreamObserver
from reverie.errors import InvalidMessage
from reverie.testing import call
from reverie.wire import EventParser, FailedAttempt, MessagesAssembler
from tests.clients.line import Proxy
from tests.conftest import Scale
from tests.processes import end
from tests.proxy.clients import BIG, assistant, gave, ran, text, use, user
from tests.proxy.forms import asking
from tests.proxy.proxied import KEY, PATHS, READ, Through, proxied, standing
from tests.proxy.sockets import HEAD, Raw, chunk, raw, sends

pytestmark = pytest.mark.spec("18.proxy")
BODY: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 99,
    "messages": [user("Hello there, how are you?")],
}
MESSAGES = PATHS["messages"]
TWO_LENGTHS = (
    b"POST %s HTTP/1.1\r\nhost: %s\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n"
    b"0\r\n\r\nGET / HTTP/1.1\r\n\r\n"
)
OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"


def head_of(request: bytes) -> dict[str, str]:
    lines = request.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")[1:]
    return {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}


def body_of(request: bytes) -> bytes:
    return request.partition(b"\r\n\r\n")[2]


# Who is answered


@pytest.mark.parametrize(
    ("headers", "path"),
    [
        ({"host": "evil.test"}, ""),
        ({"origin": "null"}, ""),
        ({"origin": "http://evil.test", "content-type": "text/plain"}, ""),
        ({}, "/a-guess/anthropic/v1/messages"),
        ({}, "/anthropic/v1/messages"),
        ({}, "/"),
    ],
)
def test_row_67_no_page_no_foreign_host_and_nobody_without_the_token_is_answered(
    home: Path, headers: dict[str, str], path: str
) -> None:
    with raw(sends(OK)) as upstream, proxied(home, upstream.url) as proxy:
        base = urlsplit(proxy.address.anthropic)
        url = f"http://{base.netloc}{path or base.path + '/v1/messages'}"
        answer = httpx2.post(url, json=BODY, headers={"x-api-key": KEY, **headers})
    assert answer.status_code == 403
    assert not upstream.requests


def test_the_proxy_listens_on_loopback_and_its_token_is_long(home: Path) -> None:
    with raw(sends(OK)) as upstream, proxied(home, upstream.url) as proxy:
        first = urlsplit(proxy.address.anthropic)
    with raw(sends(OK)) as upstream, proxied(home, upstream.url) as proxy:
        second = urlsplit(proxy.address.anthropic)
    assert first.hostname == "127.0.0.1"
    assert len(first.path.split("/")[1]) >= 20
    assert first.path == second.path  # clients keep the URL
    assert (home / "proxy" / "token").stat().st_mode & 0o077 == 0


# What passes


def test_unknown_paths_headers_and_betas_pass(home: Path) -> None:
    with raw(sends(OK)) as upstream, proxied(home, upstream.url) as proxy:
        data = b'{"anything": [1e3, "\\u00e9"]}'
        known = {"anthropic-beta": "unknown-2027-01-01", "x-new": "yes", "x-api-key": KEY}
        headers = {**known, "x-reverie-project": "/p"}
        answer = proxy.post("anthropic/v2/new%2Fthing?beta=true&x=%20", data, headers)
        assert answer.content == b"{}"
        httpx2.get(f"{proxy.address.anthropic}/v1/models", headers={"x-api-key": KEY})
        proxy.post("anthropic/v1/messages/count_tokens", data)
    asked, models, count = upstream.requests
    assert asked.startswith(b"POST /v2/new%2Fthing?beta=true&x=%20 ")
    assert models.startswith(b"GET /v1/models ")
    assert body_of(asked) == body_of(count) == data
    found = head_of(asked)
    assert {name: found[name] for name in known} == known
    assert found["accept-encoding"] == "identity"
    assert not [name for name in found if name.startswith("x-reverie")]
    assert found["host"] == urlsplit(upstream.url).netloc


def test_the_providers_headers_come_down_once_each(home: Path) -> None:
    headers = b"date: Mon, 02 Mar 2026 09:00:00 GMT\r\nserver: theirs\r\nset-cookie: a\r\n"
    answer = OK.replace(b"\r\n", b"\r\n" + headers + b"set-cookie: b\r\n", 1)
    with raw(sends(answer)) as upstream, proxied(home, upstream.url) as proxy:
        found = [(n.lower(), v) for n, v in proxy.post(MESSAGES, BODY).headers.multi_items()]
    assert [v for n, v in found if n in ("date", "server")] == [
        "Mon, 02 Mar 2026 09:00:00 GMT",
        "theirs",
    ]
    assert [v for n, v in found if n == "set-cookie"] == ["a", "b"]


def test_a_header_switches_it_off_for_a_request(home: Path) -> None:
    with raw(sends(OK)) as upstream, proxied(home, upstream.url) as proxy:
        body = {**BODY, "messages": [user("Read it"), *ran("t1", BIG)], "tools": [READ]}
        off = proxy.post(MESSAGES, body, {"X-Reverie": "off"})
        on = proxy.post(MESSAGES, body)
    assert off.headers["x-reverie"] == "off"
    assert on.headers["x-reverie"].startswith("stored=1 ")
    assert json.loads(body_of(upstream.requests[0])) == body
    assert len(upstream.requests[1]) < len(upstream.requests[0]) / 2


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 529 Overloaded\r\nretry-after: 7\r\ncontent-length: 4\r\n\r\nbusy",
        b"HTTP/1.1 500 Oops\r\ncontent-length: 4\r\n\r\nbusy",
        b"HTTP/1.1 302 Elsewhere\r\nlocation: http://evil.test/\r\ncontent-length: 4\r\n\r\nbusy",
    ],
)
def test_row_61_a_refusal_passes_as_it_is_and_nothing_is_asked_twice(
    home: Path, answer: bytes
) -> None:
    with raw(sends(answer)) as upstream, proxied(home, upstream.url) as proxy:
        found = proxy.post(MESSAGES, BODY)
    assert found.status_code == int(answer.split()[1])
    assert found.content == b"busy"
    assert found.headers.get("retry-after") in ("7", None)
    assert len(upstream.requests) == 1


def test_row_61_an_upstream_that_is_down_is_said_and_asked_once(home: Path) -> None:
    taken = socket.create_server(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    taken.close()
    with proxied(home, f"http://127.0.0.1:{port}") as proxy:
        found = proxy.post(MESSAGES, BODY)
    assert found.status_code == 502
    assert "not reached" in found.json()["error"]["message"]
    assert any("not reachable" in notice.text for notice in proxy.notices)


def test_no_key_is_stored_or_told(home: Path) -> None:
    with standing(home) as (_, proxy):
        proxy.post(MESSAGES, BODY)
        proxy.post("openai/v1/chat/completions", BODY, {"authorization": f"Bearer {KEY}"})
    kept = [path for path in home.rglob("*") if path.is_file()]
    assert len(kept) > 3
    assert not [path for path in kept if KEY.encode() in path.read_bytes()]
    assert KEY not in "".join(proxy.told) + str(proxy.notices)


def test_the_status_tells_what_went_through_also_as_a_page(home: Path) -> None:
    with raw(sends(OK)) as upstream, proxied(home, upstream.url) as proxy:
        proxy.post(MESSAGES, BODY)
        proxy.post("anthropic/v1/<script>", b"{}")
        url = proxy.address.anthropic.replace("/anthropic", "/status")
        told = httpx2.get(url).json()
        page = httpx2.get(url, headers={"accept": "text/html"})
    assert told["requests"] == {"unchanged": 1}
    assert told["breaks"] == 0
    assert "POST /v1/messages 200" in page.text
    assert "<script>" not in page.text
    assert page.headers["content-security-policy"] == "default-src 'none'"


def test_a_packed_answer_passes_though_it_was_not_asked_for(home: Path) -> None:
    packed = gzip.compress(STREAM)
    kind = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n"
    answer = kind + b"content-length: %d\r\n\r\n%s" % (len(packed), packed)
    with raw(sends(answer)) as upstream, proxied(home, upstream.url) as proxy:
        assert streamed(proxy) == (packed, True)


# Streams


def events(*blocks: dict[str, Any]) -> bytes:
    """A stream of the Messages API."""
    usage = {"input_tokens": 3, "output_tokens": 1}
    start = {"id": "m1", "type": "message", "model": "m", **assistant(), "usage": usage}
    made: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    for at, block in enumerate(blocks):
        if "input" in block:
            begun = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        else:
            begun, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        made += [
            {"type": "content_block_start", "index": at, "content_block": begun},
            {"type": "content_block_delta", "index": at, "delta": delta},
            {"type": "content_block_stop", "index": at},
        ]
    ended = {"delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}}
    made += [{"type": "message_delta", **ended}, {"type": "message_stop"}]
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in made)


STREAM = events(text("Wait — é."), use("t1", file_path="ü"))


def streaming(base: str) -> AbstractContextManager[httpx2.Response]:
    """A stream that was asked for at this address, as it comes."""
    body, headers = {**BODY, "stream": True}, {"x-api-key": KEY}
    return httpx2.stream("POST", f"{base}/v1/messages", json=body, headers=headers)


def streamed(proxy: Through) -> tuple[bytes, bool]:
    """What arrived of a stream, and whether it ended as streams do."""
    found = b""
    with streaming(proxy.address.anthropic) as answer:
        try:
            for piece in answer.iter_raw():
                found += piece
        except httpx2.RemoteProtocolError:
            return found, False
    return found, True


def whole_calls(data: bytes) -> int:
    """The tool calls that a client of the Messages API would run."""
    taken = MessagesAssembler("here")
    try:
        for event in EventParser().feed(data):
            taken.take(event.data)
        return sum(b.type == "tool_use" for b in taken.reply().blocks)
    except (InvalidMessage, FailedAttempt):
        return 0


def test_row_60_no_stream_cut_at_any_byte_counts_as_whole() -> None:
    for at in range(len(STREAM) + 1):
        passing = StreamObserver("messages", streamed=True)
        passing.take(STREAM[:at])
        assert passing.is_whole == (at == len(STREAM))
        assert (passing.reply() is not None) == (at == len(STREAM))


@pytest.mark.parametrize("framed", [True, False])
def test_row_60_a_stream_cut_at_any_byte_reaches_the_client_as_a_cut(
    home: Path, framed: bool, scale: Scale
) -> None:
    """With chunks, and by a connection that just closes: HTTP alone would call that an end."""
    cuts = [*range(0, len(STREAM), scale.pick(43, 1)), len(STREAM)]
    at = [0]

    def answer(peer: socket.socket, found: Raw) -> None:
        del found
        piece = STREAM[: at[0]]
        if framed:
            peer.sendall(HEAD + (chunk(piece) if piece else b""))
            if at[0] == len(STREAM):
                peer.sendall(b"0\r\n\r\n")
        else:
            peer.sendall(HEAD.replace(b"transfer-encoding: chunked\r\n", b"") + piece)

    with raw(answer) as upstream, proxied(home, upstream.url) as proxy:
        for at[0] in cuts:
            found, ended = streamed(proxy)
            assert found == STREAM[: at[0]]
            assert ended == (at[0] == len(STREAM))
            assert whole_calls(found) == ended


def test_rule_18_a_stream_passes_as_it_comes(home: Path) -> None:
    """The second event is only sent once the first has arrived at the client."""
    first, rest = STREAM[:200], STREAM[200:]
    arrived = threading.Event()

    def answer(peer: socket.socket, found: Raw) -> None:
        del found
        peer.sendall(HEAD + chunk(first))
        assert arrived.wait(20)
        peer.sendall(chunk(rest) + b"0\r\n\r\n")

    with (
        raw(answer) as upstream,
        proxied(home, upstream.url) as proxy,
        streaming(proxy.address.anthropic) as got,
    ):
        pieces = got.iter_raw()
        assert next(pieces) == first
        arrived.set()
        assert b"".join(pieces) == rest


def test_rule_18_a_client_that_leaves_ends_the_call(home: Path) -> None:
    def answer(peer: socket.socket, found: Raw) -> None:
        peer.sendall(HEAD + chunk(STREAM[:100]))
        peer.settimeout(20)
        if peer.recv(1) == b"":
            found.left.set()

    with raw(answer) as upstream, proxied(home, upstream.url) as proxy:
        with streaming(proxy.address.anthropic) as got:
            next(got.iter_raw())
        assert upstream.left.wait(20)


def test_sigterm_drains_a_stream_under_way(home: Path) -> None:
    going = threading.Event()

    def answer(peer: socket.socket, found: Raw) -> None:
        del found
        peer.sendall(HEAD + chunk(STREAM[:200]))
        assert going.wait(30)
        peer.sendall(chunk(STREAM[200:]) + b"0\r\n\r\n")

    home.mkdir()
    with raw(answer) as upstream:
        proxy = Proxy(upstream.url, home)
        told = proxy.start()
        assert proxy.process is not None
        try:
            assert set(told) == {"anthropic", "openai"}
            assert told["openai"].endswith("/v1")
            with streaming(told["anthropic"]) as got:
                pieces = got.iter_raw()
                found = next(pieces)
                proxy.process.send_signal(signal.SIGTERM)
                going.set()
                assert found + b"".join(pieces) == STREAM
            assert proxy.process.wait(30) == 0
        finally:
            end(proxy.process)


USAGE = {"input_tokens": 3, "output_tokens": 2}
ENDED = {"stop_reason": "end_turn", "usage": USAGE}
ANSWER = json.dumps(
    {"id": "m", "type": "message", "model": "m", **assistant(text("Fine.")), **ENDED}
).encode()


@pytest.mark.integration
def test_row_80_background_work_has_a_key_of_its_own_and_the_clients_is_nowhere(
    home: Path,
) -> None:
    """The real process: its files, its words, its command line, and what leaves it."""
    whole = OK.replace(b"content-length: 2", b"content-length: %d" % len(ANSWER))[:-2] + ANSWER
    refusal = b"HTTP/1.1 400 No\r\ncontent-length: 2\r\n\r\n{}"
    said = "Please remember: we deploy on Tuesdays only, because support is thin on Fridays."
    with raw(sends(whole)) as upstream, raw(sends(refusal)) as own:
        command = [sys.executable, "-m", "reverie.apps.cli", "proxy", "--port", "0", "--json"]
        command += ["--explain", "--background", "claude-haiku-4-5", "--upstream", upstream.url]
        keys = {"ANTHROPIC_API_KEY": "the-own-key", "ANTHROPIC_BASE_URL": own.url}
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            command, stdout=pipe, stderr=pipe, env={**os.environ, "REVERIE_HOME": str(home), **keys}
        )
        try:
            assert process.stdout is not None
            told = json.loads(process.stdout.readline())["anthropic"]
            named = {"metadata": {"user_id": "ada"}}
            body = {**BODY, **named, "messages": [user(said)]}
            for _ in range(2):
                found = httpx2.post(
                    f"{told}/v1/messages", json=body, headers={"x-api-key": KEY}, timeout=30
                )
                assert found.content == ANSWER
                more = [assistant("Fine."), user("Always use pnpm, please, and never npm.")]
                body["messages"] = [*body["messages"], *more]
            status = httpx2.get(told.replace("/anthropic", "/status"), timeout=30).text
            proc = Path(f"/proc/{process.pid}")
            seen = b"".join((proc / name).read_bytes() for name in ("cmdline", "environ"))
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
            process.wait()
    assert [head_of(one)["x-api-key"] for one in upstream.requests] == [KEY] * 2
    assert own.requests
    assert all(b"the-own-key" in one for one in own.requests)
    assert {json.loads(body_of(one))["model"] for one in own.requests} == {"claude-haiku-4-5"}
    for told in (status.encode(), seen, out, err, *own.requests):
        assert KEY.encode() not in told
    kept = [path for path in home.rglob("*") if path.is_file()]
    assert not [path for path in kept if KEY.encode() in path.read_bytes()]


# Bad input


def test_row_51_a_body_of_a_hundred_megabytes_passes_unread(home: Path) -> None:
    data = b'{"model":"m","messages":[{"role":"user","content":"' + b"a" * 100_000_000 + b'"}]}'
    with raw(sends(OK)) as upstream, proxied(home, upstream.url) as proxy:
        found = proxy.post(MESSAGES, data)
    assert found.status_code == 200
    assert len(body_of(upstream.requests[0])) == len(data)
    assert "x-reverie" not in found.headers


def test_row_51_a_packed_body_is_never_unpacked(home: Path) -> None:
    bomb = gzip.compress(b"a" * 50_000_000)
    with raw(sends(OK)) as upstream, proxied(home, upstream.url) as proxy:
        found = proxy.post(MESSAGES, bomb, {"content-encoding": "gzip"})
    assert found.status_code == 200
    assert body_of(upstream.requests[0]) == bomb


@pytest.mark.parametrize(
    "request_",
    [
        b"POST %s HTTP/1.1\r\nhost: %s\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nnonsense\r\n",
        TWO_LENGTHS,
        b"POST %s HTTP/1.1\r\nhost: %s\r\ncontent-length: nine\r\n\r\n{}",
    ],
)
def test_row_52_nonsense_in_frames_reaches_nobody_else(home: Path, request_: bytes) -> None:
    with raw(sends(OK)) as upstream, proxied(home, upstream.url) as proxy:
        base = urlsplit(proxy.address.anthropic)
        with socket.create_connection(("127.0.0.1", base.port or 0)) as peer:
            peer.settimeout(20)
            peer.sendall(request_ % (f"{base.path}/v1/messages".encode(), base.netloc.encode()))
            peer.shutdown(socket.SHUT_WR)
            answer = b""
            while piece := peer.recv(65_536):
                answer += piece
        assert proxy.post(MESSAGES, BODY).status_code == 200  # others are still served
    assert answer.count(b"HTTP/1.1 200") <= 1
    assert len(upstream.requests) <= 2
    assert not [one for one in upstream.requests if b"nonsense" in one]


def test_two_clients_with_one_session_id_keep_their_own_threads(home: Path) -> None:
    answer = lambda body: f"You said {len(body['messages'])}."  # noqa: E731
    with standing(home, answer) as (upstream, proxy):
        headers = {"x-claude-code-session-id": "same"}
        talks: dict[str, list[Any]] = {"one": [], "two": []}
        for turn in range(3):
            for name, messages in talks.items():
                messages.append(user(f"{name} says this in turn {turn}"))
                body = {**BODY, "messages": messages, "tools": [READ]}
                found = proxy.post(MESSAGES, body, {**headers, "x-api-key": name})
                messages.append(assistant(*found.json()["content"]))
    of_one = [r for r in upstream.requests if "one says" in json.dumps(r.messages)]
    assert not [r for r in of_one if "two says" in json.dumps(r.messages)]
    assert all(b.extends(a) for a, b in pairwise(of_one))
    assert not [n for n in proxy.notices if n.level == "error"]


# Other formats


@pytest.mark.parametrize("form", ["chat", "responses"])
def test_results_are_stored_in_the_formats_of_openai_too(home: Path, form: str) -> None:
    body = asking(form, [("shell", {}, BIG)], "gpt-5")
    key = "input" if form == "responses" else "messages"
    headers = {"authorization": "Bearer k", "session-id": "c"}
    with standing(home) as (upstream, proxy):
        for items in (body[key][:1], body[key]):
            found = proxy.post(PATHS[form], {**body, key: items}, headers)
            assert found.status_code == 200, found.text
    sent = json.dumps(upstream.requests[-1].messages)
    assert "<persisted-output>" in sent
    assert len(sent) < 4_000
    assert found.headers["x-reverie"].startswith("stored=1 ")


# The dry mode


def test_record_passes_every_byte_and_replay_reads_what_was_kept(
    home: Path, tmp_path: Path
) -> None:
    answers = [[call("Read", "toolu_1", file_path="a")], "Done."]
    with standing(home, answers, dry=True, memory=False) as (upstream, proxy):
        messages = [user("Read the file a, please")]
        body = {**BODY, "messages": messages, "tools": [READ]}
        headers = {"x-claude-code-session-id": "s", "x-reverie-project": str(tmp_path)}
        first = proxy.post(MESSAGES, body, headers).json()
        messages += [assistant(*first["content"]), user(gave("toolu_1", BIG))]
        found = proxy.post(MESSAGES, body, headers)
        assert found.headers["x-reverie"] == "recorded"
        assert dict(upstream.requests[-1].body) == body
    kept = list((home / "projects").glob("*/*.jsonl"))
    assert len(kept) == 1
    from click.testing import CliRunner

    from reverie.apps.cli.replay import replay

    told = CliRunner().invoke(replay, [str(kept[0]), "--json"])
    assert told.exit_code == 0, told.output
    assert "collapse" in told.output


# Websockets


@pytest.mark.parametrize("path", ["/{token}/openai/v1/responses", "/{token}/nothing", "/", "/x/y"])
def test_an_upgrade_to_a_websocket_is_declined_at_once_and_plain_http_goes_on(
    home: Path, path: str
) -> None:
    with standing(home) as (upstream, proxy):
        found = proxy.address
        lines = (
            f"GET {path.format(token=found.token)} HTTP/1.1",
            f"Host: 127.0.0.1:{found.port}",
            "Connection: keep-alive, Upgrade",
            "Upgrade: WebSocket",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            "Sec-WebSocket-Version: 13",
            "",
            "",
        )
        with socket.create_connection(("127.0.0.1", found.port), 10) as peer:
            peer.sendall("\r\n".join(lines).encode())
            answer = peer.makefile("rb")
            assert answer.readline().startswith(b"HTTP/1.1 426 ")
            headers = dict(line.split(b": ", 1) for line in iter(answer.readline, b"\r\n"))
            answer.read(int(headers[b"content-length"]))
            assert headers[b"upgrade"] == b"HTTP/1.1\r\n"
            peer.sendall(f"GET /{found.token}/status HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert answer.readline().startswith(b"HTTP/1.1 200")
        assert proxy.post(MESSAGES, BODY).status_code == 200
    assert len(upstream.requests) == 1
