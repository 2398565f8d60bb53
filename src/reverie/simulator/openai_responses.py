"""OpenAI's responses on the wire, over the same engine.

Items are read into the one form the engine knows and written back in both modes.
Reasoning travels as opaque `encrypted_content`; one that is not the model's own is
refused. A stored response can be continued by its id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from weakref import WeakKeyDictionary

from reverie.simulator.engine import Engine, SimulatedExchange
from reverie.simulator.faults import HttpPayload, befallen, chunks, event, stream_events, whole
from reverie.simulator.openai_api import (
    OUTPUT,
    answer_openai,
    arguments_of,
    made_call,
    made_tool,
    refusal,
    shared_members,
)
from reverie.simulator.profiles import OPENAI, ApiError, bad
from reverie.simulator.prompt_cache import body_of, objects
from reverie.transcript.blocks import Block, Json, Object, dump
from reverie.wire.lists import content_blocks, result_of

RESPONSES = "/v1/responses"
ENCRYPTED = "reasoning.encrypted_content"
_stored: WeakKeyDictionary[Engine, dict[str, list[Json]]] = WeakKeyDictionary()


async def responses(engine: Engine, text: bytes, headers: Mapping[str, str]) -> HttpPayload:
    """`POST /v1/responses`, in both modes."""
    try:
        body = body_of(text)
        items = _history(engine, body)
        outcome = await answer_openai(engine, from_items(body, items), text, headers, RESPONSES)
    except ApiError as error:
        return refusal(error)
    done = response(body, outcome)
    if body.get("store") is not False:
        ident = str(done["id"])
        _stored.setdefault(engine, {})[ident] = [*items, *objects(done["output"])]
    if body.get("stream") is True:
        return befallen(stream_events(_events(done), {}), outcome.fault)
    return befallen(whole(dump(done)), outcome.fault)


def input_tokens(engine: Engine, text: bytes, headers: Mapping[str, str]) -> HttpPayload:
    """`POST /v1/responses/input_tokens`: counts only."""
    try:
        body = body_of(text)
        read = from_items(body, _history(engine, body))
        counted = engine.count_tokens(read, headers, rules=OPENAI)
    except ApiError as error:
        return refusal(error)
    found: Object = {"object": "response.input_tokens", "input_tokens": counted["input_tokens"]}
    return whole(dump(found))


def _history(engine: Engine, body: Object) -> list[Json]:
    given = body.get("input")
    now: list[Json] = [{"role": "user", "content": given}] if isinstance(given, str) else []
    if isinstance(given, list):
        now = [*objects(given)]
    previous = body.get("previous_response_id")
    if not isinstance(previous, str):
        return now
    before = _stored.get(engine, {}).get(previous)
    if before is None:
        said = f"Previous response with id '{previous}' not found."
        raise bad(said, code="previous_response_not_found", param="previous_response_id")
    return [*before, *now]


# --- reading


def from_items(body: Object, items: list[Json]) -> Object:
    """A responses body in the engine's form."""
    messages: list[Json] = []
    system = content_blocks(body.get("instructions"))
    for item in objects(items):
        role, block = _item(item)
        if role == "system" and not messages:
            system += block
        else:
            messages.append({"role": role, "content": block})
    limit = body.get("max_output_tokens") or OUTPUT
    read: Object = {"model": body.get("model"), "max_tokens": limit, "messages": messages}
    if system:
        read["system"] = system
    tools = [made_tool(t) for t in objects(body.get("tools")) if t.get("type") == "function"]
    return {**read, **shared_members(body, tools)}


def _item(item: Object) -> tuple[str, list[Json]]:
    match item.get("type") or "message":
        case "message":
            role = str(item.get("role"))
            role = "system" if role in ("system", "developer") else role
            return role, content_blocks(item.get("content"))
        case "function_call":
            call = made_call(item.get("call_id"), item.get("name"), item.get("arguments"))
            return "assistant", [call]
        case "function_call_output":
            return "user", [result_of(item.get("call_id"), item.get("output"))]
        case "reasoning":
            said = "".join(str(s.get("text", "")) for s in objects(item.get("summary")))
            sealed = item.get("encrypted_content")
            if not isinstance(sealed, str):  # named by its id alone
                return "assistant", [{"type": "reasoning_reference", "id": item.get("id")}]
            return "assistant", [{"type": "thinking", "thinking": said, "signature": sealed}]
        case _:
            return "user", [item]


# --- writing


_INCOMPLETE = {
    "end_turn": "",
    "stop_sequence": "",
    "tool_use": "",
    "compaction": "",
    "max_tokens": "max_output_tokens",
    "model_context_window_exceeded": "max_output_tokens",
    "refusal": "content_filter",
}


