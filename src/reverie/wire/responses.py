"""The Responses API, without state on the server.

`body` writes our request in it, `ResponsesAssembler` reads what comes back. Nothing is
stored there (`store: false`), so every item the model made, reasoning included, is kept
and sent back verbatim to the same model; see `native`. The input stands last in the body,
so that a longer conversation begins with the bytes of a shorter one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Literal

from reverie.errors import InvalidMessage
from reverie.light import dataclass
from reverie.transcript.blocks import (
    Block,
    Json,
    Object,
    block,
    dump,
    elements,
    members,
    parse,
    text_block,
)
from reverie.wire.failures import from_event
from reverie.wire.openai import (
    CHOICES,
    arguments,
    common_options,
    conversation,
    effort,
    file_of,
    hosted_tools,
    image_url,
    native_block,
    own_options,
    reasons,
    result_images,
    result_text,
    system_text,
    tools,
    unique_ids,
    usage_of,
    words,
)
from reverie.wire.reply import Delta, Reply
from reverie.wire.request import Request
from reverie.wire.stream import cut_call, input_text, was_cut

PROVIDER = "openai-responses"
PATH = "/responses"
ENDINGS = ("response.completed", "response.incomplete")
STOPS = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}
_SHOWN: Mapping[str, Literal["text", "thinking", "tool"]] = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "text",
    "response.reasoning_text.delta": "thinking",
    "response.reasoning_summary_text.delta": "thinking",
    "response.function_call_arguments.delta": "tool",
}


# --- what is sent


def body(request: Request, *, key: str, streaming: bool) -> str:
    """The request as the Responses API reads it."""
    options = members(request.head.options)
    parts = {"model": dump(request.head.model)}
    system = system_text(request)
    if system:
        parts["instructions"] = dump(system)
    if "max_tokens" in options:
        parts["max_output_tokens"] = options["max_tokens"][0]
    parts.update(common_options(options))
    if effort(options):
        parts["reasoning"] = dump({"effort": effort(options)})
    found = [f'{{"type":"function",{_strictly(rest)}}}' for _, rest in tools(request)]
    found += hosted_tools(request)
    if found:
        parts["tools"] = f"[{','.join(found)}]"
        parts.update(_choice(options.get("tool_choice", ("", None))[1]))
    parts["store"] = "false"
    if reasons(request.head.model):
        parts["include"] = '["reasoning.encrypted_content"]'
    parts["prompt_cache_key"] = dump(key)
    if streaming:
        parts["stream"] = "true"
    parts.update(own_options(options))
    parts["input"] = f"[{','.join(_items(request))}]"
    return "{" + ",".join(f"{dump(k)}:{v}" for k, v in parts.items()) + "}"


def _strictly(rest: str) -> str:
    """A function's members; the API would be strict where nothing is said."""
    return rest if rest.endswith('"strict":true') else f'{rest},"strict":false'


def _choice(choice: Json) -> Iterator[tuple[str, str]]:
    if not isinstance(choice, dict):
        return
    kind = str(choice.get("type"))
    if kind in CHOICES:
        yield "tool_choice", CHOICES[kind]
    elif kind == "tool":
        yield "tool_choice", dump({"type": "function", "name": choice.get("name")})


def _items(request: Request) -> Iterator[str]:
    yield from conversation(request, PROVIDER, _user, _assistant)


def _user(blocks: Sequence[Block], theirs: Mapping[str, str]) -> Iterator[str]:
    """Results first, each an item of its own, then one message with all the rest."""
    parts: list[str] = []
    for one in blocks:
        if one.type == "tool_result":
            call = one.call
            named = theirs.get(call, call)
            yield (
                f'{{"type":"function_call_output","call_id":{dump(named)},"output":{_output(one)}}}'
            )
        else:
            parts += _part(one)
    if parts:
        yield f'{{"type":"message","role":"user","content":[{",".join(parts)}]}}'


def _output(one: Block) -> str:
    text, pictures = result_text(one), result_images(one)
    if not pictures:
        return dump(text)
    said: list[Object] = [{"type": "input_text", "text": text}] if text else []
    return dump([*said, *({"type": "input_image", "image_url": url} for url in pictures)])


def _part(one: Block) -> list[str]:
    if one.type == "image":
        url = image_url(one.value.get("source"))
        return [dump({"type": "input_image", "image_url": url})] if url else []
    file = file_of(one) if one.type == "document" else None
    if file is not None:
        return [dump({"type": "input_file", "filename": file[0], "file_data": file[1]})]
    said = words(one)
    return [dump({"type": "input_text", "text": said})] if said else []


def _assistant(blocks: Sequence[Block]) -> Iterator[str]:
    for one in blocks:
        if one.type == "tool_use":
            call = {"call_id": one.call, "name": one.get("name"), "arguments": arguments(one)}
            yield dump({"type": "function_call", **call})
        elif words(one):
            text = {"type": "output_text", "text": words(one)}
            yield dump({"type": "message", "role": "assistant", "content": [text]})


