"""A provider's own items, carried beside our blocks and sent back to it alone.

What OpenAI-style providers answer has parts that our blocks cannot hold (reasoning items,
item ids, the server's names for calls). They travel in one more block at the end of the
assistant's message:

    {"type": "openai_items", "provider": …, "model": …, "of": …, "ids": {…}, "items": […]}

The same provider and model get the items back verbatim, as long as the message's other
blocks are still those the items were received with (`of` is their digest); every other
provider and model leaves the block out and reads the others. `foreign_blocks` is the one
place that says which blocks a provider must leave out.

Names of calls: a server may use a name again in a later round, or leave it empty, but a
transcript knows a call by its name. So at receipt a name that is short, strange or
already used gets an ending made from the request it answers; `ids` says what the server
called it, and it is called that again when the items go back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import groupby

from reverie.light import dataclass
from reverie.transcript.blocks import Block, block, dump, elements, members
from reverie.transcript.messages import Item, Message, Piece, message
from reverie.transcript.records import Mark
from reverie.transcript.view import Trail
from reverie.wire.request import Request

ITEMS = "openai_items"
NATIVE = frozenset({ITEMS})
_SAFE = re.compile(r"[A-Za-z0-9_-]{16,64}")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Native:
    """A provider's own items of one message, and what it called the calls in it."""

    items: tuple[str, ...]
    ids: Mapping[str, str]  # ours → theirs


def foreign_blocks(block: Block) -> bool:
    """Whether a block means nothing to any provider but the one it came from."""
    return block.type in NATIVE


def _digest(blocks: Sequence[Block]) -> str:
    return blake2b(b"".join(b.digest for b in blocks), digest_size=12).hexdigest()


def native_block(
    provider: str, model: str, blocks: Sequence[Block], items: Sequence[str], ids: Mapping[str, str]
) -> Block:
    """The block that carries a message's own items."""
    head = dump(
        {
            "type": ITEMS,
            "provider": provider,
            "model": model,
            "of": _digest(blocks),
            "ids": dict(ids),
        }
    )
    return block(f'{head[:-1]},"items":[{",".join(items)}]}}')


def native_of(blocks: Sequence[Block], provider: str, model: str) -> Native | None:
    """The items to send in the place of a message's blocks, if they are this provider's."""
    found = [b for b in blocks if b.type == ITEMS]
    rest = [b for b in blocks if b.type != ITEMS]
    if len(found) != 1:
        return None
    carrier = found[0]
    same = (carrier.get("provider"), carrier.get("model")) == (provider, model)
    if not same or carrier.get("of") != _digest(rest):
        return None
    ids = carrier.value.get("ids")
    named = {k: str(v) for k, v in ids.items()} if isinstance(ids, dict) else {}
    return Native(tuple(raw for raw, _ in elements(members(carrier.raw)["items"][0])), named)


def by_record(message: Message) -> Iterator[list[Block]]:
    """A message's blocks, one list for each record they came from."""
    for _, pieces in groupby(message.pieces, key=lambda p: p.source):
        yield [p.block for p in pieces]


def unique_ids(theirs: Sequence[str], request: Request | None) -> list[str]:
    """A name for each call of an answer that no other call of the session has; without a
    session, its own."""
    if request is None:
        return list(theirs)
    used = {
        p.block.call
        for m in request.messages()
        if m.role == "assistant"
        for p in m.pieces
        if p.block.type == "tool_use"
    }
    parts = request.parts()
    seed = f"{parts.messages}/{parts.blocks}"
    ours: list[str] = []
    for n, name in enumerate(theirs):
        if name in used or not _SAFE.fullmatch(name):
            ending = blake2b(f"{seed}/{n}".encode(), digest_size=6).hexdigest()
            ours.append(f"{_UNSAFE.sub('_', name)[:40] or 'call'}-{ending}")
        else:
            ours.append(name)
        used.add(name)
    return ours


def without_foreign(request: Request) -> Request:
    """The request without blocks of other providers; its marks stay on the blocks they mark."""
    if not any(foreign_blocks(p.block) for m in request.messages() for p in m.pieces):
        return request
    kept: list[Message] = []
    places: dict[int, int] = {}  # where each block was → where it, or the one before it, is
    end = 0
    for old in request.messages():
        pieces: list[Piece] = []
        for n, piece in enumerate(old.pieces):
            if not foreign_blocks(piece.block):
                pieces.append(piece)
                end += 1
            places[old.start + n] = end - 1
        if pieces:
            run = [Item(pieces[0].source, old.role, tuple(pieces))]
            kept.append(message(run, kept[-1] if kept else None))
    return replace(request, closed=Trail(kept), tail=(), marks=_moved(request.marks, places))


def _moved(marks: Sequence[Mark], places: Mapping[int, int]) -> tuple[Mark, ...]:
    """Marks at the places their blocks have now; the first of two on one block stays."""
    moved: dict[tuple[str, int], Mark] = {}
    for mark in marks:
        at = places.get(mark.block, mark.block) if mark.part == "messages" else mark.block
        if at >= 0:
            moved.setdefault((mark.part, at), replace(mark, block=at))
    return tuple(moved.values())


def conversation(
    request: Request,
    provider: str,
    user: Callable[[Sequence[Block], dict[str, str]], Iterable[str]],
    assistant: Callable[[Sequence[Block]], Iterable[str]],
) -> Iterator[str]:
    """Every message in a wire format: native items as they came where they fit, ours written
    by the format; `user` is told by which ids the provider knows its calls."""
    theirs: dict[str, str] = {}
    for said in request.messages():
        if said.role == "user":
            yield from user([p.block for p in said.pieces], theirs)
            continue
        for blocks in by_record(said):
            native = native_of(blocks, provider, request.head.model)
            if native is not None:
                theirs.update(native.ids)
                yield from native.items
            else:
                yield from assistant(blocks)
