"""What both OpenAI formats share, and native items.

What both OpenAI wire formats share: how our request's parts read in theirs.

Pure functions, the same bytes for the same input, and block by block: what is added to a
conversation never changes how the blocks before it are written. Texts that carry numbers
(tool schemas, inputs, native items) are copied, not read. Blocks that mean nothing there
are left out: thinking, and whatever has no words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import groupby

from reverie.light import dataclass
from reverie.transcript.blocks import Block, Json, Object, block, dump, elements, members, text_of
from reverie.transcript.messages import Item, Message, SentBlock, family, message
from reverie.transcript.records import Mark, Usage
from reverie.transcript.view import Trail
from reverie.wire.request import Request

EFFORTS = {"max": "xhigh"}
CHOICES = {"auto": '"auto"', "any": '"required"', "none": '"none"'}
COPIED = ("temperature", "top_p", "service_tier", "metadata")
REASONING = re.compile(r"gpt-([5-9]|\d\d)|o[1-9](-|$)|codex")


def system_text(request: Request) -> str:
    """The system prompt as one text."""
    texts = (text_of(value) for _, value in elements(request.head.system))
    return "\n\n".join(text for text in texts if text)


def tools(request: Request) -> Iterator[tuple[str, str]]:
    """Name and the rest of each tool a client runs: the members of a function's object."""
    for raw, value in elements(request.head.tools):
        parts = members(raw)
        if isinstance(value, dict) and "name" in value and value.get("type", "custom") == "custom":
            found = [f'"name":{parts["name"][0]}']
            if "description" in parts:
                found.append(f'"description":{parts["description"][0]}')
            schema = parts["input_schema"][0] if "input_schema" in parts else '{"type":"object"}'
            strict = ['"strict":true'] if value.get("strict") is True else []
            yield str(value["name"]), ",".join([*found, f'"parameters":{schema}', *strict])


def hosted_tools(request: Request) -> Iterator[str]:
    """Tools without a name: those that a provider of this kind runs itself."""
    for raw, value in elements(request.head.tools):
        if isinstance(value, dict) and "name" not in value and value.get("type") != "function":
            yield raw


def common_options(options: Mapping[str, tuple[str, Json]]) -> Iterator[tuple[str, str]]:
    """Options that both formats write the same way."""
    for key in COPIED:
        if key in options:
            yield key, options[key][0]
    choice = options.get("tool_choice", ("", None))[1]
    if isinstance(choice, dict) and choice.get("disable_parallel_tool_use") is True:
        yield "parallel_tool_calls", "false"


def effort(options: Mapping[str, tuple[str, Json]]) -> str:
    """How hard the model is asked to think, or the empty string."""
    found = options.get("output_config", ("", None))[1]
    asked = found.get("effort") if isinstance(found, dict) else None
    return EFFORTS.get(asked, asked) if isinstance(asked, str) else ""


def own_options(options: Mapping[str, tuple[str, Json]]) -> Iterator[tuple[str, str]]:
    """Members that the options hold under `openai`: copied as they are."""
    if "openai" in options and isinstance(options["openai"][1], dict):
        yield from ((key, raw) for key, (raw, _) in members(options["openai"][0]).items())


def cache_key(request: Request, given: str = "") -> str:
    """One key for a session and its forks: given, or made from what they all begin with."""
    if given:
        return given
    named = members(request.head.options).get("prompt_cache_key", ("", None))[1]
    if isinstance(named, str) and named:
        return named
    first = request.at(0).pieces[0].block.raw if request.count else ""
    head = request.head
    beginning = dump([head.model, head.system, head.tools, first])
    return "reverie-" + blake2b(beginning.encode(), digest_size=12).hexdigest()


def image_url(source: Json) -> str:
    """The address of a picture, or its bytes as one; empty where there is neither."""
    if not isinstance(source, dict):
        return ""
    if source.get("type") == "base64":
        return f"data:{source.get('media_type', 'image/png')};base64,{source.get('data', '')}"
    url = source.get("url")
    return url if isinstance(url, str) else ""


def content(value: Json) -> list[Object]:
    """A message's or result's content as a list of blocks."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def result_text(block: Block) -> str:
    """The words of a tool result."""
    parts = (text_of(v) for v in content(block.value.get("content")))
    return "\n".join(part for part in parts if part)


def result_images(block: Block) -> list[str]:
    """The pictures of a tool result, as addresses."""
    found = content(block.value.get("content"))
    urls = (image_url(v.get("source")) for v in found if v.get("type") == "image")
    return [url for url in urls if url]


def arguments(block: Block) -> str:
    """A call's input as the text the model wrote."""
    return members(block.raw).get("input", ("{}", None))[0]


def file_of(block: Block) -> tuple[str, str] | None:
    """Name and data of a document that is a file; None where it is text or elsewhere."""
    source = block.value.get("source")
    if not isinstance(source, dict) or source.get("type") != "base64":
        return None
    kind = source.get("media_type", "application/pdf")
    return block.get("title") or "document.pdf", f"data:{kind};base64,{source.get('data', '')}"


def words(block: Block) -> str:
    """What of any other block can be said in words."""
    source = block.value.get("source")
    if block.type == "document" and isinstance(source, dict):
        data = source.get("data")
        if source.get("type") == "text" and isinstance(data, str):
            return data
        return text_of(source.get("content"))
    if block.type == "compaction":
        return block.get("content")
    return "" if block.thinking else block.text


def usage_of(whole: Json, prompt: str, answer: str) -> Usage | None:
    """Usage in our form: what was cached is inside their count of the input."""
    if not isinstance(whole, dict):
        return None
    details = whole.get(f"{prompt}_details")
    found = details if isinstance(details, dict) else {}
    total = number(whole.get(prompt))
    read = min(total, number(found.get("cached_tokens")))
    written = min(total - read, number(found.get("cache_write_tokens")))
    return Usage(total - read - written, read, written, number(whole.get(answer)))


def number(value: Json) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def member(key: str, value: object) -> str:
    return f"{dump(key)}:{dump(value)}"


def reasons(model: str) -> bool:
    """Whether an OpenAI model answers with reasoning items."""
    return REASONING.match(family(model)) is not None


# --- A provider's own items, carried beside our blocks and sent back to it alone.
#
# What OpenAI-style providers answer has parts that our blocks cannot hold (reasoning items, item
# ids, the server's names for calls). They travel in one more block at the end of the assistant's
# message:
#
#     {"type": "openai_items", "provider": …, "model": …, "of": …, "ids": {…}, "items": […]}
#
# The same provider and model get the items back verbatim, as long as the message's other blocks
# are still those the items were received with (`of` is their digest); every other provider and
# model leaves the block out and reads the others. `foreign_blocks` is the one place that says
# which blocks a provider must leave out.
#
# Names of calls: a server may use a name again in a later round, or leave it empty, but a
# transcript knows a call by its name. So at receipt a name that is short, strange or already used
# gets an ending made from the request it answers; `ids` says what the server called it, and it is
# called that again when the items go back.


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
        pieces: list[SentBlock] = []
        for n, piece in enumerate(old.pieces):
            if not foreign_blocks(piece.block):
                pieces.append(piece)
                end += 1
            places[old.start + n] = end - 1
        if pieces:
            run = [Item(pieces[0].source, old.role, tuple(pieces))]
            kept.append(message(run, kept[-1] if kept else None))
    return replace(request, closed=Trail(kept), tail=(), marks=_move_marks(request.marks, places))


def _move_marks(marks: Sequence[Mark], places: Mapping[int, int]) -> tuple[Mark, ...]:
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
