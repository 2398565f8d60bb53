"""Items and messages: what a view holds, between records and a request.

An `Item` is what one record puts into the conversation. A `Message` is a run of items
of one role as the provider reads it, with its JSON text, size and chained digest worked
out once. Pure values and functions; nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from reverie.transcript.blocks import Block, block_of, text_block
from reverie.transcript.records import Role

INTERRUPTED = "[No result: the call was interrupted before it finished]"
MISSING_START = "[The conversation before this point is not in this transcript]"
HEAD = "head"


@dataclass(frozen=True, slots=True)
class Piece:
    """A block that is sent, and where it comes from."""

    block: Block
    source: str  # entry id
    index: int  # place among the record's blocks


@dataclass(frozen=True, slots=True)
class Item:
    """What one record (or one replaced range) puts into the conversation."""

    id: str
    role: Role
    pieces: tuple[Piece, ...]
    kind: str = "message"  # message, attached, replaced, synthetic or head
    covers: frozenset[str] = frozenset()
    seals: bool = False
    reason: str = ""  # why a range was replaced
    tokens: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", sum(p.block.tokens for p in self.pieces))

    @property
    def calls(self) -> tuple[str, ...]:
        return tuple(p.block.get("id") for p in self.pieces if p.block.type == "tool_use")

    @property
    def results(self) -> tuple[str, ...]:
        return tuple(
            p.block.get("tool_use_id") for p in self.pieces if p.block.type == "tool_result"
        )

    def holds(self, entry: str) -> bool:
        return entry == self.id or entry in self.covers


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a request."""

    role: Role
    pieces: tuple[Piece, ...]
    text: str
    tokens: int
    end: int  # message blocks of the request up to here
    chain: bytes  # digest of all blocks up to here

    @property
    def start(self) -> int:
        return self.end - len(self.pieces)


def link(chain: bytes, role: Role, block: Block) -> bytes:
    return blake2b(chain + role.encode() + block.digest, digest_size=16).digest()


def message_text(role: Role, blocks: Iterable[str]) -> str:
    return f'{{"role":"{role}","content":[{",".join(blocks)}]}}'


def message(run: Sequence[Item], before: Message | None) -> Message:
    """A run of items of one role as one message; results stand before everything else."""
    role = run[0].role
    pieces = tuple(p for item in run for p in item.pieces)
    if role == "user":
        results = [p for p in pieces if p.block.type == "tool_result"]
        if results:
            pieces = (*results, *(p for p in pieces if p.block.type != "tool_result"))
    chain = before.chain if before else b""
    for piece in pieces:
        chain = link(chain, role, piece.block)
    return Message(
        role,
        pieces,
        message_text(role, (p.block.raw for p in pieces)),
        sum(p.block.tokens for p in pieces),
        (before.end if before else 0) + len(pieces),
        chain,
    )


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
