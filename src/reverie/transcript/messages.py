"""Items and messages: what a view holds, between records and a request.

An `Item` is what one record puts into the conversation. A `Message` is a run of items
of one role as the provider reads it, with its JSON text, size and chained digest worked
out once. Pure values and functions; nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from hashlib import blake2b

from reverie.light import dataclass
from reverie.transcript.blocks import Block, block_of, text_block
from reverie.transcript.records import Role, unchanging

INTERRUPTED = "[No result: the call was interrupted before it finished]"
MISSING_START = "[The conversation before this point is not in this transcript]"
HEAD = "head"


@unchanging
class Piece:
    """A block that is sent, and where it comes from."""

    block: Block
    source: str  # entry id
    index: int  # place among the record's blocks


@dataclass(slots=True, unsafe_hash=True)
class Item:
    """What one record (or one replaced range) puts into the conversation. Never changed
    once made; not frozen, since a frozen value takes longer to make."""

    id: str
    role: Role
    pieces: tuple[Piece, ...]
    kind: str = "message"  # message, attached, replaced, synthetic or head
    covers: frozenset[str] = frozenset()
    seals: bool = False
    reason: str = ""  # why a range was replaced
    tokens: int = field(init=False, compare=False)
    calls: tuple[str, ...] = field(init=False, compare=False)  # ids of the calls in it
    results: tuple[str, ...] = field(init=False, compare=False)  # ids of the calls it answers

    def __post_init__(self) -> None:
        tokens, calls, results = 0, (), ()
        for piece in self.pieces:
            block = piece.block
            tokens += block.tokens
            if block.type == "tool_use":
                calls += (block.call,)
            elif block.type == "tool_result":
                results += (block.call,)
        self.tokens, self.calls, self.results = tokens, calls, results

    def holds(self, entry: str) -> bool:
        return entry == self.id or entry in self.covers


class Message:
    """One message of a request. Never changed once made; its text and chained digest are
    worked out when they are first asked for."""

    __slots__ = ("_before", "_chain", "_text", "end", "pieces", "role")

    def __init__(self, role: Role, pieces: tuple[Piece, ...], before: Message | None) -> None:
        self.role: Role = role
        self.pieces = pieces
        self.end = len(pieces) + (before.end if before else 0)  # blocks of the request so far
        self._before = before
        self._chain = b""
        self._text = ""

    @property
    def start(self) -> int:
        return self.end - len(self.pieces)

    @property
    def tokens(self) -> int:
        return sum([p.block.tokens for p in self.pieces])

    @property
    def text(self) -> str:
        """Its JSON text."""
        if not self._text:
            self._text = message_text(self.role, [p.block.raw for p in self.pieces])
        return self._text

    @property
    def chain(self) -> bytes:
        """A digest of all blocks of the request up to here."""
        todo: list[Message] = []
        at: Message | None = self
        while at is not None and not at._chain:
            todo.append(at)
            at = at._before
        chain = at._chain if at else b""
        for one in reversed(todo):
            for piece in one.pieces:
                chain = link(chain, one.role, piece.block)
            one._chain, one._before = chain, None
        return chain

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message):
            return False
        return (self.role, self.pieces, self.chain) == (other.role, other.pieces, other.chain)

    def __hash__(self) -> int:
        return hash(self.chain)

    def __repr__(self) -> str:
        return f"Message({self.role!r}, {self.pieces!r})"


def link(chain: bytes, role: Role, block: Block) -> bytes:
    return blake2b(chain + role.encode() + block.digest, digest_size=16).digest()


def message_text(role: Role, blocks: Iterable[str]) -> str:
    return f'{{"role":"{role}","content":[{",".join(blocks)}]}}'


def message(run: Sequence[Item], before: Message | None) -> Message:
    """A run of items of one role as one message; results stand before everything else."""
    role = run[0].role
    pieces = run[0].pieces
    if len(run) > 1:
        pieces = tuple([p for item in run for p in item.pieces])
    if role == "user" and len(pieces) > 1 and any(item.results for item in run):
        results = [p for p in pieces if p.block.type == "tool_result"]
        if len(results) < len(pieces):
            pieces = (*results, *[p for p in pieces if p.block.type != "tool_result"])
    return Message(role, pieces, before)


def interrupted(calls: Sequence[str], after: str) -> Item:
    """Results for calls that never got one, so that no request has an orphan."""
    return Item(
        f"{after}:interrupted",
        "user",
        tuple(
            Piece(interrupted_result(call), f"{after}:interrupted", i)
            for i, call in enumerate(calls)
        ),
        "synthetic",
    )


def interrupted_result(call: str) -> Block:
    return block_of(
        {"type": "tool_result", "tool_use_id": call, "content": INTERRUPTED, "is_error": True}
    )


def missing_start() -> Item:
    return Item("start", "user", (Piece(text_block(MISSING_START), "start", 0),), "synthetic")
