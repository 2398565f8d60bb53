"""The forms in which people hand in messages, read as ours.

A value's first serialisation is the one kept; a text that is JSON already is kept as it
is. What cannot be read as a message raises InvalidMessage before anything is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, cast

from reverie.errors import InvalidMessage
from reverie.transcript.blocks import Block, Json, block_of, blocks_of, text_block
from reverie.transcript.records import UserMessage
from reverie.wire.forms import OUTPUTS
from reverie.wire.reading import content_blocks, plain, result_block, value_of
from reverie.wire.reply import ToolCall


class Dumps(Protocol):
    """An object of an SDK."""

    def model_dump(self, *, mode: str, exclude_unset: bool) -> dict[str, Any]: ...


Addable: TypeAlias = "str | Block | UserMessage | Mapping[str, Any] | Dumps"


def user(*content: str | Mapping[str, Any] | Block) -> UserMessage:
    """A message of the user's: texts, or content blocks."""
    parts = [text_block(c) if isinstance(c, str) else c for c in content]
    return UserMessage(blocks_of(parts))


def tool_result(
    call: str, content: str | Sequence[Mapping[str, Any]], *, is_error: bool = False
) -> UserMessage:
    """What a tool answered."""
    return ToolCall(call, "", "").result(content, is_error=is_error)


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
    value = said if isinstance(said, Mapping) else value_of(said)
    if value.get("role") == "tool":
        return _one(result_block(value.get("tool_call_id"), value.get("content")))
    if str(value.get("type")) in OUTPUTS:
        return _one(result_block(value.get("call_id"), value.get("output")))
    if "role" not in value:
        return _one(block_of(value))
    if value["role"] != "user":
        raise InvalidMessage(
            "only user messages are added",
            where=f"role {value['role']}",
            do="Hand the model's own messages to observe",
        )
    return _from_content(value.get("content"))


def _from_content(content: object) -> UserMessage:
    if isinstance(content, str):
        return user(content)
    if not isinstance(content, Sequence):
        raise InvalidMessage("a message's content must be text or a list of blocks")
    parts = plain(cast("object", content))
    blocks = blocks_of(cast("Sequence[Mapping[str, Any]]", content_blocks(cast("Json", parts))))
    return UserMessage(blocks, "tool" if any(b.type == "tool_result" for b in blocks) else "user")
