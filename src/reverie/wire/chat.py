"""Chat completions: the format of OpenAI's older API and of most local servers.

`body` writes our request in it, `ChatAssembler` reads what comes back. The messages stand
last in the body, so that a longer conversation begins with the bytes of a shorter one.
A message that says more than our blocks can (reasoning, annotations, the server's own
names of calls) is kept and sent back verbatim to the same model; see `native`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

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
from reverie.transcript.records import Usage
from reverie.wire.failures import from_event
from reverie.wire.openai import (
    CHOICES,
    arguments,
    common_options,
    conversation,
    effort,
    file_of,
    image_url,
    member,
    native_block,
    own_options,
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
from reverie.wire.stream import PartialObject, cut_call, input_text, was_cut

PROVIDER = "openai-chat"
PATH = "/chat/completions"
STOPS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}
_NOTHING: tuple[Json, ...] = (None, [], "")


# --- what is sent


def body(request: Request, *, key: str, streaming: bool, official: bool) -> str:
    """The request as chat completions read it."""
    options = members(request.head.options)
    parts = {"model": dump(request.head.model)}
    limit = "max_completion_tokens" if official else "max_tokens"
    if "max_tokens" in options:
        parts[limit] = options["max_tokens"][0]
    if "stop_sequences" in options:
        parts["stop"] = options["stop_sequences"][0]
    parts.update(common_options(options))
    if effort(options):
        parts["reasoning_effort"] = dump(effort(options))
    found = [f'{{"type":"function","function":{{{rest}}}}}' for _, rest in tools(request)]
    if found:
        parts["tools"] = f"[{','.join(found)}]"
        parts.update(_choice(options.get("tool_choice", ("", None))[1]))
    parts["prompt_cache_key"] = dump(key)
    if streaming:
        parts["stream"] = "true"
        parts["stream_options"] = '{"include_usage":true}'
    parts.update(own_options(options))
    parts["messages"] = f"[{','.join(_messages(request))}]"
    return "{" + ",".join(f"{dump(k)}:{v}" for k, v in parts.items()) + "}"


def _choice(choice: Json) -> Iterator[tuple[str, str]]:
    if not isinstance(choice, dict):
        return
    kind = str(choice.get("type"))
    if kind in CHOICES:
        yield "tool_choice", CHOICES[kind]
    elif kind == "tool":
        named = {"type": "function", "function": {"name": choice.get("name")}}
        yield "tool_choice", dump(named)


def _messages(request: Request) -> Iterator[str]:
    system = system_text(request)
    if system:
        yield dump({"role": "system", "content": system})
    yield from conversation(request, PROVIDER, _user, _assistant)


def _user(blocks: Sequence[Block], theirs: dict[str, str]) -> Iterator[str]:
    """Results first, each a message of its own, then one message with all the rest."""
    parts: list[str] = []
    for one in blocks:
        if one.type == "tool_result":
            call = one.call
            yield dump(
                {
                    "role": "tool",
                    "tool_call_id": theirs.get(call, call),
                    "content": result_text(one),
                }
            )
            parts += [_picture(url) for url in result_images(one)]
        else:
            parts += _part(one)
    if parts:
        yield f'{{"role":"user","content":[{",".join(parts)}]}}'


def _picture(url: str) -> str:
    return dump({"type": "image_url", "image_url": {"url": url}})


def _part(one: Block) -> list[str]:
    if one.type == "image":
        url = image_url(one.value.get("source"))
        return [_picture(url)] if url else []
    file = file_of(one) if one.type == "document" else None
    if file is not None:
        return [dump({"type": "file", "file": {"filename": file[0], "file_data": file[1]}})]
    said = words(one)
    return [dump({"type": "text", "text": said})] if said else []


def _assistant(blocks: Sequence[Block]) -> list[str]:
    said = "".join(words(b) for b in blocks if b.type != "tool_use")
    calls = [b for b in blocks if b.type == "tool_use"]
    if not said and not calls:
        return []
    parts = ['"role":"assistant"', member("content", said or None)]
    if calls:
        parts.append(f'"tool_calls":[{",".join(_call(b) for b in calls)}]')
    return ["{" + ",".join(parts) + "}"]


def _call(one: Block) -> str:
    function = {"name": one.get("name"), "arguments": arguments(one)}
    return dump({"id": one.call, "type": "function", "function": function})


# --- what comes back


@dataclass(slots=True)
class ChatAssembler:
    """An answer on its way. Only the first choice counts: no more are asked for."""

    request: Request | None  # what it answers; None leaves the names of its calls as they are
    where: str
    message: PartialObject = field(default_factory=lambda: PartialObject({"role": ['"assistant"']}))
    calls: list[tuple[Json, PartialObject, PartialObject]] = field(
        default_factory=list[tuple[Json, PartialObject, PartialObject]]
    )
    finish: str = ""
    id: str = ""
    model: str = ""
    usage: Usage | None = None
    done: bool = False

    def take(self, data: str) -> Delta | None:
        if data.strip() == "[DONE]":
            self.done = True
            return None
        value = parse(data)
        if not isinstance(value, dict):
            raise InvalidMessage("an event is not an object")
        if value.get("error"):
            raise from_event(value, self.where)
        self._head(value)
        choices = elements(members(data)["choices"][0]) if value.get("choices") else []
        for raw, choice in choices:
            if isinstance(choice, dict) and choice.get("index", 0) == 0:
                self.finish = str(choice.get("finish_reason") or self.finish)
                if isinstance(choice.get("delta"), dict):
                    return self._delta(members(raw)["delta"][0])
        return None

    def _head(self, value: Object) -> None:
        self.id = str(value.get("id") or self.id)
        self.model = str(value.get("model") or self.model)
        self.usage = usage_of(value.get("usage"), "prompt_tokens", "completion_tokens") or (
            self.usage
        )

    def _delta(self, raw: str) -> Delta | None:
        delta = members(raw)
        self.message.take(raw, leave=("role", "tool_calls"))
        shown = ""
        calls = delta.get("tool_calls", ("", None))
        for text, call in elements(calls[0]) if isinstance(calls[1], list) else []:
            if isinstance(call, dict):
                shown += self._call(text, call)
        if shown:
            return Delta("tool", shown)
        for key in ("content", "reasoning_content", "reasoning"):
            found = delta.get(key, ("", None))[1]
            if isinstance(found, str) and found:
                return Delta("text" if key == "content" else "thinking", found)
        return None

    def _call(self, raw: str, call: Object) -> str:
        index, named = call.get("index"), call.get("id")
        place = next((c for c in self.calls if index is not None and c[0] == index), None)
        if place is None and index is None and not named and self.calls:
            place = self.calls[-1]
        if place is None:
            place = (index, PartialObject(), PartialObject())
            self.calls.append(place)
        _, whole, function = place
        for key, (text, value) in members(raw).items():
            if key in ("id", "type"):
                if value and key not in whole.parts:
                    whole.parts[key] = [text]
            elif key not in ("index", "function"):
                whole.add(key, text)
        written = ""
        found = members(raw).get("function", ("{}", None))
        for key, (text, value) in members(found[0]).items() if found[1] else ():
            if key == "arguments":
                written = value if isinstance(value, str) else text
                function.add(key, dump(written))
            elif value and key not in function.parts:
                function.parts[key] = [text]
        return written

    def ended(self) -> bool:
        return bool(self.finish)  # some servers leave out the last line

    def reply(self) -> Reply:
        if not self.finish:
            raise InvalidMessage("it does not say why it ended")
        calls: list[str] = []
        for _, whole, function in self.calls:
            whole.parts["function"] = [function.text()]
            calls.append(whole.text())
        if calls:
            self.message.parts["tool_calls"] = [f"[{','.join(calls)}]"]
        return self._reply(self.message.text())

    def read(self, text: str) -> Reply:
        value = parse(text)
        if not isinstance(value, dict) or not value.get("choices"):
            raise InvalidMessage("it has no choices")
        self._head(value)
        first = members(elements(members(text)["choices"][0])[0][0])
        self.finish = str(first.get("finish_reason", ("", None))[1] or "")
        if "message" not in first or not self.finish:
            raise InvalidMessage("it has no message")
        return self._reply(first["message"][0])

    def _reply(self, raw: str) -> Reply:
        blocks, stop = blocks_of(raw, STOPS.get(self.finish, self.finish), self.request)
        return Reply(
            blocks=blocks,
            usage=self.usage,
            stop_reason=stop,
            model=self.model,
            provider=PROVIDER,
            message_id=self.id,
        )


def blocks_of(raw: str, stop: str, request: Request | None) -> tuple[tuple[Block, ...], str]:
    """A message in our blocks, its own form behind them where they do not say it all."""
    message = parse(raw)
    if not isinstance(message, dict):
        raise InvalidMessage("its message is not an object")
    refusal = message.get("refusal")
    said = ("".join(_texts(message.get("content"))), refusal if isinstance(refusal, str) else "")
    blocks = [text_block(text) for text in said if text.strip()]
    calls = message.get("tool_calls")
    found = [c for c in calls if isinstance(c, dict)] if isinstance(calls, list) else []
    theirs = [str(c.get("id") or "") for c in found]
    ours = unique_ids(theirs, request)
    if said[1].strip():
        stop = "refusal"
    stop = "tool_use" if found and stop == "end_turn" else stop
    whole = True
    for n, (call, name) in enumerate(zip(found, ours, strict=True)):
        one, is_whole = _tool_use(call, name, stop if n == len(found) - 1 else "")
        blocks.append(one)
        whole = whole and is_whole
    ids = {a: b for a, b in zip(ours, theirs, strict=True) if a != b}
    clear = whole and len(set(theirs)) == len(theirs) and all(theirs)
    if clear and blocks and _plain(message) != _plain(parse(_assistant(blocks)[0])):
        model = request.head.model if request else ""
        blocks.append(native_block(PROVIDER, model, blocks, [raw], ids))
    return tuple(blocks), stop


def _texts(value: Json) -> Iterator[str]:
    parts = value if isinstance(value, list) else [{"text": value}]
    for part in parts:
        text = part.get("text") if isinstance(part, dict) else None
        if isinstance(text, str):
            yield text


def _tool_use(call: Object, name: str, stop: str) -> tuple[Block, bool]:
    """A call as our block, and whether it is whole."""
    function = call.get("function")
    about = function if isinstance(function, dict) else {}
    tool, given = str(about.get("name") or ""), about.get("arguments")
    written = given if isinstance(given, str) else dump(given or {})
    if was_cut(written, stop):
        return cut_call(tool, written), False
    head = dump({"type": "tool_use", "id": name, "name": tool})
    return block(f'{head[:-1]},"input":{input_text(written)}}}'), True


def _plain(value: Json) -> Json:
    """A value without members that say nothing."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items() if v not in _NOTHING}
    return [_plain(v) for v in value] if isinstance(value, list) else value
