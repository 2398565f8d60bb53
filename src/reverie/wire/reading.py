"""Lists of messages in three wire formats, read as our blocks.

Messages, chat completions and responses; dicts or the SDKs' own objects. One message of
the caller's becomes one `Heard`, whatever it is: roles and parts that nobody knows are
kept as they are and said to be `other`. Nothing is checked, joined, renamed or left out
here (`adopting` does what a transcript needs), and nothing of the caller's is changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

from reverie.errors import InvalidMessage
from reverie.light import dataclass
from reverie.transcript.blocks import Block, Json, Object, block, block_of, dump, text_block
from reverie.transcript.tokens import family
from reverie.wire.calls import input_text

Format: TypeAlias = Literal["messages", "chat", "responses"]
Speaker: TypeAlias = Literal["user", "assistant", "other"]
TEXTS = ("text", "input_text", "output_text")
ITEMS = frozenset(
    {
        *("message", "reasoning", "item_reference"),
        *("function_call", "function_call_output"),
        *("custom_tool_call", "custom_tool_call_output"),
    }
)
_BLOCKS = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"}
)
_CHAT_PARTS = frozenset({"image_url", "input_audio", "file", "refusal"})
_ITEM_PARTS = frozenset({"input_text", "output_text", "input_image", "input_file"})


@dataclass(frozen=True, slots=True)
class Heard:
    """One message of the caller's in our blocks, each in the place of its own part."""

    speaker: Speaker
    blocks: tuple[Block, ...]
    marked: bool = False  # whether the caller put a cache mark on it

    @property
    def tokens(self) -> int:
        return sum([b.tokens for b in self.blocks])


# --- values


def value_of(message: object) -> dict[str, Any]:
    """A message as a plain dict of its own: a mapping, or an SDK's object of any version."""
    found = plain(message)
    if not isinstance(found, dict):
        raise InvalidMessage(
            "this is not a message",
            where=type(message).__name__,
            do="Hand in dicts, or the objects of an SDK",
        )
    return cast("dict[str, Any]", found)


def plain(value: object) -> object:
    """A value without objects in it; lists and dicts are new, all else is shared."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Mapping):
        found = cast("Mapping[object, object]", value)
        return {str(k): plain(v) for k, v in found.items()}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [plain(v) for v in cast("Sequence[object]", value)]
    return plain(_dumped(value))


def _dumped(value: object) -> object:
    """The fields of an SDK's object."""
    new = getattr(value, "model_dump", None)
    if callable(new):
        return new(mode="json", exclude_unset=True)
    for name in ("to_dict", "dict"):
        old = getattr(value, name, None)
        if callable(old):
            return old()
    raise InvalidMessage("a message holds what is not JSON", where=type(value).__name__)


# --- which format


def format_of(
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] = (),
    model: str = "",
) -> tuple[Format, bool]:
    """The format of a list, and whether the list itself tells: by what only one of them has,
    else by its tools or its model. Where it does not tell, all three read it the same."""
    for message in messages:
        found = _telling(message)
        if found:
            return found, True
    for tool in tools:
        if tool.get("type") == "function":
            return ("chat" if "function" in tool else "responses"), False
        if "input_schema" in tool:
            return "messages", False
    return ("messages" if family(model).startswith("claude") else "chat"), False


def _telling(message: Mapping[str, Any]) -> Format | None:
    kind = message.get("type")
    if isinstance(kind, str) and kind in ITEMS and (kind != "message" or "usage" not in message):
        return "responses"
    if message.get("role") in ("system", "developer", "tool", "function"):
        content = message.get("content")
        kinds = _kinds(content)
        return "responses" if kinds & _ITEM_PARTS else "chat"
    if message.get("tool_calls") or message.get("function_call"):
        return "chat"
    kinds = _kinds(message.get("content"))
    if kinds & _BLOCKS or "cache_control" in _keys(message.get("content")):
        return "messages"
    if kinds & _ITEM_PARTS:
        return "responses"
    return "chat" if kinds & _CHAT_PARTS else None


def _kinds(content: object) -> set[str]:
    return {str(p.get("type")) for p in _objects(content)}


def _keys(content: object) -> set[str]:
    return {key for part in _objects(content) for key in part}


def _objects(value: object) -> list[dict[str, Any]]:
    found = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", v) for v in found if isinstance(v, dict)]


# --- reading


def heard(message: Mapping[str, Any], form: Format) -> Heard:
    """One message, or item, of a list."""
    if form == "chat":
        return _chat(message)
    return _item(message) if form == "responses" else _message(message)


