"""A provider that answers with given bytes, and says what it saw: connections, requests, ends."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


@dataclass
class Raw:
    """What arrived at a port."""

    url: str
    requests: list[bytes] = field(default_factory=list[bytes])
    left: threading.Event = field(default_factory=threading.Event)  # the other side closed


Answer = Callable[[socket.socket, Raw], None]


def _request(peer: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = peer.recv(65_536)
        if not piece:
            return data
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    wanted = int(lengths[0].partition(b":")[2]) if lengths else 0
    pieces = [body]
    size = len(body)
    while size < wanted:
        piece = peer.recv(1 << 20)
        if not piece:
            break
        pieces.append(piece)
        size += len(piece)
    return head + b"\r\n\r\n" + b"".join(pieces)


def _serve(listening: socket.socket, answer: Answer, found: Raw) -> None:
    while True:
        try:
            peer, _ = listening.accept()
        except OSError:
            return
        with peer:
            request = _request(peer)
            if request and not request.startswith(b"HEAD"):
                found.requests.append(request)
                answer(peer, found)


@contextmanager
def raw(answer: Answer) -> Generator[Raw]:
    """A port that answers one connection after another by `answer`, then closes it."""
    listening = socket.create_server(("127.0.0.1", 0))
    found = Raw(f"http://127.0.0.1:{listening.getsockname()[1]}")
    thread = threading.Thread(target=_serve, args=(listening, answer, found), daemon=True)
    thread.start()
    try:
        yield found
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(10)


def sends(data: bytes) -> Answer:
    """Answer with these bytes, and close."""

    def answer(peer: socket.socket, found: Raw) -> None:
        del found
        peer.sendall(data)

    return answer