# --- what comes back


@dataclass(slots=True)
class ResponsesAssembler:
    """An answer on its way: the items that are finished, and how it ended."""

    request: Request | None  # what it answers; None leaves the names of its calls as they are
    where: str
    items: dict[int, str] = field(default_factory=dict[int, str])
    response: str = ""  # the last event's, once it has come

    @property
    def done(self) -> bool:
        return bool(self.response)

    def take(self, data: str) -> Delta | None:
        event = members(data)
        kind = str(event["type"][1]) if "type" in event else ""
        if kind == "error" or (not kind and "error" in event):
            raise from_event(parse(data), self.where)
        if kind == "response.failed":
            raise self._failure(event)
        if kind in ENDINGS and "response" in event:
            self.response = event["response"][0]
        elif kind == "response.output_item.done" and "item" in event:
            at = event.get("output_index", ("", None))[1]
            self.items[at if isinstance(at, int) else len(self.items)] = event["item"][0]
        elif kind in _SHOWN and "delta" in event:
            return Delta(_SHOWN[kind], str(event["delta"][1]))
        return None

    def _failure(self, event: Mapping[str, tuple[str, Json]]) -> Exception:
        response = event.get("response", ("", None))[1]
        about = response.get("error") if isinstance(response, dict) else None
        return from_event({"error": about or {}}, self.where)

    def ended(self) -> bool:
        return False

    def reply(self) -> Reply:
        return self.read(self.response)

    def read(self, text: str) -> Reply:
        response = members(text)
        about = {k: v for k, (_, v) in response.items()}
        if about.get("status") in ("failed", "cancelled"):
            raise self._failure({"response": (text, about)})
        if not isinstance(about.get("output"), list):
            raise InvalidMessage("it has no output")
        items = [raw for raw, _ in elements(response["output"][0])]
        items = items or [self.items[at] for at in sorted(self.items)]
        stop = _stop(about, items)
        blocks = blocks_of(items, stop, self.request)
        called = any(b.type == "tool_use" for b in blocks)
        return Reply(
            blocks=blocks,
            usage=usage_of(about.get("usage"), "input_tokens", "output_tokens"),
            stop_reason="tool_use" if called and stop == "end_turn" else stop,
            model=str(about.get("model") or ""),
            provider=PROVIDER,
            message_id=str(about.get("id") or ""),
            diagnostics=response.get("prompt_cache_diagnostics", ("null", None))[0],
        )


def _stop(response: Object, items: Sequence[str]) -> str:
    if response.get("status") != "incomplete":
        return "refusal" if any(map(_refuses, map(parse, items))) else "end_turn"
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    return STOPS.get(str(reason), str(reason or "max_tokens"))


def _refuses(item: Json) -> bool:
    content = item.get("content") if isinstance(item, dict) else None
    parts = content if isinstance(content, list) else []
    return any(isinstance(p, dict) and p.get("type") == "refusal" for p in parts)


def blocks_of(items: Sequence[str], stop: str, request: Request | None) -> tuple[Block, ...]:
    """Items in our blocks, and they themselves behind them, unless the answer was cut."""
    values = [v for v in map(parse, items) if isinstance(v, dict)]
    calls = [v for v in values if v.get("type") == "function_call"]
    theirs = [str(v.get("call_id") or "") for v in calls]
    ours = unique_ids(theirs, request)
    names = iter(ours)
    blocks: list[Block] = []
    for value in values:
        if value.get("type") == "message":
            blocks += [text_block(text) for text in _texts(value) if text.strip()]
        elif value.get("type") == "function_call":
            last = stop if value is values[-1] else ""
            blocks.append(_tool_use(value, next(names), last))
    clear = len(set(theirs)) == len(theirs) and all(theirs)
    if items and clear and stop == "end_turn":
        ids = {a: b for a, b in zip(ours, theirs, strict=True) if a != b}
        model = request.head.model if request else ""
        blocks.append(native_block(PROVIDER, model, blocks, items, ids))
    return tuple(blocks)


def _texts(item: Object) -> Iterator[str]:
    found = item.get("content")
    for part in found if isinstance(found, list) else []:
        text = (part.get("text") or part.get("refusal")) if isinstance(part, dict) else None
        if isinstance(text, str):
            yield text


def _tool_use(item: Object, name: str, stop: str) -> Block:
    tool, given = str(item.get("name") or ""), item.get("arguments")
    written = given if isinstance(given, str) else dump(given or {})
    if was_cut(written, stop) or item.get("status") == "incomplete":
        return cut_call(tool, written)
    head = dump({"type": "tool_use", "id": name, "name": tool})
    return block(f'{head[:-1]},"input":{input_text(written)}}}')
