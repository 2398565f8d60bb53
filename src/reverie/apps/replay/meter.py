"""What a request costs: the simulated prompt cache, fed from requests as they are.

Rules are those of the simulator's `cachesim` profile, prices the policy's: where nothing is
said, reading a tenth, writing 1.25 or twice, output five times an input token. Thinking counts
by its words. A message is measured once, however often it is sent. The meter never looks at a
clock.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from reverie.simulator.cache import CachedBlock, Charge, PromptCache
from reverie.simulator.profiles import CACHESIM, Profile
from reverie.transcript.blocks import Block
from reverie.transcript.messages import Message, link
from reverie.transcript.records import HeadSet, Mark
from reverie.transcript.view import head_blocks
from reverie.wire.request import Request, digest
from reverie.world import Prices

MINIMUM = CACHESIM.minimum or 0


def tokens(block: Block) -> int:
    """A block's tokens; thinking by its text, without its signature."""
    return block.tokens if block.thinking else CACHESIM.tokens(block.value)


def rules_of(prices: Prices) -> Profile:
    """The bench's cache at these prices."""
    write = MappingProxyType({"5m": prices.write, "1h": prices.write_long})
    return replace(CACHESIM, read=prices.read, write=write, output=prices.output)


class Meter:
    """The cache of one replayed session, and its bill."""

    def __init__(self, head: HeadSet) -> None:
        self._cache = PromptCache(CACHESIM)
        self._sizes: dict[bytes, int] = {}
        self._messages: dict[tuple[bytes, int], tuple[CachedBlock, ...]] = {}
        self._places = {"tools": 0, "system": 0, "messages": 0}
        self._head = self._head_parts(head)

    def _head_parts(self, head: HeadSet) -> tuple[CachedBlock, ...]:
        out: list[CachedBlock] = []
        chain = digest(head.model).encode()
        for role, array in (("tools", head.tools), ("system", head.system)):
            self._places[role] = len(out)
            for block in head_blocks(array):
                chain = link(chain, "user", block)
                end = (out[-1].end if out else 0) + self.tokens(block)
                out.append(CachedBlock(role, chain, self.tokens(block), end))
        self._places["messages"] = len(out)
        return tuple(out)

    def tokens(self, block: Block) -> int:
        found = self._sizes.get(block.digest)
        if found is None:
            found = self._sizes[block.digest] = tokens(block)
        return found

    def charge(self, request: Request, marks: tuple[Mark, ...], now: float) -> Charge:
        """Bill one request at this time, and keep what its marks say."""
        parts = list(self._head)
        before = b""
        for message in request.messages():
            parts += self._parts(message, before, parts[-1].end if parts else 0)
            before = message.chain
        for mark in marks:
            at = self._places[mark.part] + mark.block
            parts[at] = replace(parts[at], ttl=mark.ttl)
        return self._cache.charge(parts, now, MINIMUM)

    def _parts(self, message: Message, chain: bytes, end: int) -> tuple[CachedBlock, ...]:
        """A message's parts. Its chain tells all before it, so its ends are the same too."""
        key = (message.chain, len(message.pieces))
        found = self._messages.get(key)
        if found is None:
            out: list[CachedBlock] = []
            for piece in message.pieces:
                size = self.tokens(piece.block)
                chain, end = link(chain, message.role, piece.block), end + size
                out.append(CachedBlock(message.role, chain, size, end))
            found = self._messages[key] = tuple(out)
        return found
