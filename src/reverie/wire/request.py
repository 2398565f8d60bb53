"""The request: what is sent, the only place that builds it, and what clients of three APIs take.

`render(view)` is a pure projection; the marks are put on last and are no part of what
is compared. A request shares its messages with the view it came from. Nothing here
re-serialises a block: the body is joined from the texts as they were received.

`client.messages.create(**request.anthropic())`, `client.responses.create(**request.responses())`,
`client.chat.completions.create(**request.openai())`: each can be sent as it is. What a client has
no name for goes into `extra_headers` and `extra_body`, which every version of the SDKs takes.
The bytes that enter the provider's prompt cache are those that our own connection would send.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from reverie.light import dataclass, pattern
from reverie.text.format import first_byte
from reverie.transcript.blocks import (
    Object,
    add_member,
    dump,
    elements,
    join_members,
    members,
    parse,
)
from reverie.transcript.messages import Message, bare, link, message_text
from reverie.transcript.records import HeadSet, Mark, Parts, Ttl
from reverie.transcript.tasks import MAIN, Task
from reverie.transcript.view import Trail, View

if TYPE_CHECKING:
    from reverie.wire import request as requests  # noqa: PLW0406

LONG: Ttl = "1h"
SHORT: Ttl = "5m"
NO_HEAD = HeadSet("")
NOWHERE = -1  # no block
Marked: TypeAlias = "dict[tuple[str, int], Ttl]"
LONG_BETA = "context-1m-2025-08-07"
MANAGEMENT_BETA = "context-management-2025-06-27"
COMPACTION_BETA = "compact-2026-09-04"
BINDING_BETA = "thinking-binding-controls-2026-08-01"
OURS = frozenset({"betas", "openai", "prompt_cache_key", "stream"})
"""Options that are for us, and no part of a request to the Messages API."""
_NAMED = frozenset(
    {
        *("model", "max_tokens", "messages", "system", "tools", "tool_choice", "metadata"),
        *("stop_sequences", "temperature", "top_p", "top_k", "thinking", "service_tier"),
    }
)
UNSTREAMED, OLDEST = 21_000, 8_192
"""Output tokens at most where nobody says how many: for more the client wants a stream."""
_OLDEST = pattern(r"claude-(opus-4(-[01]\b|@|-2025|$)|4-opus)")


@dataclass(frozen=True, slots=True)
class Difference:
    """Where one request leaves another: the part, the block in it, the first byte."""

    part: str
    block: int = 0
    byte: int = 0
    before: str = ""
    after: str = ""


@dataclass(slots=True, unsafe_hash=True)
class RequestBytes:
    """What a request holds, as bytes that can be compared and extended. Never changed once
    it is rendered; not frozen, since a frozen value takes longer to make."""

    head: HeadSet
    closed: Trail[Message]
    tail: tuple[Message, ...]
    marks: tuple[Mark, ...] = field(default=(), compare=False)
    source: str = field(default="main", compare=False)
    task: Task = field(default=MAIN, compare=False)
    last: str = field(default="", compare=False)  # the entry it was rendered at
    tokens: int = field(default=0, compare=False)  # the canonical count

    def messages(self) -> Iterator[Message]:
        yield from self.closed
        yield from self.tail

    @property
    def count(self) -> int:
        return self.closed.length + len(self.tail)

    def at(self, index: int) -> Message:
        behind = index - self.closed.length
        return self.tail[behind] if behind >= 0 else self.closed[index]

    @property
    def newest(self) -> Message | None:
        return self.tail[-1] if self.tail else self.closed.last

    @property
    def blocks(self) -> int:
        newest = self.newest
        return newest.end if newest else 0

    def body(self, *, marked: bool = True) -> str:
        """The request as JSON text, in the shape of the Messages API."""
        marks: Marked = {(m.part, m.block): m.ttl for m in self.marks} if marked else {}
        parts = [f'"model":{dump(self.head.model)}']
        parts += [f"{dump(k)}:{raw}" for k, raw in _object(self.head.options)]
        for part, array in (("system", self.head.system), ("tools", self.head.tools)):
            texts = _array(array)
            if texts:
                parts.append(f'"{part}":[{",".join(_with_marks(texts, part, 0, marks))}]')
        parts.append(f'"messages":[{",".join(self._texts(marks))}]')
        return "{" + ",".join(parts) + "}"

    def _texts(self, marks: Marked) -> Iterator[str]:
        marked = [at for part, at in marks if part == "messages"]
        for message in self.messages():
            if any(message.start <= at < message.end for at in marked):
                texts = [p.block.raw for p in message.pieces]
                texts = _with_marks(texts, "messages", message.start, marks)
                yield message_text(message.role, texts)
            else:
                yield message.text

    def parts(self) -> Parts:
        """A digest for each part that enters the provider's cache key."""
        newest = self.newest
        return Parts(
            model=self.head.model,
            options=digest(self.head.options),
            tools=digest(self.head.tools),
            system=digest(self.head.system),
            messages=newest.chain.hex() if newest else "",
            blocks=newest.end if newest else 0,
        )

    def extends(self, earlier: RequestBytes) -> bool:
        """Whether `earlier` reappears whole at the start of this request."""
        return self.difference(earlier) is None

    def difference(self, earlier: RequestBytes) -> Difference | None:
        """The first place where `earlier` does not reappear, or None."""
        mine, theirs = self.head, earlier.head
        for part in ("model", "options", "tools", "system"):
            before, after = str(getattr(theirs, part)), str(getattr(mine, part))
            if before != after:
                return _text_difference(part, before, after)
        if chain_at(self, earlier.blocks) == chain_at(earlier, earlier.blocks):
            return None
        return _block_difference(earlier, self)


