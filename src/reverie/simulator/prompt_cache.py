"""The prompt as cached blocks, entries, diagnosis.

The prompt cache.

`PromptCache` follows Anthropic's written rules: entries exist only where a mark stood,
a prefix matches whole or not at all, each mark looks back a bounded number of blocks,
and a hit starts an entry's time again. `AutomaticCache` follows OpenAI's: every prefix
of a whole number of steps is kept. Both see digests and counts, never texts, and take
the time as an argument. Neither knows what a request looks like.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import isinf
from typing import cast

from reverie.simulator.profiles import CONTROL, LIFETIMES, LiteralNumber, Profile, bad, plain
from reverie.transcript.blocks import Json, Object, dump

KEPT = 50_000  # entries after which the dead ones are swept out


@dataclass(frozen=True, slots=True)
class CachedBlock:
    """One block of a prompt, as the cache sees it."""

    role: str
    chain: bytes  # digest of all blocks up to and with this one
    tokens: int
    end: int  # tokens of the prompt up to and with this block
    ttl: str = ""  # the lifetime of its mark, if it has one
    start: bytes = b""  # automatic caching: what a share of this block follows
    data: bytes = b""  # automatic caching: the bytes a share is taken of
    width: int = 0  # automatic caching: bytes a token; 0 where there are no shares


@dataclass(frozen=True, slots=True)
class Charge:
    """What a request's input is billed as."""

    read: int = 0
    written_5m: int = 0
    written_1h: int = 0
    plain: int = 0
    total: int = 0

    @property
    def written(self) -> int:
        return self.written_5m + self.written_1h

    def cost(self, rules: Profile, output: int) -> float:
        """In units of one plain input token."""
        writing = self.written_5m * rules.write["5m"] + self.written_1h * rules.write["1h"]
        return writing + (self.read * rules.read + self.plain + output * rules.output)


@dataclass(slots=True)
class _Entry:
    expires: float
    lifetime: int


class PromptCache:
    """Entries at marks; see the module."""

    def __init__(self, rules: Profile) -> None:
        self.rules = rules
        self._entries: dict[bytes, _Entry] = {}

    def _live(self, key: bytes, now: float) -> _Entry | None:
        entry = self._entries.get(key)
        return entry if entry is not None and entry.expires >= now else None

    def charge(self, parts: Sequence[CachedBlock], now: float, minimum: int) -> Charge:
        """Bill one prompt, and keep what its marks say."""
        marks = [(i, p.ttl) for i, p in enumerate(parts) if p.ttl and p.end >= minimum]
        at = self._longest_prefix(parts, marks, now)
        read = parts[at].end if at >= 0 else 0
        written = {"5m": 0, "1h": 0}
        done = read
        for i, ttl in marks:
            part = parts[i]
            if part.end > done:
                written[ttl] += part.end - done
                done = part.end
                self._keep(part.chain, now, ttl)
            elif i > at or self._live(part.chain, now) is None:
                self._keep(part.chain, now, ttl)
        for part in parts[: at + 1]:
            if entry := self._live(part.chain, now):
                entry.expires = now + entry.lifetime
        self._sweep(now)
        total = parts[-1].end if parts else 0
        return Charge(read, written["5m"], written["1h"], total - done, total)

    def _longest_prefix(
        self, parts: Sequence[CachedBlock], marks: Sequence[tuple[int, str]], now: float
    ) -> int:
        """The last block of the longest cached prefix that any mark can see, or -1."""
        at = -1
        for i, _ in reversed(marks):
            for j in range(i, max(at, i - self.rules.look_back), -1):
                if self._live(parts[j].chain, now):
                    at = j
                    break
        return at

    def _keep(self, key: bytes, now: float, ttl: str) -> None:
        lifetime = LIFETIMES[ttl]
        self._entries[key] = _Entry(now + lifetime, lifetime)

    def _sweep(self, now: float) -> None:
        if len(self._entries) > KEPT:
            self._entries = {k: e for k, e in self._entries.items() if e.expires >= now}


class AutomaticCache:
    """Entries at every whole step; see the module."""

    def __init__(self, rules: Profile) -> None:
        self.rules = rules
        self._entries: dict[bytes, float] = {}

    def charge(self, parts: Sequence[CachedBlock], now: float, minimum: int) -> Charge:
        read = stored = 0
        for tokens, key in self._steps(parts):
            if tokens < minimum:
                continue
            if self._entries.get(key, -1.0) >= now and read == stored:
                read = tokens
            stored = tokens
            self._entries[key] = now + self.rules.lifetime
        if len(self._entries) > KEPT:
            self._entries = {k: at for k, at in self._entries.items() if at >= now}
        total = parts[-1].end if parts else 0
        return Charge(read, stored - read, 0, total - stored, total)

    def _steps(self, parts: Sequence[CachedBlock]) -> Iterator[tuple[int, bytes]]:
        due = self.rules.step
        for part in parts:
            begins = part.end - part.tokens
            while due <= part.end:
                share = part.data[: (due - begins) * part.width] if part.width else part.data
                yield due, blake2b(part.start + share, digest_size=16).digest()
                due += self.rules.step


