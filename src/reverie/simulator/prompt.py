"""A request as the model is shown it: a flat row of blocks, with digests and counts.

Tools come first, then the system prompt, then the messages; a string is one text block.
Number literals and the order inside inputs are part of what must be equal. Nothing here
changes a request.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from math import isinf
from typing import cast

from reverie.simulator.cache import CachedBlock
from reverie.simulator.profiles import CONTROL, Number, Profile, plain
from reverie.simulator.refusals import bad
from reverie.transcript.blocks import Json, Object, dump

EDITS = "cache_edits"


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _number(text: str) -> Number:
    found = Number(text)
    if isinf(found):
        raise ValueError(f"{text[:20]} is out of range")
    return found


def loads(text: str | bytes) -> Object:
    """A body's value; floats remember how they were written."""
    try:
        value = json.loads(text, parse_float=_number, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise bad("The request body is not valid JSON: " + str(error)[:200]) from error
    if not isinstance(value, dict):
        raise bad("The request body must be a JSON object")
    return cast("Object", value)


def body_of(given: str | bytes | Mapping[str, Json]) -> Object:
    """A body handed in as text or as a value."""
    return loads(given) if isinstance(given, (str, bytes)) else dict(given)


def blocks_in(content: Json) -> list[Object]:
    """A message's or system prompt's content as blocks."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return []
    return [b for b in content if isinstance(b, dict)]


def objects(value: Json) -> list[Object]:
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def flat(body: Object) -> Iterator[tuple[str, Object]]:
    """Every block with its role, in the provider's order."""
    for tool in objects(body.get("tools")):
        yield "tools", tool
    for block in blocks_in(body.get("system")):
        yield "system", block
    for message in objects(body.get("messages")):
        role = str(message.get("role"))
        for block in blocks_in(message.get("content")):
            yield role, block


def mark_of(block: Object) -> str:
    """The lifetime of a block's mark, or the empty string."""
    control = block.get(CONTROL)
    if not isinstance(control, dict):
        nested = [mark_of(b) for b in objects(block.get("content"))]
        return next((m for m in reversed(nested) if m), "")
    ttl = control.get("ttl")
    return ttl if isinstance(ttl, str) else "5m"


def deleted(body: Object) -> frozenset[str]:
    """Calls whose results `cache_edits` blocks took out of the prompt."""
    return frozenset(
        str(call)
        for _, block in flat(body)
        if block.get("type") == EDITS
        for call in cast("list[Json]", block.get("delete") or [])
    )


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request's blocks, and how many tokens they are."""

    parts: tuple[CachedBlock, ...]

    @property
    def tokens(self) -> int:
        return self.parts[-1].end if self.parts else 0

    @property
    def marked(self) -> int:
        """Tokens up to the last mark."""
        return next((p.end for p in reversed(self.parts) if p.ttl), 0)


def digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def prompt(
    body: Object,
    rules: Profile,
    *,
    salt: bytes = b"",
    turn_salt: bytes = b"",
) -> Prompt:
    """The parts of a request. `salt` keeps caches apart from the first block on,
    `turn_salt` from the first message on."""
    chain, end, gone = salt, 0, deleted(body)
    hidden = _hidden(body)
    parts: list[CachedBlock] = []
    top = _automatic_mark(body)
    turned = not turn_salt
    places = list(flat(body))
    for at, (role, block) in enumerate(places):
        if not turned and role not in ("tools", "system"):
            chain, turned = digest(chain + turn_salt), True
        same = digest(rules.same(block))
        tokens = 0 if at in hidden or _emptied(block, gone) else rules.tokens(block)
        before = chain
        chain = digest(chain + role.encode() + same)
        end += tokens
        ttl = mark_of(block) or (top[1] if top and at == top[0] else "")
        share = _share(block, before, role) if rules.caching == "automatic" else (b"", b"", 0)
        parts.append(CachedBlock(role, chain, tokens, end, ttl, *share))
    return Prompt(tuple(parts))


def _emptied(block: Object, gone: frozenset[str]) -> bool:
    kind = block.get("type")
    return kind == EDITS or (kind == "tool_result" and str(block.get("tool_use_id")) in gone)


def _hidden(body: Object) -> set[int]:
    """Places of system messages that were to be shown only until the next user message."""
    messages = objects(body.get("messages"))
    at = len(objects(body.get("tools"))) + len(blocks_in(body.get("system")))
    waiting: set[int] = set()
    out: set[int] = set()
    for message in messages:
        size = len(blocks_in(message.get("content")))
        if message.get("role") == "user":
            out |= waiting
        elif message.get("role") == "system" and message.get("clear_at") == "next_user_message":
            waiting.update(range(at, at + size))
        at += size
    return out


def _automatic_mark(body: Object) -> tuple[int, str] | None:
    """Where a mark at the top level of a request comes to stand."""
    if not isinstance(body.get(CONTROL), dict):
        return None
    places = [block for _, block in flat(body)]
    for at in reversed(range(len(places))):
        if markable(places[at]):
            return at, mark_of({CONTROL: body[CONTROL]})
    return None


def markable(block: Object) -> bool:
    """Whether a block takes a cache mark."""
    kind = block.get("type")
    if kind in ("thinking", "redacted_thinking", EDITS):
        return False
    return not (kind == "text" and not str(block.get("text", "")).strip())


def _share(block: Object, before: bytes, role: str) -> tuple[bytes, bytes, int]:
    """What a beginning of this block is made of: the chain before it, bytes, bytes a token."""
    kind = block.get("type")
    start = before + role.encode()
    text = block.get("text") if kind == "text" else block.get("content")
    if isinstance(text, str):
        return start, text.encode("utf-8", "surrogatepass"), 4
    width = 0 if kind in ("image", "document") else 2
    return start, dump(plain(block)).encode(), width
