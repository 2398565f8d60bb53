"""OpenAI's chat completions on the wire, over the same engine.

A body is read into the one form the engine knows, with the text of each call's
arguments kept, and the answer is written back in both modes. `cached_tokens` is inside
the input count. What OpenAI calls differently in an error is translated here alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reverie.errors import InvalidMessage
from reverie.simulator.engine import Engine, SimulatedExchange
from reverie.simulator.faults import HttpPayload, befallen, chunks, stream_events, whole
from reverie.simulator.profiles import OPENAI, ApiError, TooLong, bad
from reverie.simulator.prompt_cache import body_of, loads, objects
from reverie.transcript.blocks import Block, Json, Object, dump, members, parse
from reverie.wire.lists import content_blocks, result_of

CHAT = "/v1/chat/completions"
STOPS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
OUTPUT = 4096


async def chat(engine: Engine, text: bytes, headers: Mapping[str, str]) -> HttpPayload:
    """`POST /v1/chat/completions`, in both modes."""
    try:
        body = body_of(text)
        outcome = await answer_openai(engine, from_chat(body), text, headers, CHAT)
    except ApiError as error:
        return refusal(error)
    if body.get("stream") is not True:
        return befallen(whole(dump(completion(outcome))), outcome.fault)
    options = body.get("stream_options")
    counted = isinstance(options, dict) and options.get("include_usage") is True
    return befallen(stream_events(_chunks(outcome, counted), {}), outcome.fault)


async def answer_openai(
    engine: Engine, body: Object, text: bytes, headers: Mapping[str, str], path: str
) -> SimulatedExchange:
    """What comes of a request: `body` is what the engine reads in its `text`."""
    original = text.decode(errors="replace")
    received = engine.receive(body, headers, path=path, rules=OPENAI, original=original)
    return await engine.answered(received)


def refusal(error: ApiError) -> HttpPayload:
    """An error in OpenAI's envelope."""
    code, message = error.wire_code or None, error.message
    if isinstance(error, TooLong):
        code = "context_length_exceeded"
        message = (
            f"This model's maximum context length is {error.allowed} tokens. However, your "
            f"messages resulted in {error.needed} tokens. Please reduce the length of the messages."
        )
    elif error.status == 404:
        code = "model_not_found"
        message = f"The model `{message.removeprefix('model: ')}` does not exist."
    elif error.status == 401:
        code, message = "invalid_api_key", "Incorrect API key provided."
    body: Object = {
        "error": {
            "message": message,
            "type": error.kind,
            "param": error.param or None,
            "code": code,
        }
    }
    return whole(dump(body), status=error.status, headers=error.headers)


def models(engine: Engine) -> HttpPayload:
    """`GET /v1/models`."""
    listed: list[Json] = [s.openai_info() for s in engine.models.by_name().values()]
    return whole(dump({"object": "list", "data": listed}))


def model(engine: Engine, name: str) -> HttpPayload:
    """`GET /v1/models/{id}`."""
    try:
        return whole(dump(engine.models.find(name).openai_info()))
    except ApiError as error:
        return refusal(error)


# --- reading


def from_chat(body: Object) -> Object:
    """A chat body in the engine's form."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise bad("you must provide a messages parameter", param="messages")
    system: list[Json] = []
    out: list[Json] = []
    for at, message in enumerate(messages):
        if not isinstance(message, dict):
            raise bad(f"messages[{at}] is not an object", param="messages")
        role = message.get("role")
        if role in ("system", "developer") and not out:
            system += content_blocks(message.get("content"))
        else:
            out.append(_message(at, str(role), message))
    limit = body.get("max_completion_tokens") or body.get("max_tokens") or OUTPUT
    read: Object = {"model": body.get("model"), "max_tokens": limit, "messages": out}
    if system:
        read["system"] = system
    return {**read, **shared_members(body, [_tool(t) for t in objects(body.get("tools"))])}


def shared_members(body: Object, tools: list[Object]) -> Object:
    """Members that mean the same in every wire format."""
    out: Object = {"tools": [*tools]} if tools else {}
    for name in ("prompt_cache_key", "user", "metadata"):
        if body.get(name) is not None:
            out[name] = body[name]
    return out


def _tool(tool: Object) -> Object:
    function = tool.get("function")
    return made_tool(function if isinstance(function, dict) else tool)


def made_tool(tool: Object) -> Object:
    return {
        "name": tool.get("name"),
        "description": tool.get("description"),
        "input_schema": tool.get("parameters") or {"type": "object"},
    }


def _message(at: int, role: str, message: Object) -> Object:
    match role:
        case "user":
            return {"role": "user", "content": content_blocks(message.get("content"))}
        case "system" | "developer":
            return {"role": "system", "content": content_blocks(message.get("content"))}
        case "tool":
            given = result_of(message.get("tool_call_id"), message.get("content"))
            return {"role": "user", "content": [given]}
        case "assistant":
            blocks = content_blocks(message.get("content"))
            blocks += [_call(c) for c in objects(message.get("tool_calls"))]
            return {"role": "assistant", "content": blocks}
        case _:
            raise bad(f"messages[{at}].role: '{role}' is not one of the roles", param="messages")


def _call(call: Object) -> Object:
    function = call.get("function")
    found = function if isinstance(function, dict) else {}
    return made_call(call.get("id"), found.get("name"), found.get("arguments"))


def made_call(ident: Json, name: Json, arguments: Json) -> Object:
    """A call; arguments that are no JSON object are kept as the text they are."""
    try:
        value = loads(arguments) if isinstance(arguments, str) else {}
    except ApiError:
        value = {"arguments": arguments}
    return {"type": "tool_use", "id": ident, "name": name, "input": value}


# --- writing


def arguments_of(block: Block, outcome: SimulatedExchange) -> str:
    """The text of a call's arguments, as far as the model wrote it."""
    whole = _arguments(block)
    cut = outcome.response.input_of(block) != members(block.raw)["input"][0]
    return whole[:-1] if cut else whole