# --- Why a prompt's cache could not be used again, as the API's own diagnosis says it.
#
# A request is remembered by digests of its parts under the id of its answer. A later one is
# compared with it in the prompt's order, and the first part that differs is the reason. An expired
# lifetime is no divergence. Only digests are kept, and only the newest.


KEPT_DIAGNOSES = 2_000


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A request's parts, each by a digest."""

    model: str
    options: bytes  # thinking and tool choice
    tools: bytes
    system: bytes
    messages: tuple[bytes, ...]
    marked: int  # tokens up to the last mark


def fingerprint(model: str, speed: str, options: bytes, prompt: PromptBlocks) -> Fingerprint:
    def end(role: str) -> bytes:
        return next((p.chain for p in reversed(prompt.parts) if p.role == role), b"")

    heads = ("tools", "system")
    first = next((n for n, p in enumerate(prompt.parts) if p.role not in heads), 0)
    head = prompt.parts[:first]
    return Fingerprint(
        f"{model} {speed}",
        options,
        end("tools"),
        next((p.chain for p in reversed(head) if p.role == "system"), b""),
        tuple(p.chain for p in prompt.parts[first:]),
        prompt.marked,
    )


class RecentRequests:
    """The newest requests, and the comparison."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Fingerprint] = OrderedDict()

    def keep(self, message: str, found: Fingerprint) -> None:
        self._kept[message] = found
        while len(self._kept) > KEPT_DIAGNOSES:
            self._kept.popitem(last=False)

    def compare(self, previous: str, now: Fingerprint, charge: Charge) -> Object | None:
        """`diagnostics` of a response, or None where nothing diverged."""
        before = self._kept.get(previous)
        if before is None:
            return {"cache_miss_reason": {"type": "previous_message_not_found"}}
        reason = _reason(before, now)
        if reason is None:
            return None
        if reason == "unavailable":
            return {"cache_miss_reason": {"type": reason}}
        missed = max(0, before.marked - charge.read)
        return {"cache_miss_reason": {"type": reason, "cache_missed_input_tokens": missed}}


def _reason(before: Fingerprint, now: Fingerprint) -> str | None:
    if before.model != now.model:
        return "model_changed"
    if before.tools != now.tools:
        return "tools_changed"
    if before.system != now.system:
        return "system_changed"
    if before.options != now.options:
        return "unavailable"
    if now.messages[: len(before.messages)] != before.messages:
        return "messages_changed"
    return None


# --- A request as the model is shown it: a flat row of blocks, with digests and counts.
#
# Tools come first, then the system prompt, then the messages; a string is one text block. Number
# literals and the order inside inputs are part of what must be equal. Nothing here changes a
# request.


EDITS = "cache_edits"


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _number(text: str) -> LiteralNumber:
    found = LiteralNumber(text)
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


def deleted_calls(body: Object) -> frozenset[str]:
    """Calls whose results `cache_edits` blocks took out of the prompt."""
    return frozenset(
        str(call)
        for _, block in flat(body)
        if block.get("type") == EDITS
        for call in cast("list[Json]", block.get("delete") or [])
    )


@dataclass(frozen=True, slots=True)
class PromptBlocks:
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
) -> PromptBlocks:
    """The parts of a request. `salt` keeps caches apart from the first block on,
    `turn_salt` from the first message on."""
    chain, end, gone = salt, 0, deleted_calls(body)
    hidden = _hidden_places(body)
    parts: list[CachedBlock] = []
    top = _automatic_mark(body)
    turned = not turn_salt
    places = list(flat(body))
    for at, (role, block) in enumerate(places):
        if not turned and role not in ("tools", "system"):
            chain, turned = digest(chain + turn_salt), True
        same = digest(rules.same(block))
        tokens = 0 if at in hidden or _is_emptied(block, gone) else rules.tokens(block)
        before = chain
        chain = digest(chain + role.encode() + same)
        end += tokens
        ttl = mark_of(block) or (top[1] if top and at == top[0] else "")
        share = _share(block, before, role) if rules.caching == "automatic" else (b"", b"", 0)
        parts.append(CachedBlock(role, chain, tokens, end, ttl, *share))
    return PromptBlocks(tuple(parts))


def _is_emptied(block: Object, gone: frozenset[str]) -> bool:
    kind = block.get("type")
    return kind == EDITS or (kind == "tool_result" and str(block.get("tool_use_id")) in gone)


def _hidden_places(body: Object) -> set[int]:
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