def _message(message: Mapping[str, Any]) -> Heard:
    content, role = message.get("content"), message.get("role")
    blocks = tuple(_block(part) for part in _parts(content))
    marked = "cache_control" in _keys(content)
    return Heard(role if role in ("user", "assistant") else "other", blocks, marked)


def _parts(content: object) -> list[object]:
    if isinstance(content, list):
        return cast("list[object]", content)
    return [] if content is None else [content]


def _block(part: object) -> Block:
    if isinstance(part, dict):
        return block_of(cast("dict[str, Any]", part))
    return text_block(part if isinstance(part, str) else dump(part))


def _chat(message: Mapping[str, Any]) -> Heard:
    content = message.get("content")
    match message.get("role"):
        case "tool":
            return Heard("user", (result_block(message.get("tool_call_id"), content),))
        case "user":
            return Heard("user", _content(content))
        case "assistant":
            said = _content(content)
            refusal = message.get("refusal")
            if isinstance(refusal, str) and refusal:
                said = (*said, text_block(refusal))
            calls = tuple(_chat_call(c) for c in _objects(message.get("tool_calls")))
            if message.get("function_call"):  # of the oldest API: known to nobody here
                return Heard("other", (*said, *calls, block_of({"type": "function_call"})))
            return Heard("assistant", (*said, *calls))
        case _:
            return Heard("other", _content(content))


def _content(content: object) -> tuple[Block, ...]:
    if not isinstance(content, (str, list)):
        return ()
    found = content_blocks(cast("Json", content))
    return tuple(block_of(b) for b in found if isinstance(b, dict))


def _chat_call(call: Mapping[str, Any]) -> Block:
    function = call.get("function")
    if isinstance(function, dict):
        about = cast("dict[str, Any]", function)
        return call_block(call.get("id"), about.get("name"), about.get("arguments"))
    custom = call.get("custom")
    about = cast("dict[str, Any]", custom) if isinstance(custom, dict) else {}
    return call_block(call.get("id"), about.get("name"), about.get("input"))


def _item(item: Mapping[str, Any]) -> Heard:
    match item.get("type") or "message":
        case "message":
            role = item.get("role")
            known = role if role in ("user", "assistant") else "other"
            return Heard(known, _content(item.get("content")))
        case "function_call":
            return Heard("assistant", (_item_call(item, "arguments"),))
        case "custom_tool_call":
            return Heard("assistant", (_item_call(item, "input"),))
        case "reasoning":
            return Heard("assistant", (block_of({"type": "reasoning", "item": dict(item)}),))
        case str(kind) if kind.endswith("_call") and item.get("call_id"):
            return Heard("assistant", (call_block(item["call_id"], kind, dict(item)),))
        case str(kind) if kind.endswith("_call"):  # answered by the provider itself
            return Heard("assistant", (block_of(dict(item)),))
        case str(kind) if kind.endswith("_call_output"):
            return Heard("user", (result_block(item.get("call_id"), item.get("output")),))
        case _:
            return Heard("other", (block_of(dict(item)),))


def _item_call(item: Mapping[str, Any], given: str) -> Block:
    return call_block(item.get("call_id"), item.get("name"), item.get(given))


# --- parts that several formats share


def call_block(ident: object, name: object, arguments: object) -> Block:
    """A call; arguments that are no JSON object stand under `INVALID_JSON`."""
    written = arguments if isinstance(arguments, str) else dump(arguments or {})
    head = dump({"type": "tool_use", "id": _word(ident), "name": _word(name)})
    return block(f'{head[:-1]},"input":{input_text(written)}}}')


def _word(value: object) -> str:
    return value if isinstance(value, str) else ""


def result_block(call: object, content: object) -> Block:
    """What a tool answered."""
    return block_of(result_of(cast("Json", call), cast("Json", content)))


def result_of(call: Json, content: Json) -> Object:
    text: Json = content if isinstance(content, str) else content_blocks(content)
    return {"type": "tool_result", "tool_use_id": call, "content": text}


def content_blocks(content: Json) -> list[Json]:
    """A message's content: a string, or parts of any kind."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    out: list[Json] = []
    for part in content if isinstance(content, list) else []:
        if not isinstance(part, dict):
            continue
        kind = part.get("type")
        if kind in TEXTS:
            out.append({"type": "text", "text": part.get("text")})
        elif kind in ("image_url", "input_image"):
            out.append({"type": "image", "source": {"type": "url", "url": part.get("image_url")}})
        elif kind in ("file", "input_file"):
            out.append(
                {"type": "document", "source": {k: v for k, v in part.items() if k != "type"}}
            )
        else:
            out.append(part)
    return out
