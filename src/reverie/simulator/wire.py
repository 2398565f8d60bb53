"""Bytes on their way out: a whole body or a row of pieces, and what a fault does to them.

A `Sending` is what a wire format hands to whoever owns the connection. `pieces` yields
its bytes; a cut one ends early and says so, so that the owner can drop the connection.
Nothing here knows a socket.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from reverie.simulator.faults import InjectedFault

JSON = "application/json"
EVENTS = "text/event-stream; charset=utf-8"
PIECE = 24  # characters of text in one event
Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Sending:
    """An HTTP response before it is sent."""

    status: int
    pieces: tuple[bytes, ...]
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    content_type: str = JSON
    cut: bool = False  # the connection is dropped behind the last piece
    pause: float = 0.0  # seconds between two pieces

    async def sent(self, sleep: Sleep) -> AsyncIterator[bytes]:
        for at, piece in enumerate(self.pieces):
            if at and self.pause:
                await sleep(self.pause)
            yield piece


def whole(text: str, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Sending:
    return Sending(status, (text.encode("utf-8", "replace"),), headers or {})


def streamed(events: Iterable[str], headers: Mapping[str, str]) -> Sending:
    return Sending(200, tuple(e.encode() for e in events), headers, EVENTS)


def event(name: str, data: str) -> str:
    """One server-sent event; `data` is JSON text on one line."""
    return f"event: {name}\ndata: {data}\n\n"


def chunks(text: str, size: int = PIECE) -> Iterator[str]:
    for at in range(0, len(text), size):
        yield text[at : at + size]


def befallen(sending: Sending, fault: InjectedFault | None) -> Sending:
    """The same response after a fault has had its way."""
    if fault is None:
        return sending
    match fault.kind:
        case "cut":
            return _cut(sending, fault.after)
        case "slow":
            pieces = sending.pieces
            return Sending(200, pieces, sending.headers, sending.content_type, pause=fault.pause)
        case "garbled":
            kept = (*sending.pieces[: fault.after], fault.body)
            return Sending(200, kept, sending.headers, sending.content_type)
        case "raw":
            kind = fault.headers.get("content-type", JSON)
            return Sending(fault.status, (fault.body,), {}, kind)
        case _:
            return sending


def _cut(sending: Sending, after: int) -> Sending:
    kept: list[bytes] = []
    for piece in sending.pieces:
        if after <= 0:
            break
        kept.append(piece[:after])
        after -= len(piece)
    return Sending(sending.status, tuple(kept), sending.headers, sending.content_type, cut=True)