@dataclass(slots=True, unsafe_hash=True)
class Request(RequestBytes):
    """One request to a model. Never changed once it is made."""

    limit: int = field(default=0, compare=False)  # output tokens, where the options name none

    @classmethod
    def of(cls, request: requests.Request, limit: int = 0) -> Request:
        """The same request, as this class."""
        return replace(request, limit=limit)

    def anthropic(self) -> dict[str, Any]:
        """The arguments of `client.messages.create` and `client.messages.stream`."""
        from reverie.wire.openai import without_foreign

        sent = without_foreign(self)
        options = {k: raw for k, (raw, _) in members(self.head.options).items() if k not in OURS}
        options.setdefault("max_tokens", str(self._without_stream()))
        whole = _arguments(with_model_name(sent, options).body())
        found = {key: value for key, value in whole.items() if key in _NAMED}
        other = {key: value for key, value in whole.items() if key not in _NAMED}
        if other:
            found["extra_body"] = other
        betas = ",".join(betas_of(sent))
        if betas:
            found["extra_headers"] = {"anthropic-beta": betas}
        return found

    def openai(self) -> dict[str, Any]:
        """The arguments of `client.chat.completions.create`."""
        return self.chat(official=True)

    def chat(self, *, official: bool) -> dict[str, Any]:
        """The same for a server that is not OpenAI's own, where `official` is false."""
        from reverie.wire import chat
        from reverie.wire.openai import cache_key

        sent, key = self._with_limit(), cache_key(self)
        return _arguments(chat.body(sent, key=key, streaming=False, official=official))

    def responses(self) -> dict[str, Any]:
        """The arguments of `client.responses.create`."""
        from reverie.wire import responses
        from reverie.wire.openai import cache_key

        return _arguments(responses.body(self._with_limit(), key=cache_key(self), streaming=False))

    def value(self) -> Object:
        """Another name of `anthropic()`, until 1.0."""
        return self.anthropic()

    def _without_stream(self) -> int:
        most = OLDEST if _OLDEST.search(self.head.model) else UNSTREAMED
        return min(self.limit or most, most)

    def _with_limit(self) -> Request:
        options = self.head.options
        if self.limit and "max_tokens" not in members(options):
            options = add_member(options, "max_tokens", str(self.limit))
        return with_model_name(self, {k: raw for k, (raw, _) in members(options).items()})


def _arguments(text: str) -> dict[str, Any]:
    return cast("dict[str, Any]", parse(text))


def betas_of(request: Request) -> tuple[str, ...]:
    """The betas a request's options name, and those that what it carries is refused without."""
    options = {k: value for k, (_, value) in members(request.head.options).items()}
    given = options.get("betas")
    names = [str(b) for b in given] if isinstance(given, list) else []
    if request.head.model != bare(request.head.model):
        names.append(LONG_BETA)
    if "context_management" in options:
        names.append(MANAGEMENT_BETA)
    blocks = (p.block for m in request.messages() for p in m.pieces)
    if "compaction" in options or any(b.type == "compaction" for b in blocks):
        names.append(COMPACTION_BETA)
    thinking = options.get("thinking")
    if isinstance(thinking, dict) and "block_binding" in thinking:
        names.append(BINDING_BETA)
    return tuple(dict.fromkeys(names))


def with_model_name(request: Request, options: dict[str, str]) -> Request:
    """The request with these options and the model's name as the provider knows it."""
    head = replace(request.head, model=bare(request.head.model), options=join_members(options))
    return replace(request, head=head)


@lru_cache(maxsize=64)
def digest(text: str) -> str:
    """Of a part of the head: the same few texts, request after request."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


def chain_at(request: RequestBytes, blocks: int) -> bytes:
    """The chained digest of a request's first `blocks` message blocks."""
    if blocks > request.blocks:
        return b"past the end"
    if not blocks:
        return b""
    at = _holding(request, blocks - 1)
    chain = request.at(at - 1).chain if at else b""
    message = request.at(at)
    for piece in message.pieces[: blocks - message.start]:
        chain = link(chain, message.role, piece.block)
    return chain


@lru_cache(maxsize=64)
def _array(text: str) -> tuple[str, ...]:
    return tuple(raw for raw, _ in elements(text))


