"""Messages, results and tools, written in each of the three wire formats.

What is written goes into a list beside the caller's own messages: the words that stand
for others, results that were missing, and copies of single messages whose results were
cut or whose thinking went. A copy keeps every member that is not named here, known or
not. The caller's own values are never changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from reverie.transcript.blocks import Block, text_of
from reverie.wire.lists import TEXTS, Format, value_of

OUTPUTS = ("function_call_output", "custom_tool_call_output")
MARK = "cache_control"
_UNMARKABLE = ("thinking", "redacted_thinking")


def user_message(text: str, form: Format) -> dict[str, Any]:
    """A message of the user's."""
    if form == "messages":
        return {"role": "user", "content": [{"type": "text", "text": text}]}
    return {"role": "user", "content": text}


def results(blocks: Sequence[Block], theirs: Mapping[str, str], form: Format) -> list[Any]:
    """Results of ours for calls of the caller's."""
    found = [(theirs.get(b.call, b.call), text_of(b.value.get("content"))) for b in blocks]
    if form == "chat":
        return [{"role": "tool", "tool_call_id": c, "content": t} for c, t in found]
    if form == "responses":
        return [{"type": "function_call_output", "call_id": c, "output": t} for c, t in found]
    content = [
        {"type": "tool_result", "tool_use_id": c, "content": t, "is_error": True} for c, t in found
    ]
    return [{"role": "user", "content": content}]


def answer(call: str, text: str, form: Format, *, is_error: bool = False) -> dict[str, Any]:
    """The result of one call: a message, an item, or (Messages) a block of a message."""
    if form == "chat":
        return {"role": "tool", "tool_call_id": call, "content": text}
    if form == "responses":
        return {"type": "function_call_output", "call_id": call, "output": text}
    made: dict[str, Any] = {"type": "tool_result", "tool_use_id": call, "content": text}
    return {**made, "is_error": True} if is_error else made


def edit_message(
    message: object, form: Format, contents: Mapping[int, Block], gone: Sequence[int]
) -> dict[str, Any] | None:
    """A copy of a message with other contents for some results and without some blocks;
    both are named by their places among the blocks it was read as. None: nothing is left."""
    value = value_of(message)
    if form == "messages":
        return _edited_message(value, contents, gone)
    if gone:  # a reasoning item
        return None
    for block in contents.values():
        if form == "chat":
            value["content"] = text_of(block.value.get("content"))
        elif value.get("type") in OUTPUTS:
            value["output"] = _output(value.get("output"), block)
    return value


def _edited_message(
    value: dict[str, Any], contents: Mapping[int, Block], gone: Sequence[int]
) -> dict[str, Any] | None:
    parts = cast("list[Any]", value.get("content"))
    kept: list[Any] = []
    for n, part in enumerate(parts):
        if n in gone:
            continue
        kept.append({**part, "content": contents[n].value["content"]} if n in contents else part)
    return {**value, "content": kept} if kept else None


def _output(old: object, block: Block) -> object:
    """An item's output: a text, or its first text and the parts that are no texts."""
    parts = cast("list[dict[str, Any]]", old) if isinstance(old, list) else []
    text = text_of(block.value.get("content"))
    media = [p for p in parts if p.get("type") not in TEXTS]
    return [{"type": "input_text", "text": text}, *media] if media else text


# --- marks


def with_cache_mark(message: object) -> dict[str, Any] | None:
    """A copy with a cache mark on its last block; None where that takes none."""
    value = value_of(message)
    content = value.get("content")
    parts = _text_parts(content)
    if not parts or not isinstance(parts[-1], dict):
        return None
    last = cast("dict[str, Any]", parts[-1])
    blank = last.get("type") == "text" and not str(last.get("text") or "").strip()
    if blank or last.get("type") in _UNMARKABLE:
        return None
    return {**value, "content": [*parts[:-1], {**last, MARK: {"type": "ephemeral"}}]}


def _text_parts(content: object) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return cast("list[Any]", content) if isinstance(content, list) else []


# --- tools


def definition(name: str, description: str, schema: Mapping[str, Any], form: Format) -> Any:
    """A tool as a request describes it."""
    if form == "messages":
        return {"name": name, "description": description, "input_schema": dict(schema)}
    about = {"name": name, "description": description, "parameters": dict(schema)}
    if form == "chat":
        return {"type": "function", "function": about}
    return {"type": "function", **about, "strict": False}


def tool_name(tool: object) -> str:
    """The name of a tool, however it is described."""
    value = value_of(tool)
    function = value.get("function")
    about = cast("dict[str, Any]", function) if isinstance(function, dict) else value
    return str(about.get("name") or "")


def tool_parameters(tool: object) -> dict[str, Any]:
    """The parameters of a tool by name, however it is described."""
    value = value_of(tool)
    function = value.get("function")
    about = cast("dict[str, Any]", function) if isinstance(function, dict) else value
    schema = about.get("input_schema") or about.get("parameters")
    known = cast("dict[str, Any]", schema).get("properties") if isinstance(schema, dict) else None
    return cast("dict[str, Any]", known) if isinstance(known, dict) else {}


def parse_call(call: object) -> tuple[Format, str, str, object]:
    """A call in any form: which, its id, its tool, and what it was given."""
    value = value_of(call)
    function = value.get("function")
    if isinstance(function, dict):
        about = cast("dict[str, Any]", function)
        return (
            "chat",
            str(value.get("id") or ""),
            str(about.get("name") or ""),
            about.get("arguments"),
        )
    name = str(value.get("name") or "")
    if value.get("type") == "tool_use":
        return "messages", str(value.get("id") or ""), name, value.get("input")
    return "responses", str(value.get("call_id") or ""), name, value.get("arguments")