def response(body: Object, outcome: SimulatedExchange) -> Object:
    """A whole response."""
    done = outcome.response
    short = _INCOMPLETE.get(done.stop_reason, done.stop_reason)
    return {
        "id": "resp_" + done.id.removeprefix("msg_"),
        "object": "response",
        "created_at": int(outcome.logged.at),
        "status": "incomplete" if short else "completed",
        "error": None,
        "incomplete_details": {"reason": short} if short else None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "model": done.model,
        "output": [*_output(body, outcome)],
        "parallel_tool_calls": True,
        "previous_response_id": body.get("previous_response_id"),
        "prompt_cache_key": body.get("prompt_cache_key"),
        "store": body.get("store") is not False,
        "temperature": 1.0,
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": body.get("tools") or [],
        "top_p": 1.0,
        "usage": _usage(outcome),
        "metadata": body.get("metadata") or {},
    }


def _usage(outcome: SimulatedExchange) -> Object:
    charge, output = outcome.logged.charge, outcome.logged.output
    reasoning = sum(b.tokens for b in outcome.response.content if b.thinking)
    return {
        "input_tokens": charge.total,
        "input_tokens_details": {
            "cached_tokens": charge.read,
            "cache_write_tokens": charge.written,
        },
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": charge.total + output,
    }


def _output(body: Object, outcome: SimulatedExchange) -> list[Object]:
    include = body.get("include")
    open_ended = isinstance(include, list) and ENCRYPTED in include
    tail = outcome.response.id.removeprefix("msg_")
    items: list[Object] = []
    for at, block in enumerate(outcome.response.content):
        made = _output_item(block, outcome, f"{tail}{at:02d}", open_ended)
        if made is not None:
            items.append(made)
    return items


def _output_item(
    block: Block, outcome: SimulatedExchange, tail: str, encrypted: bool
) -> Object | None:
    match block.type:
        case "text":
            part: Object = _part(block.get("text"))
            return {
                "id": f"msg_{tail}",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        case "tool_use":
            space = block.get("namespace")
            return {
                "id": f"fc_{tail}",
                "type": "function_call",
                "status": "completed",
                "call_id": block.call,
                "name": block.get("name"),
                **({"namespace": space} if space else {}),
                "arguments": arguments_of(block, outcome),
            }
        case "thinking":
            summary: Json = [{"type": "summary_text", "text": block.get("thinking")}]
            item: Object = {"id": f"rs_{tail}", "type": "reasoning", "summary": summary}
            return {**item, "encrypted_content": block.get("signature")} if encrypted else item
        case _:
            return None


def _part(text: str) -> Object:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _events(done: Object) -> Iterator[str]:
    number = -1

    def say(kind: str, **given: Json) -> str:
        nonlocal number
        number += 1
        return event(kind, dump({"type": kind, "sequence_number": number, **given}))

    begun: Object = {**done, "status": "in_progress", "output": [], "usage": None}
    yield say("response.created", response=begun)
    yield say("response.in_progress", response=begun)
    for index, item in enumerate(objects(done["output"])):
        opened = _start_item(item)
        yield say("response.output_item.added", output_index=index, item=opened)
        for kind, given in _item_events(item):
            yield say(kind, item_id=item["id"], output_index=index, **given)
        yield say("response.output_item.done", output_index=index, item=item)
    ended = "incomplete" if done["status"] == "incomplete" else "completed"
    yield say(f"response.{ended}", response=done)


def _start_item(item: Object) -> Object:
    match item["type"]:
        case "message":
            return {**item, "status": "in_progress", "content": []}
        case "function_call":
            return {**item, "status": "in_progress", "arguments": ""}
        case _:
            return {**item, "summary": []}


def _item_events(item: Object) -> Iterator[tuple[str, Object]]:
    match item["type"]:
        case "message":
            text = str(objects(item["content"])[0]["text"])
            empty: Object = {"content_index": 0, "part": _part("")}
            yield "response.content_part.added", empty
            for piece in chunks(text):
                given: Object = {"content_index": 0, "delta": piece, "logprobs": []}
                yield "response.output_text.delta", given
            ended: Object = {"content_index": 0, "text": text, "logprobs": []}
            yield "response.output_text.done", ended
            yield "response.content_part.done", {"content_index": 0, "part": _part(text)}
        case "function_call":
            text = str(item["arguments"])
            for piece in chunks(text):
                yield "response.function_call_arguments.delta", {"delta": piece}
            yield "response.function_call_arguments.done", {"arguments": text}
        case _:
            yield from _summary_events(str(objects(item["summary"])[0]["text"]))


def _summary_events(text: str) -> Iterator[tuple[str, Object]]:
    def part(words: str) -> Object:
        return {"summary_index": 0, "part": {"type": "summary_text", "text": words}}

    yield "response.reasoning_summary_part.added", part("")
    for piece in chunks(text):
        yield "response.reasoning_summary_text.delta", {"summary_index": 0, "delta": piece}
    yield "response.reasoning_summary_text.done", {"summary_index": 0, "text": text}
    yield "response.reasoning_summary_part.done", part(text)
