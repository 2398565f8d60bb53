"""The Messages API on the wire: whole JSON, or events in the API's shapes and order.

Blocks go out byte for byte: a tool's input in pieces of its own text, an unknown block
whole in its start event. Every failure is the API's error envelope.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reverie.simulator.answers import SimulatedResponse
from reverie.simulator.engine import Engine
from reverie.simulator.faults import HttpPayload, befallen, chunks, event, stream_events, whole
from reverie.simulator.profiles import ApiError
from reverie.simulator.prompt_cache import body_of
from reverie.transcript.blocks import Block, Object, dump, join_members


async def messages(engine: Engine, text: bytes, headers: Mapping[str, str]) -> HttpPayload:
    """`POST /v1/messages`, in both modes."""
    try:
        streaming = body_of(text).get("stream") is True
        outcome = await engine.messages(text, headers)
    except ApiError as error:
        return refusal(error, engine)
    made = request_id(engine)
    if streaming:
        sending = stream_events(events(outcome.response), made)
    else:
        sending = whole(outcome.response.text(), headers=made)
    return befallen(sending, outcome.fault)


def count_tokens(engine: Engine, text: bytes, headers: Mapping[str, str]) -> HttpPayload:
    """`POST /v1/messages/count_tokens`."""
    try:
        return whole(dump(engine.count_tokens(text, headers)), headers=request_id(engine))
    except ApiError as error:
        return refusal(error, engine)


def models(engine: Engine) -> HttpPayload:
    """`GET /v1/models`."""
    listed = [spec.info() for spec in engine.models.listed("anthropic")]
    page: Object = {
        "data": [*listed],
        "has_more": False,
        "first_id": listed[0]["id"] if listed else None,
        "last_id": listed[-1]["id"] if listed else None,
    }
    return whole(dump(page), headers=request_id(engine))


def model(engine: Engine, name: str) -> HttpPayload:
    """`GET /v1/models/{id}`."""
    try:
        return whole(dump(engine.models.find(name).info()), headers=request_id(engine))
    except ApiError as error:
        return refusal(error, engine)


def request_id(engine: Engine) -> dict[str, str]:
    return {"request-id": f"req_{len(engine.log):08d}"}


def refusal(error: ApiError, engine: Engine) -> HttpPayload:
    """An error in the API's envelope."""
    made = request_id(engine)
    body = dump(error.body(made["request-id"]))
    return whole(body, status=error.status, headers={**made, **error.headers})


# --- events


def events(response: SimulatedResponse) -> Iterator[str]:
    """A response as the API streams it."""
    opening: Object = {**response.usage, "output_tokens": min(1, response.output)}
    head = {**response.head(), "usage": dump(opening)}
    yield event(
        "message_start", join_members({"type": '"message_start"', "message": join_members(head)})
    )
    for index, block in enumerate(response.content):
        yield from _block(index, block, response)
        if index == 0:
            yield event("ping", '{"type":"ping"}')
    delta: Object = {"stop_reason": response.stop_reason, "stop_sequence": None}
    closing: Object = {"type": "message_delta", "delta": delta, "usage": response.usage}
    if "context_management" in response.extra:
        closing["context_management"] = response.extra["context_management"]
    yield event("message_delta", dump(closing))
    yield event("message_stop", '{"type":"message_stop"}')


def _block(index: int, block: Block, response: SimulatedResponse) -> Iterator[str]:
    start = {
        "type": '"content_block_start"',
        "index": str(index),
        "content_block": _start_block(block).raw,
    }
    yield event("content_block_start", join_members(start))
    for delta in _deltas(block, response):
        data = {"type": '"content_block_delta"', "index": str(index), "delta": dump(delta)}
        yield event("content_block_delta", join_members(data))
    yield event("content_block_stop", dump({"type": "content_block_stop", "index": index}))


def _start_block(block: Block) -> Block:
    """A block as its start event shows it: without what the deltas will bring."""
    match block.type:
        case "text":
            return block.with_member("text", '""')
        case "thinking":
            return block.with_member("thinking", '""').with_member("signature", '""')
        case "tool_use":
            return block.with_member("input", "{}")
        case "compaction":
            return block.with_member("content", "null")
        case _:
            return block


def _deltas(block: Block, response: SimulatedResponse) -> Iterator[Object]:
    match block.type:
        case "text":
            for piece in chunks(block.get("text")):
                yield {"type": "text_delta", "text": piece}
        case "thinking":
            for piece in chunks(block.get("thinking")):
                yield {"type": "thinking_delta", "thinking": piece}
            yield {"type": "signature_delta", "signature": block.get("signature")}
        case "tool_use":
            yield {"type": "input_json_delta", "partial_json": ""}
            for piece in chunks(response.input_of(block)):
                yield {"type": "input_json_delta", "partial_json": piece}
        case "compaction":
            content = block.get("content")
            yield {"type": "compaction_delta", "content": content, "encrypted_content": None}
        case _:
            return
