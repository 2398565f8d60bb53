"""The forms in which people hand in messages and replies, read as ours.

A value's first serialisation is the one kept; a text that is JSON already is kept as it
is. What cannot be read as a message raises InvalidMessage before anything is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, cast

from reverie.errors import InvalidMessage
from reverie.transcript.blocks import (
    Block,
    Object,
    block_from,
    block_of,
    blocks_of,
    elements,
    members,
    text_block,
)
from reverie.transcript.records import UserMessage
from reverie.transcript.usage import usage_of
from reverie.world import Reply


class Dumps(Protocol):
    """An SDK's response object."""

    def model_dump(self, *, mode: str, exclude_unset: bool) -> dict[str, Any]: ...


Addable: TypeAlias = "str | Block | UserMessage | Mapping[str, Any]"
Observable: TypeAlias = "Reply | str | Mapping[str, Any] | Dumps"


def user(*content: str | Mapping[str, Any] | Block) -> UserMessage:
    """A message of the user's: texts, or content blocks."""
    parts = [text_block(c) if isinstance(c, str) else c for c in content]
    return UserMessage(blocks_of(parts))


def tool_result(
    call: str, content: str | Sequence[Mapping[str, Any]], *, is_error: bool = False
) -> UserMessage:
    """What a tool answered."""
    value: dict[str, Any] = {"type": "tool_result", "tool_use_id": call, "content": content}
    if is_error:
        value["is_error"] = True
    return UserMessage((block_of(value),), "tool")


def as_user(said: Sequence[Addable]) -> UserMessage:
    """Everything handed in, as one user message."""
    if not said:
        raise InvalidMessage("nothing was handed in", do="Add at least one message")
    parts = [_one(s) for s in said]
    blocks = tuple(b for p in parts for b in p.blocks)
    if all(b.blank for b in blocks):
        raise InvalidMessage("a user message has no content", do="Send some text, or a result")
    return UserMessage(blocks, parts[0].origin)


def _one(said: Addable) -> UserMessage:
    if isinstance(said, UserMessage):
        return said
    if isinstance(said, str):
        return user(said)
    if isinstance(said, Block):
        return UserMessage((said,), "tool" if said.type == "tool_result" else "user")
    if "role" in said:
        if said["role"] != "user":
            raise InvalidMessage(
                "only user messages are added",
                where=f"role {said['role']}",
                do="Hand the model's own messages to observe",
            )
        return _from_content(said.get("content"))
    return _one(block_of(said))


def _from_content(content: object) -> UserMessage:
    if isinstance(content, str):
        return user(content)
    if not isinstance(content, Sequence):
        raise InvalidMessage("a message's content must be text or a list of blocks")
    blocks = blocks_of(cast("Sequence[Mapping[str, Any]]", content))
    return UserMessage(blocks, "tool" if any(b.type == "tool_result" for b in blocks) else "user")


def as_reply(reply: Observable) -> Reply:
    """A response of the Messages API in any form: raw text, value, SDK object."""
    if isinstance(reply, Reply):
        return reply
    if isinstance(reply, str):
        found = members(reply)
        content = elements(found["content"][0]) if "content" in found else None
        blocks = None if content is None else tuple(block_from(r, v) for r, v in content)
        return _reply({k: v for k, (_, v) in found.items()}, blocks)
    if isinstance(reply, Mapping):
        return _reply(reply, None)
    if hasattr(reply, "model_dump"):
        return _reply(reply.model_dump(mode="json", exclude_unset=True), None)
    raise InvalidMessage(
        "a reply must be a Messages API response",
        where=type(reply).__name__,
        do="Hand in the response's JSON text, its dict, or the SDK's object",
    )


def _reply(value: Mapping[str, Any], blocks: tuple[Block, ...] | None) -> Reply:
    content = value.get("content")
    if blocks is None:
        if isinstance(content, str) or not isinstance(content, Sequence):
            raise InvalidMessage(
                "a reply has no content blocks", do="Hand in a whole Messages API response"
            )
        blocks = blocks_of(cast("Sequence[Mapping[str, Any]]", content))
    usage = value.get("usage")
    return Reply(
        blocks,
        usage=usage_of(cast("Object", usage)) if isinstance(usage, Mapping) else None,
        stop_reason=str(value.get("stop_reason") or ""),
        model=str(value.get("model") or ""),
        message_id=str(value.get("id") or ""),
    )
