"""A stream that is cut, anywhere: the client gets what came and sees that it was cut.

The provider here is a socket that sends the first bytes of a recorded answer and closes. A client
that sees the cut runs no call; one that were shown a proper end would.
"""

from __future__ import annotations

import http.client
import json
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.clients.line import Proxy, has_proxy
from tests.conftest import Scale
from tests.proxy.sockets import HEAD, Raw, chunk, raw

pytestmark = [pytest.mark.spec("B15.clients")]

CALL = {"command": "echo 'größer' > \"ü.txt\" && rm -r build"}


def _sse(*events: dict[str, Any], named: bool = True) -> bytes:
    found = b": a comment\n\n"
    for event in events:
        head = f"event: {event['type']}\r\n" if named else ""
        found += f"{head}data: {json.dumps(event, ensure_ascii=False)}\n\n".encode()
    return found


def _messages() -> bytes:
    raw = json.dumps(CALL, ensure_ascii=False)
    usage = {"input_tokens": 9, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": usage}
    return _sse(
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ähm"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {
            "type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}},
        *({"type": "content_block_delta", "index": 1, "delta": {
            "type": "input_json_delta", "partial_json": raw[at : at + 9]}}
          for at in range(0, len(raw), 9)),
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": usage},
        {"type": "message_stop"},
    )  # fmt: skip


def _chat() -> bytes:
    raw = json.dumps(CALL, ensure_ascii=False)
    base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "g"}

    def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        return {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    function = {"name": "Bash", "arguments": ""}
    calls = [{"index": 0, "id": "call_1", "type": "function", "function": function}]
    parts = (
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": raw[at : at + 20]}}]})
        for at in range(0, len(raw), 20)
    )
    events = [chunk({"role": "assistant", "tool_calls": calls}), *parts, chunk({}, "tool_calls")]
    return _sse(*events, named=False) + b"data: [DONE]\n\n"


def _responses() -> bytes:
    raw = json.dumps(CALL, ensure_ascii=False)
    named = {"id": "fc", "call_id": "call_1", "name": "shell"}
    item = {"type": "function_call", **named, "arguments": raw}
    no_arguments = {"arguments": ""}
    whole = {"id": "resp_1", "object": "response", "status": "completed", "output": [item]}
    return _sse(
        {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, **no_arguments}},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": raw},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    )


TEXT = [{"role": "user", "content": "go"}]
FORMS: dict[str, tuple[str, bytes, dict[str, Any]]] = {
    "messages": ("/v1/messages", _messages(), {"max_tokens": 9, "messages": TEXT}),
    "chat": ("/v1/chat/completions", _chat(), {"messages": TEXT}),
    "responses": ("/v1/responses", _responses(), {"input": TEXT}),
}


def cut_off(peer: socket.socket, found: Raw) -> None:
    """Send as many bytes of an answer as `x-cut` says, and close."""
    head, _, _ = found.requests[-1].partition(b"\r\n\r\n")
    names = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    if b"x-cut" not in names:  # somebody looks whether we are here
        peer.sendall(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
        return
    path = head.split(b" ", 2)[1].decode().partition("?")[0]
    whole = next(data for at, data, _ in FORMS.values() if path.endswith(at))
    sent = whole[: int(names[b"x-cut"])]
    peer.sendall(HEAD + (chunk(sent) if sent else b""))
    if len(sent) == len(whole):
        peer.sendall(b"0\r\n\r\n")
    peer.shutdown(socket.SHUT_WR)
    while peer.recv(65_536):
        pass


def asked(base: str, form: str, after: int) -> tuple[bytes, bool]:
    """What arrives at the client, and whether it came to a proper end."""
    path, _, body = FORMS[form]
    at = urlsplit(base)
    assert at.hostname is not None
    link = http.client.HTTPConnection(at.hostname, at.port, timeout=30)
    headers = {"x-cut": str(after), "content-type": "application/json", "authorization": "Bearer k"}
    if form == "messages":
        headers |= {"anthropic-version": "2023-06-01", "x-api-key": "k"}
    data = json.dumps({"model": "m", "stream": True, **body}).encode()
    where = at.path + (path if form == "messages" else path.removeprefix("/v1"))
    try:
        link.request("POST", where, data, headers)
        answer = link.getresponse()
        if answer.status != 200:
            return b"", False
        try:
            return answer.read(), True
        except http.client.IncompleteRead as error:
            return error.partial, False
    except (http.client.HTTPException, OSError):
        return b"", False
    finally:
        link.close()


@pytest.mark.parametrize("form", list(FORMS))
def test_a_stream_cut_at_any_byte_reaches_the_client_as_a_cut(
    tmp_path: Path, scale: Scale, form: str
) -> None:
    if not has_proxy():
        pytest.skip("needs proxy: this version has no `reverie proxy`")
    whole = FORMS[form][1]
    with raw(cut_off) as upstream:
        proxy = Proxy(upstream.url, tmp_path)
        base = proxy.start()["anthropic" if form == "messages" else "openai"]
        try:
            assert asked(base, form, len(whole)) == (whole, True)
            for after in range(scale.seed, len(whole), scale.pick(61, 1)):
                got, ended = asked(base, form, after)
                assert not ended, f"cut after {after} of {len(whole)} bytes, shown as a proper end"
                assert whole.startswith(got), f"cut after {after}: other bytes came: {got[-80:]!r}"
        finally:
            proxy.stop()
