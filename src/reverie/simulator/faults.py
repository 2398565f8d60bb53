"""Injected faults, in plans and on the wire.

Things that go wrong on purpose, as values.

A plan says for each request that asks for an answer what befalls it: an error status
with or without `retry-after`, a stream that is cut, slow or garbled, a proxy's page, or
any bytes at all. A plan is used up in order; a request without a fault is answered
normally. Nothing here is random.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from reverie.errors import InvalidInput
from reverie.simulator.profiles import WORDS, ApiError
from reverie.transcript.blocks import Json, Object

PAGE = "<html><head><title>502 Bad Gateway</title></head><body><h1>502</h1></body></html>"
RetryAfter: TypeAlias = "int | float | str | None"


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """One thing that befalls one request."""

    kind: Literal["error", "cut", "slow", "garbled", "raw"]
    status: int = 200
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    after: int = 0  # cut: bytes of the body that still go out; garbled: events before it
    pause: float = 0.0  # slow: seconds between two pieces
    body: bytes = b""  # raw: the whole body; garbled: what is sent instead of an event

    def raised(self) -> ApiError | None:
        """The refusal this fault stands for, if it is one."""
        if self.kind != "error":
            return None
        words = self.message or WORDS.get(self.status, "Simulated failure")
        return ApiError(self.status, words, headers=self.headers)


def error(status: int, *, retry_after: RetryAfter = None, message: str = "") -> InjectedFault:
    """A refusal: 429, 529, 500 or another; `retry_after` in seconds, or a date as text."""
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    return InjectedFault("error", status, message, headers)


def cut(after: int) -> InjectedFault:
    """The connection closes after so many bytes of the body."""
    return InjectedFault("cut", after=after)


def slow(pause: float) -> InjectedFault:
    """So many seconds between two pieces of the body."""
    return InjectedFault("slow", pause=pause)


def garbled(after: int = 1, body: bytes = b"data: {not json\n\n") -> InjectedFault:
    """A stream whose events are nonsense from the `after`-th on; then it ends."""
    return InjectedFault("garbled", after=after, body=body)


def page(status: int = 502, text: str = PAGE) -> InjectedFault:
    """A proxy's page in the place of an answer."""
    return raw(text.encode(), status, "text/html; charset=utf-8")


def raw(body: bytes, status: int = 200, content_type: str = "text/event-stream") -> InjectedFault:
    """These bytes and no others, for instance a recorded response."""
    return InjectedFault("raw", status, headers={"content-type": content_type}, body=body)


Plan: TypeAlias = "Iterable[InjectedFault | None] | Callable[[int, Object], InjectedFault | None]"


class FaultPlan:
    """A plan being used up."""

    def __init__(self, plan: Plan = ()) -> None:
        self._choose = plan if callable(plan) else None
        self._rest: list[InjectedFault | None] = [] if callable(plan) else list(plan)
        self._asked = 0

    def add(self, *faults: InjectedFault | None) -> None:
        self._rest += faults

    def take(self, body: Object) -> InjectedFault | None:
        """What befalls the next request."""
        self._asked += 1
        if self._choose is not None:
            return self._choose(self._asked, body)
        return self._rest.pop(0) if self._rest else None


def from_json(value: Json) -> InjectedFault:
    """A fault as a script file writes it: `{"status": 429, "retry_after": 2}`, `{"cut": 100}`,
    `{"slow": 0.5}`, `{"garbled": 2}` or `{"page": 502}`."""
    if isinstance(value, dict):
        number = next((v for v in value.values() if isinstance(v, (int, float))), 0)
        match next(iter(value), ""):
            case "status":
                after = value.get("retry_after")
                known = after if isinstance(after, (int, float, str)) else None
                return error(int(number), retry_after=known, message=str(value.get("message", "")))
            case "cut":
                return cut(int(number))
            case "slow":
                return slow(float(number))
            case "garbled":
                return garbled(int(number))
            case "page":
                return page(int(number))
            case _:
                pass
    raise InvalidInput(f"a script names an unknown fault: {str(value)[:80]}")


# --- Bytes on their way out: a whole body or a row of pieces, and what a fault does to them.
#
# A `HttpPayload` is what a wire format hands to whoever owns the connection. `pieces` yields its
# bytes; a cut one ends early and says so, so that the owner can drop the connection. Nothing here
# knows a socket.


JSON = "application/json"
EVENTS = "text/event-stream; charset=utf-8"
PIECE = 24  # characters of text in one event
Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class HttpPayload:
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


def whole(text: str, *, status: int = 200, headers: Mapping[str, str] | None = None) -> HttpPayload:
    return HttpPayload(status, (text.encode("utf-8", "replace"),), headers or {})


def stream_events(events: Iterable[str], headers: Mapping[str, str]) -> HttpPayload:
    return HttpPayload(200, tuple(e.encode() for e in events), headers, EVENTS)


def event(name: str, data: str) -> str:
    """One server-sent event; `data` is JSON text on one line."""
    return f"event: {name}\ndata: {data}\n\n"


def chunks(text: str, size: int = PIECE) -> Iterator[str]:
    for at in range(0, len(text), size):
        yield text[at : at + size]


def befallen(sending: HttpPayload, fault: InjectedFault | None) -> HttpPayload:
    """The same response after a fault has had its way."""
    if fault is None:
        return sending
    match fault.kind:
        case "cut":
            return _cut(sending, fault.after)
        case "slow":
            pieces = sending.pieces
            return HttpPayload(
                200, pieces, sending.headers, sending.content_type, pause=fault.pause
            )
        case "garbled":
            kept = (*sending.pieces[: fault.after], fault.body)
            return HttpPayload(200, kept, sending.headers, sending.content_type)
        case "raw":
            kind = fault.headers.get("content-type", JSON)
            return HttpPayload(fault.status, (fault.body,), {}, kind)
        case _:
            return sending


def _cut(sending: HttpPayload, after: int) -> HttpPayload:
    kept: list[bytes] = []
    for piece in sending.pieces:
        if after <= 0:
            break
        kept.append(piece[:after])
        after -= len(piece)
    return HttpPayload(sending.status, tuple(kept), sending.headers, sending.content_type, cut=True)
