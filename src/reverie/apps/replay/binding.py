"""Thinking bound to what precedes it: which requests a provider would refuse.

Each recorded thinking block is bound, by the simulator's own binder, to the request it
answered in the replay, as it would have been when it was made. A request that carries
a block behind anything else is refused. Requests that only grow are not walked again.
"""

from __future__ import annotations

from collections.abc import Sequence

from reverie.simulator.binding import Binder, link
from reverie.transcript.blocks import Block, Object, parse
from reverie.wire.request import Request

MODEL = "replayed"


class Bindings:
    """The bound thinking of one replayed session."""

    def __init__(self) -> None:
        self._binder = Binder()
        self._last: Request | None = None
        self._chain = b""
        self._refused = False

    def refuses(self, request: Request) -> bool:
        """Whether this request would be refused; the next answer is bound to it."""
        last, self._last = self._last, request
        if last is None or not request.extends(last):
            bound = self._binder.verify(_body(request), MODEL)
            self._chain, self._refused = bound.chain, bool(bound.mismatches)
        else:
            self._chain = _grown(self._chain, last.blocks, request)
        return self._refused

    def answered(self, blocks: Sequence[Block]) -> None:
        """Bind the thinking of an answer to the last request."""
        chain = self._chain
        for block in blocks:
            if block.thinking:
                self._binder.adopt_block(block.value, chain)
            chain = link(chain, "assistant", block.value)


def _grown(chain: bytes, known: int, request: Request) -> bytes:
    """The chain of a request whose first `known` blocks it already covers."""
    at = request.count
    while at and request.at(at - 1).end > known:
        at -= 1
    for index in range(at, request.count):
        message = request.at(index)
        for piece in message.pieces[max(0, known - message.start) :]:
            chain = link(chain, message.role, piece.block.value)
    return chain


def _body(request: Request) -> Object:
    """The request as a value, without marks; the blocks are not copied."""
    return {
        "system": parse(request.head.system),
        "tools": parse(request.head.tools),
        "messages": [
            {"role": m.role, "content": [p.block.value for p in m.pieces]}
            for m in request.messages()
        ],
    }