@lru_cache(maxsize=64)
def _object(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((key, raw) for key, (raw, _) in members(text).items())


def _text_difference(part: str, before: str, after: str) -> Difference:
    byte = first_byte(before.encode(), after.encode())
    return Difference(part, 0, byte, before[:80], after[:80])


def _block_difference(before: RequestBytes, after: RequestBytes) -> Difference:
    pairs = zip(_flat(before), [*_flat(after), ("", "")], strict=False)
    for at, ((role, raw), (new_role, new_raw)) in enumerate(pairs):
        if (role, raw) != (new_role, new_raw):
            return Difference(
                "messages", at, first_byte(raw.encode(), new_raw.encode()), raw[:80], new_raw[:80]
            )
    return Difference("messages", after.blocks)


def _flat(request: RequestBytes) -> Iterator[tuple[str, str]]:
    for message in request.messages():
        for piece in message.pieces:
            yield message.role, piece.block.raw


def _with_marks(texts: Sequence[str], part: str, start: int, marks: Marked) -> list[str]:
    out = list(texts)
    for (marked, at), ttl in marks.items():
        if marked == part and start <= at < start + len(out):
            control = f'{{"type":"ephemeral","ttl":"{ttl}"}}'
            out[at - start] = add_member(out[at - start], "cache_control", control)
    return out


def render(view: View, source: str = "main", task: Task = MAIN) -> Request:
    """What would be sent now."""
    request = Request(
        view.head or NO_HEAD, view.closed, view.tail(), (), source, task, view.leaf, view.tokens
    )
    # a fork's first request stands on its parent's marks: it reads and does not write
    first_of_a_fork = view.base is not None and view.sent is None
    request.marks = view.marks if first_of_a_fork else place_marks(view, request)
    return request


def so_far(view: View) -> Request:
    """The conversation as it stands, calls without their results included: what every fork
    of it begins with. Not a request to send by itself."""
    return replace(render(view), tail=view.tail(complete=False))


def place_marks(view: View, request: Request) -> tuple[Mark, ...]:
    """End of the head, end of the sealed part, the last request's last mark, the last block.
    A long lifetime costs more to write: the head has it once there is a sealed part that is
    kept as long, so that a short session never costs more than one without these marks."""
    head, newest = request.head, request.newest
    marks = _head_mark(head.system, head.tools, LONG if view.sealed else SHORT)
    if newest is None:
        return marks
    blocks = newest.end
    last = blocks - 1
    if not newest.pieces[-1].block.markable:
        last = _markable(request, last)
    sealed = _sealed_end(view, request) if view.sealed else NOWHERE
    places = sorted({sealed, _last_mark(view), last})
    ours = [
        _mark(at, LONG if at <= sealed else SHORT)  # a long lifetime not behind a short one
        for at in places
        if NOWHERE < at < blocks
    ]
    return (*marks, *ours)


@lru_cache(maxsize=64)
def _head_mark(system: str, tools: str, ttl: Ttl) -> tuple[Mark, ...]:
    if system != "[]":
        return (Mark("system", len(_array(system)) - 1, ttl),)
    return (Mark("tools", len(_array(tools)) - 1, ttl),) if tools != "[]" else ()


@lru_cache(maxsize=256)
def _mark(block: int, ttl: Ttl) -> Mark:
    """Most stand where one stood in the last request."""
    return Mark("messages", block, ttl)


def _last_mark(view: View) -> int:
    """Where the last answered request had its last mark."""
    last = view.marks[-1] if view.marks else None
    return last.block if last and last.part == "messages" else NOWHERE


def _markable(request: Request, at: int) -> int:
    """The last block at or before `at` that takes a mark."""
    index = _holding(request, at) if request.count else -1
    while index >= 0:
        message = request.at(index)
        last = message.end - 1
        for back, piece in enumerate(reversed(message.pieces)):
            if last - back <= at and piece.block.markable:
                return last - back
        index -= 1
    return NOWHERE


def _holding(request: RequestBytes, block: int) -> int:
    """The index of the message that holds a block, or would hold it."""
    low, high = 0, request.count - 1
    if high and request.at(high - 1).end <= block:
        return high
    while low < high:
        middle = (low + high) // 2
        if request.at(middle).end <= block:
            low = middle + 1
        else:
            high = middle
    return low


def _sealed_end(view: View, request: Request) -> int:
    """The last block of what a seal or a summary put in the place of older messages. Most
    often it stands right before the live items, and their count tells where."""
    if view.sealed_last:
        return view.live_block - 1
    return _sealed_anywhere(request, view.sealed)


def _sealed_anywhere(request: Request, source: str) -> int:
    end = NOWHERE
    for index in range(request.count):
        message = request.at(index)
        at = message.end
        for piece in reversed(message.pieces):
            at -= 1
            if piece.source == source:
                end = at if piece.block.markable else _markable(request, at)
                break
        else:
            if end != NOWHERE:
                break
    return end