def _arguments(block: Block) -> str:
    try:
        text = members(block.raw)["input"][0]
        held = parse(text)
    except (KeyError, InvalidMessage):
        return "{}"
    only = isinstance(held, dict) and list(held) == ["arguments"]
    found = held.get("arguments") if only and isinstance(held, dict) else None
    return found if isinstance(found, str) and not found.lstrip().startswith("{") else text


def chat_usage(outcome: SimulatedExchange) -> Object:
    charge, output = outcome.logged.charge, outcome.logged.output
    reasoning = sum(b.tokens for b in outcome.response.content if b.thinking)
    return {
        "prompt_tokens": charge.total,
        "completion_tokens": output,
        "total_tokens": charge.total + output,
        "prompt_tokens_details": {
            "cached_tokens": charge.read,
            "cache_write_tokens": charge.written,
            "audio_tokens": 0,
        },
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


def _head(outcome: SimulatedExchange, kind: str) -> Object:
    return {
        "id": "chatcmpl-" + outcome.response.id.removeprefix("msg_"),
        "object": kind,
        "created": int(outcome.logged.at),
        "model": outcome.response.model,
        "system_fingerprint": "fp_simulated",
    }


def _calls(outcome: SimulatedExchange) -> list[Object]:
    return [
        {
            "id": b.call,
            "type": "function",
            "function": {"name": b.get("name"), "arguments": arguments_of(b, outcome)},
        }
        for b in outcome.response.content
        if b.type == "tool_use"
    ]


def _text(outcome: SimulatedExchange) -> str:
    return "".join(b.get("text") for b in outcome.response.content if b.type == "text")


def _finish(outcome: SimulatedExchange) -> str:
    reason = outcome.response.stop_reason
    return STOPS.get(reason, reason)


def completion(outcome: SimulatedExchange) -> Object:
    """A whole chat completion."""
    message: Object = {"role": "assistant", "content": _text(outcome) or None, "refusal": None}
    if calls := _calls(outcome):
        message["tool_calls"] = [*calls]
    choice: Object = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": _finish(outcome),
    }
    return {**_head(outcome, "chat.completion"), "choices": [choice], "usage": chat_usage(outcome)}


def _chunks(outcome: SimulatedExchange, counted: bool) -> Iterator[str]:
    head = _head(outcome, "chat.completion.chunk")

    def chunk(delta: Object, finish: str | None = None) -> str:
        choice: Object = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return f"data: {dump({**head, 'choices': [choice]})}\n\n"

    yield chunk({"role": "assistant", "content": ""})
    for piece in chunks(_text(outcome)):
        yield chunk({"content": piece})
    for index, call in enumerate(_calls(outcome)):
        yield chunk({"tool_calls": [_opening(index, call)]})
        function = call["function"]
        text = function.get("arguments") if isinstance(function, dict) else ""
        for piece in chunks(str(text)):
            given: Object = {"index": index, "function": {"arguments": piece}}
            yield chunk({"tool_calls": [given]})
    yield chunk({}, _finish(outcome))
    if counted:
        yield f"data: {dump({**head, 'choices': [], 'usage': chat_usage(outcome)})}\n\n"
    yield "data: [DONE]\n\n"


def _opening(index: int, call: Object) -> Object:
    function = call["function"]
    name = function.get("name") if isinstance(function, dict) else ""
    return {**call, "index": index, "function": {"name": name, "arguments": ""}}
